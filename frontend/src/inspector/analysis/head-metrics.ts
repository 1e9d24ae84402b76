/** The table of head metrics: its columns for a kind of attention, and its rows in sorted order. */

import { type Kind, type InspectionRecord, type Metrics, type MetricName, METRICS } from "../record/record";

export interface MetricRow {
  layer: number;
  head: number;
  metrics: Metrics;
}

export interface Order { by: MetricName | "head"; isDescending: boolean }

export function metricRows(record: InspectionRecord, kind: Kind): MetricRow[] {
  return record.measures[kind].flatMap((heads, layer) => heads.map((metrics, head) => ({ layer, head, metrics })));
}

/** The metrics that any head of this kind has; a single head has no other heads to agree with. */
export function metricNames(rows: MetricRow[]): MetricName[] {
  const isSingle = rows.every(({ head }) => head === 0);
  return METRICS.filter((name) => !(isSingle && name === "agreement") && rows.some(({ metrics }) => metrics[name] != null));
}

export function sortMetricRows(rows: MetricRow[], { by, isDescending }: Order): MetricRow[] {
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const difference = by === "head" ? 0 : sign * ((a.metrics[by] ?? 0) - (b.metrics[by] ?? 0));
    return difference || (by === "head" ? sign : 1) * (a.layer - b.layer || a.head - b.head);
  });
}
