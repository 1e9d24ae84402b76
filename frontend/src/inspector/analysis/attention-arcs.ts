/** The lines between words: where they run and how thick they are. */

import { type End, type Sheet, strongest, weightsAt } from "./attention";

/** A token on the page. */
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

const FLOOR = 0.01;
const OVERVIEW_FLOOR = 0.15;

/** Lines of one word: every weight that can be seen. */
export function arcsAt(sheets: Sheet[], end: End, boxes: Boxes): Arc[] {
  return sheets.flatMap((sheet, place) =>
    strongest(weightsAt(sheet, end), Infinity, FLOOR).flatMap(({ index, weight }) => {
      const [row, column] = end.side === "row" ? [end.index, index] : [index, end.index];
      return arc(boxes, sheet, row, column, weight, shiftOf(place, sheets.length));
    }),
  );
}

/** Lines of all words: where each one looks most. */
export function overviewArcs(sheets: Sheet[], boxes: Boxes): Arc[] {
  const limit = sheets.length > 1 ? 1 : 3;
  return sheets.flatMap((sheet, place) =>
    Array.from({ length: sheet.numRows }, (_, row) => {
      const links = strongest(weightsAt(sheet, { side: "row", index: row }), limit);
      const shown = links.filter((link, rank) => rank === 0 || link.weight >= OVERVIEW_FLOOR);
      return shown.flatMap(({ index, weight }) => arc(boxes, sheet, row, index, weight, shiftOf(place, sheets.length)));
    }).flat(),
  );
}

/** The thickness of a line is its weight. */
export function thickness(weight: number): number {
  return Math.max(0.75, 10 * weight);
}

function arc(boxes: Boxes, sheet: Sheet, row: number, column: number, weight: number, shift: number): Arc[] {
  const [from, to] = [boxes.rows.at(row), boxes.columns.at(column)];
  if (!from || !to) return [];
  const [x1, x2] = [from.x + shift * from.width, to.x + shift * to.width];
  const bend = (from.top - to.bottom) * 0.5;
  const path = `M${x1} ${from.top}C${x1} ${from.top - bend} ${x2} ${to.bottom + bend} ${x2} ${to.bottom}`;
  return [{ key: `${sheet.head ?? "mean"}.${row}.${column}`, head: sheet.head, path, weight }];
}

/** Heads leave a word side by side, as a share of its width. */
function shiftOf(place: number, count: number): number {
  return count < 2 ? 0 : ((place + 0.5) / count - 0.5) * 0.7;
}
