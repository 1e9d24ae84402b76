/** Reads ONNX files, as far as those of `attendo export --to onnx` and its quantization go. */

import { readFields, readPacked, type FieldValue } from "../protobuf";

export type ElementType = "float32" | "float64" | "int64" | "bool" | "uint8" | "int8";

export type HostArray = Float32Array | Float64Array | Int32Array | Uint8Array | Int8Array;

/** A tensor of the file. */
export interface Constant {
  type: ElementType;
  dims: number[];
  values: HostArray;
}

export interface GraphNode {
  operator: string;
  inputs: string[];
  outputs: string[];
  /** The numbers and lists of numbers among the attributes. */
  attributes: Record<string, number | number[]>;
}

export interface OnnxGraph {
  nodes: GraphNode[];
  constants: Map<string, Constant>;
  inputs: string[];
  outputs: string[];
}

const MODEL = { graph: 7 };
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 };
const NODE = { input: 1, output: 2, operator: 4, attribute: 5 };
const ATTRIBUTE = { name: 1, float: 2, int: 3, ints: 8 };
const TENSOR = { dims: 1, type: 2, floats: 4, ints32: 5, ints64: 7, name: 8, raw: 9, externalData: 13 };
const VALUE = { name: 1 };
/** The types of `TensorProto.DataType`. */
export const TYPES: Record<number, ElementType | "float16"> = { 1: "float32", 2: "uint8", 3: "int8", 7: "int64", 9: "bool", 10: "float16", 11: "float64" };

const decoder = new TextDecoder();

/** Return the graph of a file; throw an error if it is damaged. */
export function readOnnxFile(bytes: Uint8Array): OnnxGraph {
  for (const [field, value] of readFields(bytes)) if (field === MODEL.graph) return readGraph(value as Uint8Array);
  throw new Error("the file has no graph");
}

function readGraph(bytes: Uint8Array): OnnxGraph {
  const graph: OnnxGraph = { nodes: [], constants: new Map(), inputs: [], outputs: [] };
  for (const [field, value] of readFields(bytes)) {
    if (field === GRAPH.node) graph.nodes.push(readNode(value as Uint8Array));
    else if (field === GRAPH.initializer) graph.constants.set(...readTensor(value as Uint8Array));
    else if (field === GRAPH.input) graph.inputs.push(readName(value as Uint8Array));
    else if (field === GRAPH.output) graph.outputs.push(readName(value as Uint8Array));
  }
  return graph;
}

function readName(bytes: Uint8Array): string {
  for (const [field, value] of readFields(bytes)) if (field === VALUE.name) return decoder.decode(value as Uint8Array);
  return "";
}

function readNode(bytes: Uint8Array): GraphNode {
  const node: GraphNode = { operator: "", inputs: [], outputs: [], attributes: {} };
  for (const [field, value] of readFields(bytes)) {
    if (field === NODE.input) node.inputs.push(decoder.decode(value as Uint8Array));
    else if (field === NODE.output) node.outputs.push(decoder.decode(value as Uint8Array));
    else if (field === NODE.operator) node.operator = decoder.decode(value as Uint8Array);
    else if (field === NODE.attribute) readAttribute(value as Uint8Array, node.attributes);
  }
  return node;
}

function readAttribute(bytes: Uint8Array, attributes: GraphNode["attributes"]): void {
  let name = "";
  let number: number | null = null;
  const numbers: number[] = [];
  for (const [field, value] of readFields(bytes)) {
    if (field === ATTRIBUTE.name) name = decoder.decode(value as Uint8Array);
    else if (field === ATTRIBUTE.float || field === ATTRIBUTE.int) number = value as number;
    else if (field === ATTRIBUTE.ints) numbers.push(...toNumbers(value));
  }
  attributes[name] = number ?? numbers;
}

function toNumbers(value: FieldValue): number[] {
  return typeof value === "number" ? [value] : readPacked(value);
}

function readTensor(bytes: Uint8Array): [string, Constant] {
  const fields = new Map<number, FieldValue[]>();
  for (const [field, value] of readFields(bytes)) fields.set(field, [...(fields.get(field) ?? []), value]);
  const all = (field: number): FieldValue[] => fields.get(field) ?? [];
  const code = Number(all(TENSOR.type)[0]);
  const stored = TYPES[code];
  if (!stored) throw new Error(`tensors of type ${String(code)} are not supported`);
  if (fields.has(TENSOR.externalData)) throw new Error("weights outside the file are not supported");
  const dims = all(TENSOR.dims).flatMap(toNumbers);
  const [raw] = all(TENSOR.raw) as Uint8Array[];
  const numbers = [...all(TENSOR.floats).flatMap(toFloats), ...all(TENSOR.ints32).flatMap(toNumbers), ...all(TENSOR.ints64).flatMap(toNumbers)];
  // A copy is aligned, and does not keep the file in memory.
  const values = raw ? viewOf(stored, raw.slice().buffer) : arrayOf(stored, numbers);
  if (values.length !== sizeOf(dims)) throw new Error("the file is damaged");
  const type = stored === "float16" ? "float32" : stored;
  return [decoder.decode(all(TENSOR.name)[0] as Uint8Array), { type, dims, values }];
}

function toFloats(value: FieldValue): number[] {
  return typeof value === "number" ? [value] : [...new Float32Array(value.slice().buffer)];
}

function viewOf(type: ElementType | "float16", buffer: ArrayBuffer): HostArray {
  if (type === "float32") return new Float32Array(buffer);
  if (type === "float64") return new Float64Array(buffer);
  if (type === "int64") return Int32Array.from(new BigInt64Array(buffer), Number);
  if (type === "int8") return new Int8Array(buffer);
  if (type === "float16") return decodeFloat16(new Uint16Array(buffer));
  return new Uint8Array(buffer);
}

function arrayOf(type: ElementType | "float16", numbers: number[]): HostArray {
  if (type === "float32" || type === "float16") return Float32Array.from(numbers);
  if (type === "float64") return Float64Array.from(numbers);
  if (type === "int64") return Int32Array.from(numbers);
  return type === "int8" ? Int8Array.from(numbers) : Uint8Array.from(numbers);
}

function decodeFloat16(codes: Uint16Array): Float32Array {
  const result = new Float32Array(codes.length);
  codes.forEach((code, index) => {
    const [exponent, fraction] = [(code >> 10) & 31, code & 1023];
    const magnitude = exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction / 1024) * 2 ** (exponent - 15);
    result[index] = code & 0x8000 ? -magnitude : magnitude;
  });
  return result;
}

/** Return the number of elements of a tensor. */
export function sizeOf(dims: readonly number[]): number {
  return dims.reduce((product, size) => product * size, 1);
}
