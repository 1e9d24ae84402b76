/** Which attention weights are shown (a kind, layers, heads), and the weights of one token among them. */

import { KINDS, type Kind, type InspectionRecord, type Weights } from "../record/record";
import { type Axes, axesOf, joinUnits } from "./token-units";

export type Mode = "one" | "several" | "all" | "mean";

export interface Choice {
  kind: Kind;
  /** A layer, or "all": the mean of the layers. */
  layer: number | "all";
  mode: Mode;
  /** The heads in the modes "one" and "several". */
  heads: number[];
  byWords: boolean;
}

/** The weights of one head, or (head null) the mean of all heads. */
export interface WeightMatrix {
  head: number | null;
  numRows: number;
  numColumns: number;
  values: Float32Array;
}

export interface View {
  axes: Axes;
  matrices: WeightMatrix[];
}

export interface Link {
  index: number;
  weight: number;
}

export interface TokenRef { side: "row" | "column"; index: number }

/** The kinds of attention that the model has, the most informative one first. */
export function kindsOf(record: InspectionRecord): Kind[] {
  return KINDS.filter((kind) => record.attention[kind] !== null);
}

/** Start with the head that is most like a word alignment; for a series, with the most focused one. */
export function firstChoice(record: InspectionRecord): Choice | null {
  const [kind] = kindsOf(record);
  if (!kind) return null;
  const best = bestHead(record, kind);
  return { kind, layer: best.layer, mode: "one", heads: [best.head], byWords: false };
}

export function bestHead(record: InspectionRecord, kind: Kind): { layer: number; head: number } {
  let best = { layer: 0, head: 0, value: -Infinity };
  record.measures[kind].forEach((layer, l) => {
    layer.forEach((metrics, h) => {
      const value = (kind === "cross" && !record.series ? metrics.alignment : metrics.focus) ?? -Infinity;
      if (value > best.value) best = { layer: l, head: h, value };
    });
  });
  return { layer: best.layer, head: best.head };
}

/** Apply a change to a choice and keep it valid: layers and heads that exist, at least one head. */
export function choose(record: InspectionRecord, old: Choice, change: Partial<Choice>): Choice {
  const next = { ...old, ...change };
  const weights = record.attention[next.kind];
  if (!weights) return old;
  if (next.layer !== "all") next.layer = Math.min(Math.max(next.layer, 0), weights.layers - 1);
  const heads = [...new Set(next.heads)].filter((head) => head >= 0 && head < weights.heads).sort((a, b) => a - b);
  next.heads = heads.length ? heads : [0];
  if (weights.heads === 1) next.mode = "one"; // the only head is also all heads and their mean
  if (next.mode === "one") next.heads = next.heads.slice(0, 1);
  return next;
}

/** Select a head alone, or (add, or in the mode "several") toggle it; the modes "all" and "mean" end. */
export function toggleHead(record: InspectionRecord, old: Choice, head: number, add: boolean): Choice {
  if (head >= numHeads(record, old.kind)) return old;
  if (!add && old.mode !== "several") return choose(record, old, { mode: "one", heads: [head] });
  const before = old.mode === "all" ? range(numHeads(record, old.kind)) : old.mode === "mean" ? [] : old.heads;
  const isSelected = before.includes(head);
  if (isSelected && before.length === 1) return old; // at least one head stays selected
  const heads = isSelected ? before.filter((one) => one !== head) : [...before, head];
  return choose(record, old, { mode: "several", heads });
}

/** The heads that are shown, in order; none for the mean. */
export function headsOf(record: InspectionRecord, choice: Choice): number[] {
  if (choice.mode === "mean") return [];
  return choice.mode === "all" ? range(numHeads(record, choice.kind)) : choice.heads;
}

/** The weights of a choice, one matrix per head, by tokens or by words. */
export function viewOf(record: InspectionRecord, choice: Choice): View {
  const weights = record.attention[choice.kind]!;
  const axes = axesOf(record, choice.kind, choice.byWords);
  const layers = choice.layer === "all" ? range(weights.layers) : [choice.layer];
  const groups = choice.mode === "mean" ? [null] : headsOf(record, choice);
  const matrices = groups.map((head) => {
    const tokens = meanOf(weights, layers, head === null ? range(weights.heads) : [head]);
    const values = choice.byWords ? joinUnits(tokens, axes) : tokens;
    return { head, values, numRows: axes.rows.length, numColumns: axes.columns.length };
  });
  return { axes, matrices };
}

/** The weights of one layer and head, without a copy. */
export function headOf(weights: Weights, layer: number, head: number): Float32Array {
  const size = weights.rows * weights.columns;
  const start = (layer * weights.heads + head) * size;
  return weights.data.subarray(start, start + size);
}

export function meanOf(weights: Weights, layers: number[], heads: number[]): Float32Array {
  const parts = layers.flatMap((layer) => heads.map((head) => headOf(weights, layer, head)));
  return parts.length === 1 ? parts[0] : meanOfArrays(parts);
}

/** The weights of one row over the columns, or of one column over the rows. */
export function weightsAt(matrix: WeightMatrix, end: TokenRef): Float32Array {
  const { values, numRows, numColumns } = matrix;
  if (end.side === "row") return values.subarray(end.index * numColumns, (end.index + 1) * numColumns);
  return Float32Array.from({ length: numRows }, (_, row) => values[row * numColumns + end.index]);
}

/** The weights of one token, averaged over the matrices. */
export function meanAt(matrices: WeightMatrix[], end: TokenRef): Float32Array {
  return meanOfArrays(matrices.map((matrix) => weightsAt(matrix, end)));
}

/** The mean of the matrices. */
export function meanMatrix(matrices: WeightMatrix[]): Float32Array {
  return matrices.length === 1 ? matrices[0].values : meanOfArrays(matrices.map((matrix) => matrix.values));
}

/** The largest weights, largest first, none below `floor`. */
export function strongest(weights: Float32Array, limit: number, floor = 0): Link[] {
  const links = Array.from(weights, (weight, index) => ({ index, weight }));
  return links
    .filter((link) => link.weight >= floor)
    .sort((a, b) => b.weight - a.weight || a.index - b.index)
    .slice(0, limit);
}

export function range(size: number): number[] {
  return Array.from({ length: size }, (_, index) => index);
}

function numHeads(record: InspectionRecord, kind: Kind): number {
  return record.attention[kind]?.heads ?? 0;
}

function meanOfArrays(parts: Float32Array[]): Float32Array {
  const mean = new Float32Array(parts[0]?.length ?? 0);
  for (const part of parts) part.forEach((value, index) => (mean[index] += value / parts.length));
  return mean;
}
