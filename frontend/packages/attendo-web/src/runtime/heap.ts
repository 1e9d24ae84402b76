/** The memory of the WebAssembly module, and its functions. */

import { RELAXED_SIMD, SIMD } from "./kernels";

/** The functions of kernels.c; numbers that stand for memory are addresses. */
export interface Kernels {
  memory: WebAssembly.Memory;
  __heap_base: WebAssembly.Global<"i32">;
  detect_mode: () => number;
  value_bytes: () => number;
  quantize_rows: (x: number, rows: number, length: number, padded: number, quantized: number, scales: number, mode: number) => void;
  pack_weights: (weights: number, length: number, columns: number, padded: number, packed: number, sums: number, mode: number) => void;
  multiply_quantized: (
    rows: number,
    rowScales: number,
    numRows: number,
    padded: number,
    packed: number,
    scales: number,
    sums: number,
    bias: number,
    out: number,
    columns: number,
    hasRelu: number,
  ) => void;
  pack_floats: (weights: number, length: number, columns: number, packed: number) => void;
  multiply_floats: (x: number, numRows: number, length: number, packed: number, bias: number, out: number, columns: number, hasRelu: number) => void;
  relu: Unary;
  erf: Unary;
  sigmoid: Unary;
  add: Binary;
  multiply: Binary;
  layer_norm: (x: number, weight: number, bias: number, out: number, rows: number, length: number, epsilon: number) => void;
  attention: (
    queries: number,
    keys: number,
    values: number,
    mask: number,
    maskBatchStride: number,
    maskRowStride: number,
    heads: number,
    weights: number,
    out: number,
    numBatches: number,
    numHeads: number,
    numRows: number,
    numKeys: number,
    keySize: number,
    valueSize: number,
    divisor: number,
  ) => void;
  normalizers: (x: number, rows: number, length: number, highest: number, sums: number) => void;
  subtract_from_rows: (x: number, rows: number, length: number, numbers: number) => void;
  arg_max: (x: number, rows: number, length: number, indices: number) => void;
  swap_middle_axes: (x: number, out: number, batches: number, rows: number, columns: number, size: number) => void;
  concatenate: (first: number, second: number, out: number, count: number, firstSize: number, secondSize: number) => void;
}

type Unary = (x: number, out: number, count: number) => void;
type Binary = (x: number, y: number, out: number, count: number, period: number) => void;

const PAGE_BYTES = 65_536;
const ALIGNMENT = 64;
/** The heap grows by at least this much. */
const GROWTH_PAGES = 64;

/** A part of the memory, shared by tensors that have the same numbers. */
export interface HeapBlock {
  readonly address: number;
  readonly bytes: number;
  references: number;
}

export class Heap {
  /** Addresses of free blocks by their bytes. */
  private readonly free = new Map<number, number[]>();
  private top: number;

  private constructor(
    readonly kernels: Kernels,
    /** How the processor multiplies 8-bit integers, see kernels.c. */
    readonly mode: number,
  ) {
    this.top = roundUp(kernels.__heap_base.value, ALIGNMENT);
  }

  /** Compile the module: with relaxed SIMD if the browser has it and the processor's products are exact. */
  static async create({ relaxed = true } = {}): Promise<Heap> {
    for (const code of relaxed ? [RELAXED_SIMD, SIMD] : [SIMD]) {
      const bytes = Uint8Array.from(atob(code), (character) => character.charCodeAt(0));
      if (!WebAssembly.validate(bytes)) continue;
      const { instance } = await WebAssembly.instantiate(bytes);
      const kernels = instance.exports as unknown as Kernels;
      const mode = kernels.detect_mode();
      if (mode >= 0) return new Heap(kernels, mode);
    }
    throw new Error("WebAssembly with SIMD is needed");
  }

  /** Return a block with at least this many bytes; `isExact` does not round them up, for what is kept. */
  allocate(bytes: number, isExact = false): HeapBlock {
    const size = isExact ? roundUp(Math.max(bytes, 1), ALIGNMENT) : sizeClass(bytes);
    const address = this.free.get(size)?.pop() ?? this.extend(size);
    return { address, bytes: size, references: 1 };
  }

  release(block: HeapBlock): void {
    if (--block.references > 0) return;
    const list = this.free.get(block.bytes);
    if (list) list.push(block.address);
    else this.free.set(block.bytes, [block.address]);
  }

  floats(address: number, length: number): Float32Array {
    return new Float32Array(this.kernels.memory.buffer, address, length);
  }

  bytes(address: number, length: number): Uint8Array {
    return new Uint8Array(this.kernels.memory.buffer, address, length);
  }

  /** Copy numbers into a new block that is kept; behind them are zeros, up to `length`. */
  store(values: Float32Array, length = values.length): HeapBlock {
    const block = this.allocate(4 * length, true);
    const target = this.floats(block.address, block.bytes / 4);
    target.set(values);
    target.fill(0, values.length);
    return block;
  }

  private extend(bytes: number): number {
    const { memory } = this.kernels;
    const address = this.top;
    this.top += bytes;
    const missing = this.top - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.max(Math.ceil(missing / PAGE_BYTES), GROWTH_PAGES));
    return address;
  }
}

export function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

/** Round up to one of four sizes per power of two, so that blocks are used again although sentences differ. */
function sizeClass(bytes: number): number {
  if (bytes <= 4 * ALIGNMENT) return roundUp(Math.max(bytes, 1), ALIGNMENT);
  return roundUp(bytes, 2 ** (Math.floor(Math.log2(bytes)) - 2));
}
