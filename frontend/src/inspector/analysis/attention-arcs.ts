/** The arcs between tokens: their paths and widths. */

import { type TokenRef, type WeightMatrix, strongest, weightsAt } from "./attention";

/** The position of a token on the page. */
export interface Box {
  x: number;
  width: number;
  top: number;
  bottom: number;
}

export interface Arc {
  key: string;
  head: number | null;
  path: string;
  weight: number;
}

export interface Boxes {
  rows: Box[];
  columns: Box[];
}

const MIN_WEIGHT = 0.01;
const MIN_OVERVIEW_WEIGHT = 0.15;

/** The arcs of one token: every visible weight. */
export function arcsAt(matrices: WeightMatrix[], end: TokenRef, boxes: Boxes): Arc[] {
  return matrices.flatMap((matrix, order) =>
    strongest(weightsAt(matrix, end), Infinity, MIN_WEIGHT).flatMap(({ index, weight }) => {
      const [row, column] = end.side === "row" ? [end.index, index] : [index, end.index];
      return arc(boxes, matrix, row, column, weight, shiftOf(order, matrices.length));
    }),
  );
}

/** The arcs of all tokens: the largest weights of each row. */
export function overviewArcs(matrices: WeightMatrix[], boxes: Boxes): Arc[] {
  const limit = matrices.length > 1 ? 1 : 3;
  return matrices.flatMap((matrix, order) =>
    Array.from({ length: matrix.numRows }, (_, row) => {
      const links = strongest(weightsAt(matrix, { side: "row", index: row }), limit);
      const shown = links.filter((link, rank) => rank === 0 || link.weight >= MIN_OVERVIEW_WEIGHT);
      return shown.flatMap(({ index, weight }) => arc(boxes, matrix, row, index, weight, shiftOf(order, matrices.length)));
    }).flat(),
  );
}

/** The width of an arc, proportional to its weight. */
export function strokeWidth(weight: number): number {
  return Math.max(0.75, 10 * weight);
}

function arc(boxes: Boxes, matrix: WeightMatrix, row: number, column: number, weight: number, shift: number): Arc[] {
  const [from, to] = [boxes.rows.at(row), boxes.columns.at(column)];
  if (!from || !to) return [];
  const [x1, x2] = [from.x + shift * from.width, to.x + shift * to.width];
  const bend = (from.top - to.bottom) * 0.5;
  const path = `M${x1} ${from.top}C${x1} ${from.top - bend} ${x2} ${to.bottom + bend} ${x2} ${to.bottom}`;
  return [{ key: `${matrix.head ?? "mean"}.${row}.${column}`, head: matrix.head, path, weight }];
}

/** Heads start side by side at a token: the shift as a share of its width. */
function shiftOf(order: number, count: number): number {
  return count < 2 ? 0 : ((order + 0.5) / count - 0.5) * 0.7;
}
