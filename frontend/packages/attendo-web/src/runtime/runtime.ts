/**
 * Runs the ONNX graphs of `attendo export` by a small WebAssembly module, with the interface of ONNX Runtime.
 *
 * It has the operators of these graphs only, and is smaller and faster for them: ONNX Runtime Web multiplies 8-bit
 * integers no faster than floats.
 */

import type { OnnxRuntime, OnnxSession, OnnxTensor } from "../model/session";

import { fuse } from "./fusion";
import { Heap } from "./heap";
import { readOnnxFile, sizeOf, type Constant } from "./onnx_file";
import { prepare, type PreparedNode } from "./operators";
import { asFloat, FloatTensor, HostTensor, type Tensor } from "./tensors";

export interface RuntimeOptions {
  /** Use relaxed SIMD where the browser has it. */
  relaxed?: boolean;
}

/** Return a runtime with a memory of its own, which is freed with everything that refers to it. */
export async function createRuntime(options: RuntimeOptions = {}): Promise<OnnxRuntime> {
  const heap = await Heap.create(options);
  return {
    Tensor: GivenTensor,
    InferenceSession: { create: (model) => Promise.resolve(new Session(heap, model)) },
  };
}

type GivenData = Float32Array | BigInt64Array | Uint8Array;

/** A tensor made by the caller. */
class GivenTensor implements OnnxTensor {
  readonly data: GivenData;

  constructor(_type: string, data: unknown, readonly dims: readonly number[]) {
    this.data = data as GivenData;
  }

  dispose(): void {
    // nothing in the heap
  }

  toTensor(heap: Heap): Tensor {
    const { data, dims } = this;
    if (data instanceof Float32Array) return FloatTensor.from(heap, data, dims);
    return data instanceof BigInt64Array ? new HostTensor("int64", dims, Int32Array.from(data, Number)) : new HostTensor("bool", dims, data);
  }
}

/** An output, which stays in the heap until it is disposed of. */
class ResultTensor implements OnnxTensor {
  constructor(private readonly tensor: FloatTensor | HostTensor) {}

  get dims(): readonly number[] {
    return this.tensor.dims;
  }

  /** A copy of the numbers. */
  get data(): GivenData {
    return this.tensor.values.slice() as GivenData;
  }

  dispose(): void {
    this.tensor.release();
  }

  toTensor(): Tensor {
    return this.tensor.reshape(this.tensor.dims);
  }

  logSoftmax(): Float32Array {
    const { tensor, rows, length, normalizers } = this.normalize();
    const { heap } = tensor;
    const block = heap.allocate(8 * rows);
    new Float64Array(heap.kernels.memory.buffer, block.address, rows).set(normalizers);
    heap.kernels.subtract_from_rows(tensor.address, rows, length, block.address);
    heap.release(block);
    return tensor.values.slice();
  }

  /** Return the most probable index of each row, and its log-probability. */
  best(excluded: readonly number[]): { ids: number[]; logProbs: number[] } {
    const { tensor, rows, length, normalizers } = this.normalize();
    const { heap, values } = tensor;
    for (let row = 0; row < rows; row++) for (const id of excluded) values[row * length + id] = -Infinity;
    const block = heap.allocate(4 * rows);
    heap.kernels.arg_max(tensor.address, rows, length, block.address);
    const ids = [...new Int32Array(heap.kernels.memory.buffer, block.address, rows)];
    heap.release(block);
    return { ids, logProbs: ids.map((id, row) => Math.fround(tensor.values[row * length + id]! - normalizers[row]!)) };
  }

  /** Return log(sum(e^x)) of each row of logits. */
  private normalize(): { tensor: FloatTensor; rows: number; length: number; normalizers: number[] } {
    const tensor = asFloat(this.tensor);
    const { heap } = tensor;
    const length = tensor.dims.at(-1)!;
    const rows = tensor.size / length;
    const [highest, sums] = [heap.allocate(4 * rows), heap.allocate(8 * rows)];
    heap.kernels.normalizers(tensor.address, rows, length, highest.address, sums.address);
    const found = Array.from(heap.floats(highest.address, rows));
    const normalizers = Array.from(new Float64Array(heap.kernels.memory.buffer, sums.address, rows), (sum, row) => found[row]! + Math.log(sum));
    heap.release(highest);
    heap.release(sums);
    return { tensor, rows, length, normalizers };
  }

  takeRows(rows: readonly number[]): OnnxTensor {
    const { dims, tensor } = { dims: [rows.length, ...this.dims.slice(1)], tensor: this.tensor };
    const size = sizeOf(dims) / rows.length;
    const taken = tensor instanceof FloatTensor ? new FloatTensor(tensor.heap, dims) : new HostTensor(tensor.type, dims, new Uint8Array(sizeOf(dims)));
    const [source, target] = [tensor.values, taken.values];
    rows.forEach((row, index) => target.set(source.subarray(row * size, (row + 1) * size), index * size));
    return new ResultTensor(taken);
  }
}

interface Step extends PreparedNode {
  slots: number[];
  outputs: number[];
  /** Slots whose values are not needed after this step. */
  last: number[];
}

class Session implements OnnxSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  private readonly steps: Step[];
  private readonly slotOf = new Map<string, number>();
  /** The constants in their slots. */
  private readonly constants: (Tensor | undefined)[] = [];

  constructor(
    private readonly heap: Heap,
    model: Uint8Array,
  ) {
    const graph = readOnnxFile(model);
    this.inputNames = graph.inputs;
    this.outputNames = graph.outputs;
    fuse(graph);
    const prepared = graph.nodes.map((node) => ({ ...prepare(node, heap, graph.constants), results: node.outputs }));
    for (const { inputs } of prepared) for (const name of inputs) this.addConstant(name, graph.constants);
    this.steps = prepared.map(({ results, ...step }) => ({
      ...step,
      slots: step.inputs.map((name) => this.slot(name)),
      outputs: results.map((name) => this.slot(name)),
      last: [],
    }));
    this.findLastUses();
  }

  async run(feeds: Record<string, OnnxTensor>, fetches: readonly string[] = this.outputNames): Promise<Record<string, OnnxTensor>> {
    const values = [...this.constants];
    const release = (slot: number): void => {
      if (!this.constants[slot]) values[slot]?.release();
      values[slot] = undefined;
    };
    const wanted = fetches.map((name) => this.slot(name));
    try {
      for (const name of this.inputNames) {
        const given = feeds[name];
        if (!given) throw new Error(`the input ${name} is missing`);
        values[this.slot(name)] = (given as GivenTensor | ResultTensor).toTensor(this.heap);
      }
      for (const { slots, outputs, compute, last } of this.steps) {
        const results = compute(slots.map((slot) => values[slot]!));
        outputs.forEach((slot, index) => (values[slot] = results[index]));
        for (const slot of last) if (!wanted.includes(slot)) release(slot);
      }
      return Object.fromEntries(fetches.map((name, index) => [name, this.take(name, values[wanted[index]!])]));
    } finally {
      values.forEach((_, slot) => release(slot));
    }
  }

  release(): Promise<void> {
    for (const step of this.steps) step.release?.();
    for (const constant of this.constants) constant?.release();
    this.steps.length = this.constants.length = 0;
    return Promise.resolve();
  }

  /** Return an output, which outlives the run. */
  private take(name: string, value: Tensor | undefined): OnnxTensor {
    if (!(value instanceof FloatTensor || value instanceof HostTensor)) throw new Error(`there is no output ${name}`);
    return new ResultTensor(value.reshape(value.dims));
  }

  private slot(name: string): number {
    const slot = this.slotOf.get(name) ?? this.slotOf.size;
    this.slotOf.set(name, slot);
    return slot;
  }

  private addConstant(name: string, constants: ReadonlyMap<string, Constant>): void {
    const constant = constants.get(name);
    if (!constant || this.slotOf.has(name)) return;
    const { type, dims, values } = constant;
    this.constants[this.slot(name)] = values instanceof Float32Array ? new FloatTensor(this.heap, dims, this.heap.store(values)) : new HostTensor(type, dims, values);
  }

  private findLastUses(): void {
    const lastStep = new Map<number, Step>();
    for (const step of this.steps) for (const slot of [...step.slots, ...step.outputs]) lastStep.set(slot, step);
    for (const [slot, step] of lastStep) if (!this.constants[slot]) step.last.push(slot);
  }
}

