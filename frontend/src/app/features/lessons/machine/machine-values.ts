/** The tensors of one forward pass as the server sends them: see `attendo.inspection.stage_values`. */

import { invalid } from "../../../../inspector/record/errors";
import { decodeF16 } from "../../../../inspector/record/packed";
import { array, boolean, count, type Infer, nullable, number, object, oneOf, type Schema, string } from "../../../../inspector/record/schema";
import type { HeatmapPanel } from "../schemas";

export const PART_NAMES = ["embedding", "positions", "total", "output", "input", "sublayer", "sum", "normed"] as const;
const START_PIECE = "<s>";
const packed = { encoding: oneOf("f16"), data: string };
const matrix = (value: unknown, path: string) => {
  const { data, ...rest } = object({ name: oneOf(...PART_NAMES), num_rows: count, num_columns: count, ...packed })(value, path);
  const values = decodeF16(data);
  if (values.length !== rest.num_rows * rest.num_columns) throw invalid(`${path}.data`, `${rest.num_rows} x ${rest.num_columns} values`);
  return { ...rest, values };
};
export type StageMatrix = ReturnType<typeof matrix>;

const TENSORS = ["queries", "keys", "values", "scores", "weights", "heads"] as const;
type Tensors = Record<(typeof TENSORS)[number], Float32Array>;
const attention = (value: unknown, path: string) => {
  const sizes = object({ num_heads: count, num_rows: count, num_columns: count, d_k: count, d_v: count, is_masked: boolean, encoding: oneOf("f16") })(value, path);
  const texts = object({ queries: string, keys: string, values: string, scores: string, weights: string, heads: string })(value, path);
  const { num_heads: heads, num_rows: rows, num_columns: columns, d_k, d_v } = sizes;
  const lengths = { queries: rows * d_k, keys: columns * d_k, values: columns * d_v, scores: rows * columns, weights: rows * columns, heads: rows * d_v };
  const tensors = Object.fromEntries(TENSORS.map((name) => [name, decodeF16(texts[name])])) as Tensors;
  for (const name of TENSORS) if (tensors[name].length !== heads * lengths[name]) throw invalid(`${path}.${name}`, `${heads} x ${lengths[name]} values`);
  return { ...sizes, ...tensors };
};
export type Attention = ReturnType<typeof attention>;

function record<T>(schema: Schema<T>): Schema<Record<string, T>> {
  return (value, path) => {
    if (typeof value !== "object" || value === null) throw invalid(path, "an object");
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, schema(one, `${path}.${name}`)]));
  };
}

const step = object({ top: array(object({ word: string, logit: number, probability: number })), chosen: count });
export const machineValues = object({
  model: nullable(string),
  text: string,
  src: array(string),
  tgt: array(string),
  start: string,
  layer: count,
  num_layers: count,
  num_decoder_layers: count,
  d_model: count,
  stages: record(array(matrix)),
  attention: record(attention),
  steps: array(step),
});
export type MachineValues = Infer<typeof machineValues>;

/** The same with the labels of the pieces, which show neither the marks of subwords nor the symbols of the vocabulary. The built-in example has whole words. */
export function labelPieces(values: MachineValues, labelOf: (piece: string) => string): MachineValues {
  if (values.model === null) return values;
  const steps = values.steps.map(({ top, chosen }) => ({ chosen, top: top.map((one) => ({ ...one, word: labelOf(one.word) })) }));
  return { ...values, src: values.src.map(labelOf), tgt: values.tgt.map(labelOf), start: labelOf(START_PIECE), steps };
}

/** A part of the machine that reads the source; the others read the words written so far. */
export const isSource = (stage: string): boolean => stage.startsWith("src") || stage.startsWith("encoder");

/** The words of the rows that a stage shows at a step: all of the source, or what the decoder has read. */
export function rowWords(values: MachineValues, stage: string, step: number): string[] {
  return isSource(stage) ? values.src : [values.start, ...values.tgt].slice(0, step + 1);
}

/** The first rows of a matrix as a panel of colors. The darkest color stays the same at every step. */
export function panelOf({ values, num_columns: numColumns }: Pick<StageMatrix, "values" | "num_columns">, rows: string[], title: string): HeatmapPanel {
  const limit = values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
  const shown = values.slice(0, rows.length * numColumns);
  return { kind: "heatmap", title, rows, columns: null, row_label: "", column_label: "", num_rows: rows.length, num_columns: numColumns, limit, is_signed: true, digits: null, encoding: "f16", data: "", values: shown };
}

/** One head of a tensor (heads, rows, columns). */
export function headOf(tensor: Float32Array, numHeads: number, head: number): Float32Array {
  const size = tensor.length / numHeads;
  return tensor.slice(head * size, (head + 1) * size);
}

export interface DotProduct {
  /** The products with the largest size, the largest first, and where they are. */
  largest: { index: number; q: number; k: number; product: number }[];
  /** The sum of all products. */
  sum: number;
  /** The score: the sum, divided by √d_k if the model scales. */
  score: number;
  /** The share of the softmax; null where the mask hides the key. */
  weight: number | null;
  isScaled: boolean;
}

/** How a cell of the attention matrix was computed. */
export function explainCell(one: Attention, head: number, row: number, column: number, numShown = 4): DotProduct {
  const { d_k: size, num_heads: numHeads, num_columns: numColumns } = one;
  const query = headOf(one.queries, numHeads, head).slice(row * size, (row + 1) * size);
  const key = headOf(one.keys, numHeads, head).slice(column * size, (column + 1) * size);
  const products = Array.from(query, (q, index) => ({ index, q, k: key[index], product: q * key[index] }));
  const sum = products.reduce((total, { product }) => total + product, 0);
  const score = headOf(one.scores, numHeads, head)[row * numColumns + column];
  const weight = headOf(one.weights, numHeads, head)[row * numColumns + column];
  const isHidden = one.is_masked && column > row;
  const largest = [...products].sort((a, b) => Math.abs(b.product) - Math.abs(a.product)).slice(0, numShown);
  const isScaled = Math.abs(sum / Math.sqrt(size) - score) <= Math.abs(sum - score);
  return { largest, sum, score, weight: isHidden ? null : weight, isScaled };
}
