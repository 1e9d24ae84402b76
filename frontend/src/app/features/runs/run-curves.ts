/** The curves of a training run, from the events in its log. */

import type { RunEvent } from "../../api/schemas";

export interface CurvePoint {
  x: number;
  y: number;
}

/** One line of a chart. */
export interface RunLine {
  name: string;
  points: CurvePoint[];
  /** For lines with few points. */
  isDashed?: boolean;
  hasDots?: boolean;
  /** Where its run has ended, if other runs in the chart go on. */
  end?: number;
}

export interface RunCurves {
  loss: CurvePoint[];
  devLoss: CurvePoint[];
  bleu: CurvePoint[];
  learningRate: CurvePoint[];
  speed: CurvePoint[];
}

/** What the curves are drawn over: steps, or minutes since the start. */
export type RunAxis = "step" | "time";

/** Collect the numbers of a run's events into curves. */
export function runCurves(events: readonly RunEvent[], axis: RunAxis = "step"): RunCurves {
  const curves: RunCurves = { loss: [], devLoss: [], bleu: [], learningRate: [], speed: [] };
  const positionOf = positionsOn(axis, events);
  for (const one of events) {
    const { event, loss, rate, tokens_per_second: speed, bleu } = one;
    const x = positionOf(one);
    if (!Number.isFinite(x)) continue;
    if (event === "train") {
      addPoint(curves.loss, x, loss);
      addPoint(curves.learningRate, x, rate);
      addPoint(curves.speed, x, speed);
    } else if (event === "validation") {
      addPoint(curves.devLoss, x, loss);
      addPoint(curves.bleu, x, bleu);
    }
  }
  return curves;
}

/** Where the training loss of a run that diverged ends; infinity for a healthy run. */
export function lossEnd(curves: RunCurves, events: readonly RunEvent[]): number {
  return divergedSince(events) === null ? Infinity : (curves.loss.at(-1)?.x ?? 0);
}

/** Where the longest curve ends. */
export function lastOf(curves: RunCurves): number {
  return Math.max(0, ...Object.values(curves).map((points: CurvePoint[]) => points.at(-1)?.x ?? 0));
}

/** Return the position of each event on an axis; NaN where its step or its time is missing. */
function positionsOn(axis: RunAxis, events: readonly RunEvent[]): (event: RunEvent) => number {
  const start = Date.parse(events.find(({ time }) => time !== null)?.time ?? "");
  return ({ step, time }) => (axis === "step" || step === null ? (step ?? NaN) : (Date.parse(time ?? "") - start) / 60_000);
}

/** The step from which on the training loss is not a number; null for a healthy run. The server sends null for NaN. */
export function divergedSince(events: readonly RunEvent[]): number | null {
  const steps = events.filter(({ event, step }) => event === "train" && step !== null);
  const numBad = [...steps].reverse().findIndex(({ loss }) => loss !== null);
  return steps.at(numBad < 0 ? 0 : steps.length - numBad)?.step ?? null;
}

/** An exponential moving average, corrected for its start; factor 0 changes nothing. */
export function smooth(points: readonly CurvePoint[], factor: number): CurvePoint[] {
  let [mean, weight] = [0, 0];
  return points.map(({ x, y }) => {
    mean = factor * mean + (1 - factor) * y;
    weight = factor * weight + (1 - factor);
    return { x, y: mean / weight };
  });
}

/** The events with their numbers as CSV, for a spreadsheet. */
export function eventsCsv(events: readonly RunEvent[]): string {
  const columns = ["time", "event", "step", "loss", "rate", "tokens_per_second", "perplexity", "accuracy", "bleu"] as const;
  const rows = events.filter(({ event }) => event === "train" || event === "validation");
  return [columns.join(","), ...rows.map((row) => columns.map((name) => row[name] ?? "").join(","))].join("\n") + "\n";
}

/** A run resumed from a checkpoint repeats some steps: the later values replace the earlier ones. */
function addPoint(points: CurvePoint[], x: number, y: number | null): void {
  while (points.length && points.at(-1)!.x >= x) points.pop();
  if (y !== null) points.push({ x, y });
}

/** The point nearest to a step; null without points. */
export function nearestPoint(points: readonly CurvePoint[], x: number): CurvePoint | null {
  if (!points.length) return null;
  let [low, high] = [0, points.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].x < x) low = middle + 1;
    else high = middle;
  }
  const before = points[low - 1];
  return before && x - before.x <= points[low].x - x ? before : points[low];
}

/** The value of a line where the cursor is; null after the end of its run. Without a cursor: its last value. */
export function valueAt({ points, end = Infinity }: Pick<RunLine, "points" | "end">, x: number | null): CurvePoint | null {
  if (x === null) return points.at(-1) ?? null;
  return x > end ? null : nearestPoint(points, x);
}

/** Keep the lowest and the highest point of each section, so that a long curve keeps its shape. */
export function downsample(points: readonly CurvePoint[], maxPoints: number): CurvePoint[] {
  if (points.length <= maxPoints) return [...points];
  const size = Math.ceil((2 * points.length) / maxPoints);
  const kept: CurvePoint[] = [];
  for (let start = 0; start < points.length; start += size) {
    const section = points.slice(start, start + size);
    const low = section.reduce((a, b) => (b.y < a.y ? b : a));
    const high = section.reduce((a, b) => (b.y > a.y ? b : a));
    if (low === high) kept.push(low);
    else kept.push(...(low.x <= high.x ? [low, high] : [high, low]));
  }
  const last = points.at(-1)!;
  return kept.at(-1) === last ? kept : [...kept, last];
}

/** The remaining seconds, from the speed of the last steps; null where it is not known. */
export function secondsLeft(events: readonly RunEvent[], maxSteps: number | null): number | null {
  const steps = events.filter(({ event, time, step }) => event === "train" && time !== null && step !== null).slice(-10);
  const [first, last] = [steps[0], steps.at(-1)];
  if (!first || !last || maxSteps === null || last.step! <= first.step!) return null;
  const seconds = (Date.parse(last.time!) - Date.parse(first.time!)) / 1000;
  return Math.max(0, ((maxSteps - last.step!) * seconds) / (last.step! - first.step!));
}
