/** Combines the rows that were read and the forecast into one series for the chart and the table. */

import type { Series } from "../../../inspector";
import type { ForecastRequest, ForecastResponse, SeriesInfo } from "../../api/schemas";
import type { SeriesModel } from "../../shared/models";
import type { SeriesRows } from "./series-csv";

export function forecastRequest(model: SeriesModel, { columns, times }: SeriesRows): ForecastRequest {
  return { model: model.name, columns, ...(times ? { times } : {}) };
}

/** Return the series to show; without a forecast its steps are still empty. */
export function forecastSeries(rows: SeriesRows, info: SeriesInfo, forecast: ForecastResponse | null): Series {
  const steps = forecast?.steps ?? [];
  const { labels } = info;
  return {
    features: info.columns,
    times: rows.times ?? Array.from({ length: rows.numRows }, (_, index) => String(index - rows.numRows)),
    values: info.columns.map((name) => rows.columns[name]),
    kind: info.kind,
    targets: info.targets,
    tgt_times: forecast ? steps.map((step) => step.time) : Array.from({ length: info.horizon }, (_, index) => `+${index + 1}`),
    labels,
    probabilities: labels && forecast ? steps.map((step) => labels.map((label) => step.probabilities?.[label] ?? 0)) : null,
    numbers: info.kind === "numbers" && forecast ? info.targets.map((name) => steps.map((step) => step.values?.[name] ?? 0)) : null,
    observed_labels: null,
    observed_numbers: null,
  };
}
