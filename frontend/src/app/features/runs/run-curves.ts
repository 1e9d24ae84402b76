/** The curves of a training run, from the events in its log. */

import type { RunEvent } from "../../api/schemas";

export interface CurvePoint {
  x: number;
  y: number;
}

export interface RunCurves {
  loss: CurvePoint[];
  devLoss: CurvePoint[];
  bleu: CurvePoint[];
  learningRate: CurvePoint[];
  speed: CurvePoint[];
}

/** Collect the numbers of a run's events into curves over steps. */
export function runCurves(events: readonly RunEvent[]): RunCurves {
  const curves: RunCurves = { loss: [], devLoss: [], bleu: [], learningRate: [], speed: [] };
  for (const { event, step, loss, rate, tokens_per_second: speed, bleu } of events) {
    if (step === null) continue;
    if (event === "train") {
      addPoint(curves.loss, step, loss);
      addPoint(curves.learningRate, step, rate);
      addPoint(curves.speed, step, speed);
    } else if (event === "validation") {
      addPoint(curves.devLoss, step, loss);
      addPoint(curves.bleu, step, bleu);
    }
  }
  return curves;
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
