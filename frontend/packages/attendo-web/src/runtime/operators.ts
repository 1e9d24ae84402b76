/** The operators of the graphs of `attendo export --to onnx`, after `fuse`. */

import { roundUp, type Heap } from "./heap";
import { sizeOf, type Constant, type ElementType, type GraphNode } from "./onnx_file";
import { asFloat, asHost, FloatTensor, HostTensor, QuantizedTensor, type Tensor } from "./tensors";

/** Computes the outputs of a node from its inputs. */
type Compute = (inputs: readonly Tensor[]) => Tensor[];

export interface PreparedNode {
  /** The names of what is computed from. */
  inputs: string[];
  compute: Compute;
  /** Free what was prepared. */
  release?: () => void;
}

type Prepare = (node: GraphNode, heap: Heap, constants: ReadonlyMap<string, Constant>) => PreparedNode;

/** Values per row are stored in groups. */
const GROUP = 4;
/** Columns of a block of packed weights. */
const COLUMNS = 8;
/** What Cast turns into: `TensorProto.DataType`. */
const FLOAT = 1;
const DOUBLE = 11;

/** Prepare a node: what depends on its constants and attributes alone is done once. */
export function prepare(node: GraphNode, heap: Heap, constants: ReadonlyMap<string, Constant>): PreparedNode {
  const operator = OPERATORS[node.operator];
  if (!operator) throw new Error(`the operator ${node.operator} is not supported`);
  return operator(node, heap, constants);
}

/** An operator with one output and nothing to prepare. */
function simple(compute: (inputs: readonly Tensor[], attributes: GraphNode["attributes"], heap: Heap) => Tensor): Prepare {
  return ({ inputs, attributes }, heap) => ({ inputs, compute: (values) => [compute(values, attributes, heap)] });
}

const OPERATORS: Record<string, Prepare> = {
  QuantizeRows: simple(([x], _, heap) => quantizeRows(asFloat(x), heap)),
  QuantizedLinear: prepareQuantizedLinear,
  Linear: prepareLinear,
  Attention: ({ inputs, attributes }, heap) => ({ inputs, compute: (values) => attend(values, attributes.divisor as number, heap) }),
  LayerNormalization: simple(normalizeLayer),
  Relu: simple(([x], _, heap) => mapFloats(asFloat(x), heap, heap.kernels.relu)),
  Erf: simple(([x], _, heap) => mapFloats(asFloat(x), heap, heap.kernels.erf)),
  Sigmoid: simple(([x], _, heap) => mapFloats(asFloat(x), heap, heap.kernels.sigmoid)),
  Add: simple(([x, y], _, heap) => combine(x!, y!, heap, heap.kernels.add, (one, other) => one + other)),
  Mul: simple(([x, y], _, heap) => combine(x!, y!, heap, heap.kernels.multiply, (one, other) => one * other)),
  Sub: simple(([x, y]) => broadcast(asHost(x), asHost(y), (one, other) => one - other)),
  And: simple(([x, y]) => broadcast(asHost(x), asHost(y), (one, other) => one & other)),
  Equal: simple(([x, y]) => broadcast(asHost(x), asHost(y), (one, other) => Number(one === other), "bool")),
  GreaterOrEqual: simple(([x, y]) => broadcast(asHost(x), asHost(y), (one, other) => Number(one >= other), "bool")),
  LessOrEqual: simple(([x, y]) => broadcast(asHost(x), asHost(y), (one, other) => Number(one <= other), "bool")),
  Not: simple(([x]) => mapHost(asHost(x), (value) => 1 - value)),
  Abs: simple(([x]) => mapHost(asHost(x), Math.abs)),
  Sin: simple(([x]) => mapHost(asHost(x), Math.sin)),
  Cos: simple(([x]) => mapHost(asHost(x), Math.cos)),
  Cast: simple(([x], { to }, heap) => cast(x!, to as number, heap)),
  DequantizeLinear: simple(dequantize),
  Gather: simple(([data, indices], _, heap) => gather(data!, asHost(indices), heap)),
  Shape: simple(([x], { start, end }) => integers(dimsOf(x!).slice(start as number, end as number))),
  Squeeze: simple(([x]) => asHost(x).reshape(asHost(x).dims.filter((size) => size !== 1))),
  Unsqueeze: simple(([x, axes]) => unsqueeze(x!, [...asHost(axes).values])),
  Range: simple(([start, end, step]) => range(scalarOf(start!), scalarOf(end!), scalarOf(step!))),
  Reshape: simple(([x, shape]) => reshape(x!, asHost(shape).values)),
  Flatten: simple(([x], { axis }) => flatten(x!, axis as number)),
  Transpose: simple(([x], { perm }, heap) => transpose(asFloat(x), perm as number[], heap)),
  Concat: simple(([x, y], { axis }, heap) => concatenate(x!, y!, axis as number, heap)),
  Expand: simple(([x, shape], _, heap) => expand(asFloat(x), [...asHost(shape).values], heap)),
  Pad: simple(([x, widths]) => padColumns(asHost(x), asHost(widths).values.at(-1)!)),
  Slice: simple(([x, , end]) => sliceColumns(asHost(x), scalarOf(end!))),
};

/* Products */

function quantizeRows(x: FloatTensor, heap: Heap): QuantizedTensor {
  const length = x.dims.at(-1)!;
  const [numRows, padded] = [x.size / length, roundUp(length, GROUP)];
  const rows = heap.allocate(numRows * padded * heap.kernels.value_bytes());
  const scales = heap.allocate(4 * numRows);
  heap.kernels.quantize_rows(x.address, numRows, length, padded, rows.address, scales.address, heap.mode);
  return new QuantizedTensor(heap, x.dims, rows, scales, padded);
}

function prepareQuantizedLinear({ inputs, attributes }: GraphNode, heap: Heap, constants: ReadonlyMap<string, Constant>): PreparedNode {
  const [rows, matrix, factors, added] = inputs;
  const { dims, values } = constants.get(matrix!)!;
  const [length, columns] = dims as [number, number];
  const [padded, width] = [roundUp(length, GROUP), roundUp(columns, COLUMNS)];
  const packed = heap.allocate(padded * width, true);
  const sums = heap.allocate(4 * width, true);
  const given = heap.allocate(values.length);
  heap.bytes(given.address, values.length).set(new Uint8Array(values.buffer, values.byteOffset, values.length));
  heap.kernels.pack_weights(given.address, length, columns, padded, packed.address, sums.address, heap.mode);
  heap.release(given);
  const scale = constants.get(factors!)!.values as Float32Array;
  const scales = heap.store(scale.length === 1 ? new Float32Array(columns).fill(scale[0]!) : scale, width);
  const bias = heap.store(added ? (constants.get(added)!.values as Float32Array) : new Float32Array(), width);
  const compute: Compute = ([x]) => {
    const quantized = x as QuantizedTensor;
    const out = new FloatTensor(heap, [...quantized.dims.slice(0, -1), columns]);
    const numRows = out.size / columns;
    const [from, to] = [quantized.rows.address, out.address];
    heap.kernels.multiply_quantized(from, quantized.scales.address, numRows, padded, packed.address, scales.address, sums.address, bias.address, to, columns, attributes.relu as number);
    return [out];
  };
  return { inputs: [rows!], compute, release: () => [packed, sums, scales, bias].forEach((block) => heap.release(block)) };
}

function prepareLinear({ inputs, attributes }: GraphNode, heap: Heap, constants: ReadonlyMap<string, Constant>): PreparedNode {
  const [rows, matrix, added] = inputs;
  const { dims, values } = constants.get(matrix!)!;
  const [length, columns] = dims as [number, number];
  const width = roundUp(columns, COLUMNS);
  const packed = heap.allocate(4 * length * width, true);
  const given = FloatTensor.from(heap, values as Float32Array, dims);
  heap.kernels.pack_floats(given.address, length, columns, packed.address);
  given.release();
  const bias = heap.store(added ? (constants.get(added)!.values as Float32Array) : new Float32Array(), width);
  const compute: Compute = ([input]) => {
    const x = asFloat(input);
    const out = new FloatTensor(heap, [...x.dims.slice(0, -1), columns]);
    heap.kernels.multiply_floats(x.address, x.size / length, length, packed.address, bias.address, out.address, columns, attributes.relu as number);
    return [out];
  };
  return { inputs: [rows!], compute, release: () => [packed, bias].forEach((block) => heap.release(block)) };
}

/* Layers */

function attend(inputs: readonly Tensor[], divisor: number, heap: Heap): Tensor[] {
  const [queries, keys, values] = inputs.map((one, index) => (index < 3 ? asFloat(one) : null)) as [FloatTensor, FloatTensor, FloatTensor];
  const [batches, heads, rows, keySize] = queries.dims as [number, number, number, number];
  const [numKeys, valueSize] = values.dims.slice(2) as [number, number];
  const { mask, batchStride, rowStride } = storeMask(asHost(inputs[3]), numKeys, heap);
  const switches = inputs[4] ? asFloat(inputs[4]).reshape([heads]) : FloatTensor.from(heap, new Float32Array(heads).fill(1), [heads]);
  const weights = new FloatTensor(heap, [batches, heads, rows, numKeys]);
  const out = new FloatTensor(heap, [batches, rows, heads * valueSize]);
  heap.kernels.attention(
    queries.address,
    keys.address,
    values.address,
    mask.address,
    batchStride,
    rowStride,
    switches.address,
    weights.address,
    out.address,
    batches,
    heads,
    rows,
    numKeys,
    keySize,
    valueSize,
    divisor,
  );
  heap.release(mask);
  switches.release();
  return [out, weights];
}

/** Copy a mask (T, S), (N, 1, 1, S) or (N, 1, T, S) into the heap. */
function storeMask({ dims, values }: HostTensor, numKeys: number, heap: Heap): { mask: ReturnType<Heap["allocate"]>; batchStride: number; rowStride: number } {
  const mask = heap.allocate(values.length);
  heap.bytes(mask.address, values.length).set(values as Uint8Array);
  const [batches, rows] = [dims.length === 4 ? dims[0]! : 1, dims.at(-2)!];
  return { mask, batchStride: batches === 1 ? 0 : rows * numKeys, rowStride: rows === 1 ? 0 : numKeys };
}

function normalizeLayer(inputs: readonly Tensor[], { epsilon }: GraphNode["attributes"], heap: Heap): FloatTensor {
  const [x, weight, bias] = inputs.map(asFloat) as [FloatTensor, FloatTensor, FloatTensor];
  const out = new FloatTensor(heap, x.dims);
  const length = x.dims.at(-1)!;
  heap.kernels.layer_norm(x.address, weight.address, bias.address, out.address, x.size / length, length, epsilon as number);
  return out;
}

function mapFloats(x: FloatTensor, heap: Heap, kernel: (x: number, out: number, count: number) => void): FloatTensor {
  const out = new FloatTensor(heap, x.dims);
  kernel(x.address, out.address, x.size);
  return out;
}

type BinaryKernel = (x: number, y: number, out: number, count: number, period: number) => void;

function combine(x: Tensor, y: Tensor, heap: Heap, kernel: BinaryKernel, operate: (x: number, y: number) => number): Tensor {
  if (x instanceof HostTensor) return broadcast(x, y instanceof FloatTensor ? new HostTensor("float64", y.dims, Float64Array.from(y.values)) : asHost(y), operate);
  const [first, second] = [asFloat(x), asFloat(y)];
  const dims = second.dims.slice(second.dims.findIndex((size) => size !== 1));
  const isRepeated = second.size === 1 || dims.every((size, index) => size === first.dims.at(index - dims.length));
  if (!isRepeated) throw new Error("sums and products repeat the second operand along the first axes only");
  const out = new FloatTensor(heap, first.dims);
  if (second.size > 1) {
    kernel(first.address, second.address, out.address, first.size, second.size);
    return out;
  }
  const number = second.values[0]!;
  const row = FloatTensor.from(heap, new Float32Array(first.dims.at(-1)!).fill(number), [first.dims.at(-1)!]);
  kernel(first.address, row.address, out.address, first.size, row.size);
  row.release();
  return out;
}

/* Numbers outside the heap */

const ARRAYS = { int64: Int32Array, float64: Float64Array, bool: Uint8Array, uint8: Uint8Array, int8: Int8Array } as const;

function broadcast(x: HostTensor, y: HostTensor, operate: (x: number, y: number) => number, type: Exclude<ElementType, "float32"> = x.type as "int64"): HostTensor {
  const rank = Math.max(x.dims.length, y.dims.length);
  const [first, second] = [x, y].map(({ dims }) => [...Array<number>(rank - dims.length).fill(1), ...dims]) as [number[], number[]];
  const dims = first.map((size, axis) => (size === 1 ? second[axis]! : size));
  const values = new ARRAYS[type](sizeOf(dims));
  const at = Array<number>(rank).fill(0);
  for (let index = 0; index < values.length; index++) {
    values[index] = operate(x.values[offsetOf(at, first)]!, y.values[offsetOf(at, second)]!);
    for (let axis = rank - 1; axis >= 0; axis--) {
      at[axis] = (at[axis]! + 1) % dims[axis]!;
      if (at[axis] !== 0) break;
    }
  }
  return new HostTensor(type, dims, values);
}

function offsetOf(at: readonly number[], dims: readonly number[]): number {
  return dims.reduce((offset, size, axis) => offset * size + (size === 1 ? 0 : at[axis]!), 0);
}

function mapHost(x: HostTensor, operate: (value: number) => number): HostTensor {
  return new HostTensor(x.type, x.dims, x.values.map(operate) as HostTensor["values"]);
}

function cast(x: Tensor, to: number, heap: Heap): Tensor {
  if (x instanceof FloatTensor) return x.reshape(x.dims);
  const { type, dims, values } = asHost(x);
  if (to === FLOAT && type === "float64") return FloatTensor.from(heap, values as Float64Array, dims);
  // Positions are computed here, whichever type they have.
  return to === FLOAT || to === DOUBLE ? new HostTensor("float64", dims, Float64Array.from(values)) : new HostTensor(type, dims, values);
}

function dequantize([x, scale, zero]: readonly Tensor[], _: GraphNode["attributes"], heap: Heap): FloatTensor {
  const { dims, values } = asHost(x);
  const [factor, origin] = [asFloat(scale).values[0]!, zero ? scalarOf(zero) : 0];
  const out = new FloatTensor(heap, dims);
  const target = out.values;
  for (let index = 0; index < values.length; index++) target[index] = (values[index]! - origin) * factor;
  return out;
}

function gather(data: Tensor, { dims: indexDims, values: indices }: HostTensor, heap: Heap): Tensor {
  const rowDims = dimsOf(data).slice(1);
  const [size, dims] = [sizeOf(rowDims), [...indexDims, ...rowDims]];
  const copy = (source: { length: number; subarray: (from: number, to: number) => ArrayLike<number> }, target: { set: (row: ArrayLike<number>, offset: number) => void }): void => {
    indices.forEach((row, position) => {
      if (row < 0 || (row + 1) * size > source.length) throw new RangeError(`no row ${String(row)} in a table`);
      target.set(source.subarray(row * size, (row + 1) * size), position * size);
    });
  };
  if (data instanceof FloatTensor) {
    const out = new FloatTensor(heap, dims);
    copy(data.values, out.values);
    return out;
  }
  const { type, values } = asHost(data);
  const rows = new ARRAYS[type as "int8"](sizeOf(dims));
  copy(values, rows);
  return new HostTensor(type, dims, rows);
}

function range(start: number, end: number, step: number): HostTensor {
  return integers(Array.from({ length: Math.max(Math.ceil((end - start) / step), 0) }, (_, index) => start + index * step));
}

/* Shapes */

function dimsOf(tensor: Tensor): readonly number[] {
  return tensor.dims;
}

function integers(values: readonly number[]): HostTensor {
  return new HostTensor("int64", [values.length], Int32Array.from(values));
}

function scalarOf(tensor: Tensor): number {
  return asHost(tensor).values[0]!;
}

function withDims(x: Tensor, dims: number[]): Tensor {
  return x instanceof FloatTensor ? x.reshape(dims) : asHost(x).reshape(dims);
}

function unsqueeze(x: Tensor, axes: readonly number[]): Tensor {
  const dims = [...dimsOf(x)];
  for (const axis of axes) dims.splice(axis, 0, 1);
  return withDims(x, dims);
}

function reshape(x: Tensor, shape: ArrayLike<number>): Tensor {
  const given = dimsOf(x);
  const dims = Array.from(shape, (size, axis) => (size === 0 ? given[axis]! : size));
  const open = dims.indexOf(-1);
  if (open >= 0) dims[open] = sizeOf(given) / -sizeOf(dims);
  return withDims(x, dims);
}

function flatten(x: Tensor, axis: number): Tensor {
  const dims = dimsOf(x);
  return withDims(x, [sizeOf(dims.slice(0, axis)), sizeOf(dims.slice(axis))]);
}

function transpose(x: FloatTensor, perm: readonly number[], heap: Heap): FloatTensor {
  if (perm.join() !== "0,2,1,3") throw new Error(`axes in the order ${perm.join()} are not supported`);
  const [batches, rows, columns, size] = x.dims as [number, number, number, number];
  if (rows === 1 || columns === 1) return x.reshape([batches, columns, rows, size]);
  const out = new FloatTensor(heap, [batches, columns, rows, size]);
  heap.kernels.swap_middle_axes(x.address, out.address, batches, rows, columns, size);
  return out;
}

function concatenate(x: Tensor, y: Tensor, axis: number, heap: Heap): Tensor {
  const [first, second] = [dimsOf(x), dimsOf(y)];
  const position = axis < 0 ? axis + first.length : axis;
  const dims = first.map((size, index) => (index === position ? size + second[index]! : size));
  const [firstSize, secondSize] = [sizeOf(first.slice(position)), sizeOf(second.slice(position))];
  const count = sizeOf(dims.slice(0, position));
  if (x instanceof FloatTensor) {
    const out = new FloatTensor(heap, dims);
    heap.kernels.concatenate(x.address, asFloat(y).address, out.address, count, firstSize, secondSize);
    return out;
  }
  const [one, other] = [asHost(x), asHost(y)];
  const values = new ARRAYS[one.type as "float64"](sizeOf(dims));
  for (let row = 0; row < count; row++) {
    values.set(one.values.subarray(row * firstSize, (row + 1) * firstSize), row * (firstSize + secondSize));
    values.set(other.values.subarray(row * secondSize, (row + 1) * secondSize), row * (firstSize + secondSize) + firstSize);
  }
  return new HostTensor(one.type, dims, values);
}

/** Repeat a tensor along new first axes; the last axis is its own. */
function expand(x: FloatTensor, shape: readonly number[], heap: Heap): FloatTensor {
  const dims = [...shape.slice(0, -1), x.dims.at(-1)!];
  const out = new FloatTensor(heap, dims);
  for (let offset = 0; offset < out.size; offset += x.size) out.values.set(x.values, offset);
  return out;
}

function padColumns(x: HostTensor, width: number): HostTensor {
  const [rows, columns] = x.dims as [number, number];
  const padded = new Float64Array(rows * (columns + width));
  for (let row = 0; row < rows; row++) padded.set(x.values.subarray(row * columns, (row + 1) * columns), row * (columns + width));
  return new HostTensor(x.type, [rows, columns + width], padded);
}

function sliceColumns(x: HostTensor, end: number): HostTensor {
  const [rows, columns] = x.dims as [number, number];
  const cut = new Float64Array(rows * end);
  for (let row = 0; row < rows; row++) cut.set(x.values.subarray(row * columns, row * columns + end), row * end);
  return new HostTensor(x.type, [rows, end], cut);
}
