/** A time series prepared for display: its panels, the attention to each time step, and formatted values. */

import { type TokenRef, meanAt, meanMatrix, type View } from "./attention";
import type { Kind, Series } from "../record/record";

/** One panel of the chart: a feature, or a target that is not a feature. */
export interface Panel {
  name: string;
  /** Over the window and the horizon; null: not known. */
  values: (number | null)[];
  forecast: (number | null)[];
  observed: (number | null)[];
}

/** The attention weight of each time step. */
export interface Shading {
  window: Float32Array | null;
  ahead: Float32Array | null;
}

/** The panels of a series, one per feature; the forecast of a feature is in its panel. */
export function panelsOf(series: Series): Panel[] {
  const { features, targets, times, tgt_times, values, numbers, observed_numbers } = series;
  const before = Array<null>(times.length).fill(null);
  const after = Array<null>(tgt_times.length).fill(null);
  const names = [...features, ...(numbers ? targets.filter((name) => !features.includes(name)) : [])];
  return names.map((name) => {
    const [feature, target] = [features.indexOf(name), numbers ? targets.indexOf(name) : -1];
    return {
      name,
      values: [...(values[feature] ?? before), ...after],
      forecast: [...before, ...(numbers?.[target] ?? after)],
      observed: [...before, ...(observed_numbers?.[target] ?? after)],
    };
  });
}

/** The attention of one token, or of all tokens on average if none is active. */
export function shadingOf(view: View, kind: Kind, active: TokenRef | null): Shading {
  const weights = active ? meanAt(view.matrices, active) : columnMeans(view);
  const isQuery = active?.side !== "column";
  if (kind === "encoder_self" || (kind === "cross" && isQuery)) return { window: weights, ahead: null };
  if (kind === "cross" || !isQuery) return { window: null, ahead: weights };
  // Column 0 is the start symbol; column j is the output of step j - 1.
  const shifted = new Float32Array(weights.length);
  shifted.set(weights.subarray(1));
  return { window: null, ahead: shifted };
}

/** The mean over the rows: the attention that each column gets. */
function columnMeans({ axes, matrices }: View): Float32Array {
  const [rows, columns] = [axes.rows.length, axes.columns.length];
  const matrix = meanMatrix(matrices);
  const total = new Float32Array(columns);
  matrix.forEach((weight, index) => (total[index % columns] += weight / rows));
  return total;
}

/** The labels to show, the most probable first. */
export function topLabels(series: Series, limit: number): number[] {
  const { labels, probabilities } = series;
  const highest = (labels ?? []).map((_, label) => Math.max(0, ...(probabilities ?? []).map((row) => row[label] ?? 0)));
  const order = highest.map((_, label) => label);
  if (order.length <= limit) return order;
  return order.sort((a, b) => highest[b] - highest[a]).slice(0, limit);
}

/** Format a number with four significant digits. */
export function formatValue(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4)) return value.toExponential(2).replace("-", "−");
  const digits = Math.max(0, Math.min(6, 4 - Math.ceil(Math.log10(Math.abs(value) + 1e-12))));
  return value.toFixed(value === 0 ? 0 : Math.min(4, digits)).replace(/^-/, "−");
}

/** The range of an axis; a constant curve is in the middle of it. */
export function rangeOf(values: readonly (number | null)[]): [number, number] {
  const known = values.filter((value) => value !== null);
  if (!known.length) return [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return low === high ? [low - Math.max(1, Math.abs(low)) / 2, high + Math.max(1, Math.abs(high)) / 2] : [low, high];
}
