/** The values that flow through a graph. */

import type { Heap, HeapBlock } from "./heap";
import { sizeOf, type ElementType, type HostArray } from "./onnx_file";

/** Floats in the heap. */
export class FloatTensor {
  constructor(
    readonly heap: Heap,
    readonly dims: readonly number[],
    readonly block: HeapBlock = heap.allocate(4 * sizeOf(dims)),
  ) {}

  static from(heap: Heap, values: Float32Array | Float64Array, dims: readonly number[]): FloatTensor {
    const tensor = new FloatTensor(heap, dims);
    tensor.values.set(values);
    return tensor;
  }

  get address(): number {
    return this.block.address;
  }

  get size(): number {
    return sizeOf(this.dims);
  }

  /** A view that is valid until the heap grows. */
  get values(): Float32Array {
    return this.heap.floats(this.address, this.size);
  }

  /** Return the same numbers in another shape. */
  reshape(dims: readonly number[]): FloatTensor {
    this.block.references++;
    return new FloatTensor(this.heap, dims, this.block);
  }

  release(): void {
    this.heap.release(this.block);
  }
}

/** Whole numbers, booleans, or the angles of positions: few, and computed in TypeScript. */
export class HostTensor {
  constructor(
    readonly type: ElementType,
    readonly dims: readonly number[],
    readonly values: Exclude<HostArray, Float32Array>,
  ) {}

  reshape(dims: readonly number[]): HostTensor {
    return new HostTensor(this.type, dims, this.values);
  }

  release(): void {
    // nothing in the heap
  }
}

/** Rows of 8-bit integers with a scale each, `padded` values per row. */
export class QuantizedTensor {
  constructor(
    readonly heap: Heap,
    readonly dims: readonly number[],
    readonly rows: HeapBlock,
    readonly scales: HeapBlock,
    readonly padded: number,
  ) {}

  release(): void {
    this.heap.release(this.rows);
    this.heap.release(this.scales);
  }
}

export type Tensor = FloatTensor | HostTensor | QuantizedTensor;

export function asFloat(tensor: Tensor | undefined): FloatTensor {
  if (!(tensor instanceof FloatTensor)) throw new TypeError("floats are expected");
  return tensor;
}

export function asHost(tensor: Tensor | undefined): HostTensor {
  if (!(tensor instanceof HostTensor)) throw new TypeError("whole numbers are expected");
  return tensor;
}
