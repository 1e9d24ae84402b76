/** Positional encodings: the formula of the paper (section 3.5) in two layouts, that of tensor2tensor, and the similarity of positions. */

import type { Layout } from "../record/record";

/** The layouts whose numbers can be computed here. */
export const FORMULA_LAYOUTS = ["interleaved", "halves", "tensor2tensor"] as const satisfies readonly Layout[];
export type FormulaLayout = (typeof FORMULA_LAYOUTS)[number];

/** The layouts that have the frequencies of the paper: one is the other in a different order. */
const PAPER_LAYOUTS: readonly Layout[] = ["interleaved", "halves"];

export interface Table {
  numPositions: number;
  d_model: number;
  layout: Layout;
  /** In the order position, dimension. */
  data: Float32Array;
}

/**
 * PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same.
 *
 * "halves" puts all sines first, with the same frequencies, as the Marian of Hugging Face does.
 * "tensor2tensor" (`get_timing_signal_1d`) also puts all sines first, and spaces the frequencies so that the last one
 * is exactly 1 / 10000; an odd last dimension is 0.
 */
export function sinusoidal(numPositions: number, d_model: number, layout: FormulaLayout): Table {
  const numPairs = Math.floor(d_model / 2);
  const span = layout === "tensor2tensor" ? Math.max(numPairs - 1, 1) : d_model / 2;
  const data = new Float32Array(numPositions * d_model);
  for (let column = 0; column < d_model; column++) {
    const { pair, isCosine } = waveOf(column, d_model, layout);
    if (layout === "tensor2tensor" && pair >= numPairs) continue;
    const frequency = 10000 ** (-pair / span);
    for (let position = 0; position < numPositions; position++) {
      const angle = position * frequency;
      data[position * d_model + column] = isCosine ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return { numPositions, d_model, layout, data };
}

/** The wave in a column. */
export function waveOf(column: number, d_model: number, layout: Layout): { pair: number; isCosine: boolean } {
  if (layout === "interleaved") return { pair: column >> 1, isCosine: column % 2 === 1 };
  const numSines = layout === "halves" ? Math.ceil(d_model / 2) : Math.floor(d_model / 2);
  return column < numSines ? { pair: column, isCosine: false } : { pair: column - numSines, isCosine: true };
}

/** Whether a table in one layout is a table in the other with its columns in a different order. */
export function isReordering(one: Layout, other: Layout): boolean {
  return one === other || (PAPER_LAYOUTS.includes(one) && PAPER_LAYOUTS.includes(other));
}

/** The same table with its columns in another layout; unchanged where the other layout has other numbers. */
export function reorder(table: Table, layout: Layout): Table {
  if (layout === table.layout || !isReordering(layout, table.layout)) return table;
  const { numPositions, d_model } = table;
  const data = new Float32Array(table.data.length);
  for (let column = 0; column < d_model; column++) {
    const { pair, isCosine } = waveOf(column, d_model, layout);
    const from = columnOf(pair, isCosine, d_model, table.layout);
    for (let position = 0; position < numPositions; position++) {
      data[position * d_model + column] = table.data[position * d_model + from];
    }
  }
  return { numPositions, d_model, layout, data };
}

/** The cosine similarity of one position's vector to that of every position. */
export function similarities(table: Table, position: number): Float32Array {
  const own = vectorAt(table, position);
  return Float32Array.from({ length: table.numPositions }, (_, other) => {
    const vector = vectorAt(table, other);
    const scale = Math.sqrt(dot(own, own) * dot(vector, vector));
    return scale ? dot(own, vector) / scale : 0;
  });
}

export function vectorAt(table: Table, position: number): Float32Array {
  return table.data.subarray(position * table.d_model, (position + 1) * table.d_model);
}

function columnOf(pair: number, isCosine: boolean, d_model: number, layout: Layout): number {
  if (layout === "interleaved") return 2 * pair + Number(isCosine);
  return isCosine ? Math.ceil(d_model / 2) + pair : pair;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < a.length; index++) sum += a[index] * b[index];
  return sum;
}
