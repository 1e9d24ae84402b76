/** Numbers over time, ready to be drawn: short times, panels, what is shaded, what is said of a step. */

import { type End, meanAt, meanOfSheets, type View } from "./attention";
import type { Kind, Series } from "../record/types";

/** One small picture: a feature, or a target that is no feature. */
export interface Panel {
  name: string;
  /** Over the window and the horizon; null where nothing is known. */
  values: (number | null)[];
  forecast: (number | null)[];
  observed: (number | null)[];
}

/** How much each time step is looked at, or looks. */
export interface Shades {
  window: Float32Array | null;
  ahead: Float32Array | null;
}

/** The pictures of a series, one a feature; targets that are features go on in the same picture. */
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

/** What is looked at from one end, or on the whole where none is pointed at. */
export function shadesOf(view: View, kind: Kind, active: End | null): Shades {
  const weights = active ? meanAt(view.sheets, active) : totalOf(view);
  const isSeen = active?.side !== "column";
  if (kind === "encoder_self" || (kind === "cross" && isSeen)) return { window: weights, ahead: null };
  if (kind === "cross" || !isSeen) return { window: null, ahead: weights };
  // Column 0 is the start; column j is what step j - 1 said.
  const shifted = new Float32Array(weights.length);
  shifted.set(weights.subarray(1));
  return { window: null, ahead: shifted };
}

/** The mean over the rows: how much each column gets in all. */
function totalOf({ axes, sheets }: View): Float32Array {
  const [rows, columns] = [axes.rows.length, axes.columns.length];
  const sheet = meanOfSheets(sheets);
  const total = new Float32Array(columns);
  sheet.forEach((weight, place) => (total[place % columns] += weight / rows));
  return total;
}

/** The labels that are told of, the likeliest first. */
export function mainLabels(series: Series, most: number): number[] {
  const { labels, probabilities } = series;
  const highest = (labels ?? []).map((_, label) => Math.max(0, ...(probabilities ?? []).map((row) => row[label] ?? 0)));
  const order = highest.map((_, label) => label);
  if (order.length <= most) return order;
  return order.sort((a, b) => highest[b] - highest[a]).slice(0, most);
}

/** A number in four digits, as a table shows it. */
export function sayNumber(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4)) return value.toExponential(2).replace("-", "−");
  const digits = Math.max(0, Math.min(6, 4 - Math.ceil(Math.log10(Math.abs(value) + 1e-12))));
  return value.toFixed(value === 0 ? 0 : Math.min(4, digits)).replace(/^-/, "−");
}

/** From where to where an axis goes; a curve that does not move lies in the middle. */
export function reach(values: readonly (number | null)[]): [number, number] {
  const known = values.filter((value) => value !== null);
  if (!known.length) return [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return low === high ? [low - Math.max(1, Math.abs(low)) / 2, high + Math.max(1, Math.abs(high)) / 2] : [low, high];
}
