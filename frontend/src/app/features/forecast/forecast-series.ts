/** What was read and what was foretold, put together for the curve and the table. */

import type { Series } from "../../../inspector";
import type { ForecastAnswer, SeriesInfo } from "../../api/types";
import type { SeriesRows } from "./series-csv";

/** The series as the components show it; without an answer the steps ahead are still empty. */
export function seriesOf(rows: SeriesRows, info: SeriesInfo, answer: ForecastAnswer | null): Series {
  const steps = answer?.steps ?? [];
  const { labels } = info;
  return {
    features: info.columns,
    times: rows.times ?? Array.from({ length: rows.numRows }, (_, place) => String(place - rows.numRows)),
    values: info.columns.map((name) => rows.columns[name]),
    kind: info.kind,
    targets: info.targets,
    tgt_times: answer ? steps.map((step) => step.time) : Array.from({ length: info.horizon }, (_, place) => `+${place + 1}`),
    labels,
    probabilities: labels && answer ? steps.map((step) => labels.map((label) => step.probabilities?.[label] ?? 0)) : null,
    numbers: info.kind === "numbers" && answer ? info.targets.map((name) => steps.map((step) => step.values?.[name] ?? 0)) : null,
    observed_labels: null,
    observed_numbers: null,
  };
}
