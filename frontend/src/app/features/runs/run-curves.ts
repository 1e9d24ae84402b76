/** The curves of a training run, out of its events. */

import { scaleLinear, scaleLog } from "d3-scale";

import type { RunEvent } from "../../api/types";

export interface Point {
  x: number;
  y: number;
}

export interface Curves {
  loss: Point[];
  devLoss: Point[];
  bleu: Point[];
  rate: Point[];
  speed: Point[];
}

/** Sort the figures of a run's events into curves over steps. */
export function curvesOf(events: readonly RunEvent[]): Curves {
  const curves: Curves = { loss: [], devLoss: [], bleu: [], rate: [], speed: [] };
  for (const one of events) {
    if (one.step === null) continue;
    if (one.event === "train") {
      add(curves.loss, one.step, one.loss);
      add(curves.rate, one.step, one.rate);
      add(curves.speed, one.step, one.tokens_per_second);
    } else if (one.event === "validation") {
      add(curves.devLoss, one.step, one.loss);
      add(curves.bleu, one.step, one.bleu);
    }
  }
  return curves;
}

/** A run that went on from a checkpoint tells some steps anew: the later word counts. */
function add(points: Point[], x: number, y: number | null): void {
  while (points.length && points.at(-1)!.x >= x) points.pop();
  if (y !== null) points.push({ x, y });
}

/** The point nearest to a step; null where there is none. */
export function nearest(points: readonly Point[], x: number): Point | null {
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

/** Keep the lowest and the highest of each stretch, so that a long curve keeps its look. */
export function thin(points: readonly Point[], most: number): Point[] {
  if (points.length <= most) return [...points];
  const size = Math.ceil((2 * points.length) / most);
  const kept: Point[] = [];
  for (let start = 0; start < points.length; start += size) {
    const stretch = points.slice(start, start + size);
    const low = stretch.reduce((a, b) => (b.y < a.y ? b : a));
    const high = stretch.reduce((a, b) => (b.y > a.y ? b : a));
    kept.push(...(low.x <= high.x ? [low, high] : [high, low]).filter((one, place, both) => !place || one !== both[0]));
  }
  const last = points.at(-1)!;
  return kept.at(-1) === last ? kept : [...kept, last];
}

export type Scale = ReturnType<typeof scaleLinear<number, number>> | ReturnType<typeof scaleLog<number, number>>;

export interface ScaleWish {
  isLog: boolean;
  /** Whether a straight axis begins at nothing. */
  isFromZero?: boolean;
  from: number;
  to: number;
}

/** The vertical scale of some curves; a logarithm wants what is above nothing. */
export function yScale(curves: readonly (readonly Point[])[], { isLog, isFromZero = false, from, to }: ScaleWish): Scale {
  const [low, high] = rangeOf(curves.flat().map(({ y }) => y).filter((y) => !isLog || y > 0), isLog);
  if (isLog) return scaleLog([low / 1.1, high * 1.1], [from, to]);
  return scaleLinear([isFromZero ? Math.min(0, low) : low, high], [from, to]).nice(4);
}

/** The lowest and the highest, with room around a single one. */
function rangeOf(values: number[], isLog: boolean): [number, number] {
  if (!values.length) return [isLog ? 0.1 : 0, 1];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  if (low < high) return [low, high];
  const room = Math.abs(low || 1) / 2;
  return isLog ? [low / 2, low * 2] : [low - room, low + room];
}

/** Where the marks of an axis stand; those of a logarithm are tens, or 1, 2 and 5 where tens are too few. */
export function ticksOf(scale: Scale, most: number): number[] {
  if (!("base" in scale)) return scale.ticks(most);
  const [low, high] = scale.domain();
  const tens: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) tens.push(Number(`1e${power}`));
  const inside = (ticks: number[]) => ticks.filter((tick) => tick >= low && tick <= high);
  const few = inside(tens);
  if (few.length > most) return few.filter((_, place) => place % Math.ceil(few.length / most) === 0);
  return few.length >= 3 ? few : inside(tens.flatMap((ten) => [ten, 2 * ten, 5 * ten]));
}

/** A figure of a curve, as short as it can be read: 0.0012, 3.41, 12.9k. */
export function sayFigure(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  if (size >= 1000) return String(Math.round(value));
  if (size >= 1e-4) return String(Number(value.toPrecision(3)));
  return value.toExponential(1);
}

/** Seconds that are left, by how long the last steps took; null where it cannot be told. */
export function secondsLeft(events: readonly RunEvent[], maxSteps: number | null): number | null {
  const steps = events.filter((one) => one.event === "train" && one.time !== null && one.step !== null).slice(-10);
  const [first, last] = [steps[0], steps.at(-1)];
  if (!first || !last || maxSteps === null || last.step! <= first.step!) return null;
  const seconds = (Date.parse(last.time!) - Date.parse(first.time!)) / 1000;
  return Math.max(0, ((maxSteps - last.step!) * seconds) / (last.step! - first.step!));
}
