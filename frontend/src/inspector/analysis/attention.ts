/** Which weights are looked at: a kind, layers, heads; and what a word gives or gets under them. */

import { KINDS, type Kind, type LookRecord, type Weights } from "../record/types";
import { type Axes, axesOf, joinUnits } from "./token-units";

export type Mode = "one" | "several" | "all" | "mean";

export interface Choice {
  kind: Kind;
  /** A layer, or "all": the mean over the layers. */
  layer: number | "all";
  mode: Mode;
  /** The heads of the modes "one" and "several". */
  heads: number[];
  byWords: boolean;
}

/** One picture of weights: of one head, or (head null) of the mean of all. */
export interface Sheet {
  head: number | null;
  numRows: number;
  numColumns: number;
  values: Float32Array;
}

export interface View {
  axes: Axes;
  sheets: Sheet[];
}

export interface Link {
  index: number;
  weight: number;
}

export interface End { side: "row" | "column"; index: number }

/** The kinds that this model has, the most telling one first. */
export function kindsOf(record: LookRecord): Kind[] {
  return KINDS.filter((kind) => record.attention[kind] !== null);
}

/** Begin with the head that looks most like a word alignment; of a series, with the sharpest one. */
export function firstChoice(record: LookRecord): Choice | null {
  const [kind] = kindsOf(record);
  if (!kind) return null;
  const best = bestHead(record, kind);
  return { kind, layer: best.layer, mode: "one", heads: [best.head], byWords: false };
}

export function bestHead(record: LookRecord, kind: Kind): { layer: number; head: number } {
  let best = { layer: 0, head: 0, worth: -Infinity };
  record.measures[kind].forEach((layer, l) => {
    layer.forEach((measure, h) => {
      const worth = (kind === "cross" && !record.series ? measure.alignment : measure.focus) ?? -Infinity;
      if (worth > best.worth) best = { layer: l, head: h, worth };
    });
  });
  return { layer: best.layer, head: best.head };
}

/** Change a choice and keep it possible: layers and heads that are there, at least one head. */
export function choose(record: LookRecord, old: Choice, change: Partial<Choice>): Choice {
  const next = { ...old, ...change };
  const weights = record.attention[next.kind];
  if (!weights) return old;
  if (next.layer !== "all") next.layer = Math.min(Math.max(next.layer, 0), weights.layers - 1);
  const heads = [...new Set(next.heads)].filter((head) => head >= 0 && head < weights.heads).sort((a, b) => a - b);
  next.heads = heads.length ? heads : [0];
  if (weights.heads === 1) next.mode = "one"; // all and the mean are that one
  if (next.mode === "one") next.heads = next.heads.slice(0, 1);
  return next;
}

/** Click on a head: alone in the mode "one", in or out in "several"; "all" and "mean" end. */
export function pressHead(record: LookRecord, old: Choice, head: number, add: boolean): Choice {
  if (head >= numHeads(record, old.kind)) return old;
  if (!add && old.mode !== "several") return choose(record, old, { mode: "one", heads: [head] });
  const before = old.mode === "all" ? range(numHeads(record, old.kind)) : old.mode === "mean" ? [] : old.heads;
  const isIn = before.includes(head);
  if (isIn && before.length === 1) return old; // the last one stays
  const heads = isIn ? before.filter((one) => one !== head) : [...before, head];
  return choose(record, old, { mode: "several", heads });
}

/** The heads that are drawn, in order; none for the mean. */
export function headsOf(record: LookRecord, choice: Choice): number[] {
  if (choice.mode === "mean") return [];
  return choice.mode === "all" ? range(numHeads(record, choice.kind)) : choice.heads;
}

/** The weights of a choice, one sheet a head, by tokens or by words. */
export function viewOf(record: LookRecord, choice: Choice): View {
  const weights = record.attention[choice.kind]!;
  const axes = axesOf(record, choice.kind, choice.byWords);
  const layers = choice.layer === "all" ? range(weights.layers) : [choice.layer];
  const groups = choice.mode === "mean" ? [null] : headsOf(record, choice);
  const sheets = groups.map((head) => {
    const tokens = meanOf(weights, layers, head === null ? range(weights.heads) : [head]);
    const values = choice.byWords ? joinUnits(tokens, axes) : tokens;
    return { head, values, numRows: axes.rows.length, numColumns: axes.columns.length };
  });
  return { axes, sheets };
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

/** What a row gives (along its columns), or what a column gets (along the rows). */
export function weightsAt(sheet: Sheet, end: End): Float32Array {
  const { values, numRows, numColumns } = sheet;
  if (end.side === "row") return values.subarray(end.index * numColumns, (end.index + 1) * numColumns);
  return Float32Array.from({ length: numRows }, (_, row) => values[row * numColumns + end.index]);
}

/** The mean over the sheets of what one end gives or gets. */
export function meanAt(sheets: Sheet[], end: End): Float32Array {
  return meanOfArrays(sheets.map((sheet) => weightsAt(sheet, end)));
}

/** The mean over whole sheets. */
export function meanOfSheets(sheets: Sheet[]): Float32Array {
  return sheets.length === 1 ? sheets[0].values : meanOfArrays(sheets.map((sheet) => sheet.values));
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
  return Array.from({ length: size }, (_, place) => place);
}

function numHeads(record: LookRecord, kind: Kind): number {
  return record.attention[kind]?.heads ?? 0;
}

function meanOfArrays(parts: Float32Array[]): Float32Array {
  const mean = new Float32Array(parts[0]?.length ?? 0);
  for (const part of parts) part.forEach((value, place) => (mean[place] += value / parts.length));
  return mean;
}
