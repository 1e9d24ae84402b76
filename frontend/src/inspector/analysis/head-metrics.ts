/** The table of measures: which columns a kind has, and its rows in an order. */

import { type Kind, type LookRecord, type Measure, type MeasureName, MEASURES } from "../record/types";

export interface FigureRow {
  layer: number;
  head: number;
  measure: Measure;
}

export interface Order { by: MeasureName | "head"; isDown: boolean }

export function figureRows(record: LookRecord, kind: Kind): FigureRow[] {
  return record.measures[kind].flatMap((heads, layer) => heads.map((measure, head) => ({ layer, head, measure })));
}

/** The measures that any head of this kind has; a head that is alone in its layer agrees with nobody. */
export function namesOf(rows: FigureRow[]): MeasureName[] {
  const isAlone = rows.every(({ head }) => head === 0);
  return MEASURES.filter((name) => !(isAlone && name === "agreement") && rows.some(({ measure }) => measure[name] != null));
}

export function sortRows(rows: FigureRow[], { by, isDown }: Order): FigureRow[] {
  const sign = isDown ? -1 : 1;
  return [...rows].sort((a, b) => {
    const difference = by === "head" ? 0 : sign * ((a.measure[by] ?? 0) - (b.measure[by] ?? 0));
    return difference || (by === "head" ? sign : 1) * (a.layer - b.layer || a.head - b.head);
  });
}
