/** Where the things of a chart stand. */

import { scaleLinear, scaleLog } from "d3-scale";

import { type Point, type Scale, ticksOf, yScale } from "../runs/run-curves";
import type { ChartBlock } from "./types";

export const HEIGHT = 260;
export const EDGE = { left: 56, right: 16, top: 12, bottom: 46 };

export interface Tick {
  at: number;
  label: number | string;
}

export interface Plan {
  /** The middle of each place on the x axis, in pixels. */
  at: number[];
  xTicks: Tick[];
  y: Scale;
  yTicks: number[];
  /** The room of one place, for bars. */
  band: number;
}

/** Lay out a chart; names, and bars, stand side by side, numbers by their size. */
export function planChart(chart: Pick<ChartBlock, "form" | "x" | "series" | "log_x" | "log_y">, width: number): Plan {
  const range: [number, number] = [EDGE.left, Math.max(EDGE.left + 80, width - EDGE.right)];
  const y = yScale(chart.series.map((one) => pointsOf(one.values)), { isLog: chart.log_y, isFromZero: chart.form === "bars", from: HEIGHT - EDGE.bottom, to: EDGE.top });
  const band = (range[1] - range[0]) / Math.max(1, chart.x.length);
  const numbers = chart.x.filter((one): one is number => typeof one === "number");
  const isByName = chart.form === "bars" || numbers.length < chart.x.length;
  const across = isByName ? byName(chart.x, range[0], band) : bySize(numbers, chart.log_x, range);
  const areCounts = chart.series.every(({ values }) => values.every((value) => value === null || Number.isInteger(value)));
  return { ...across, y, yTicks: ticksOf(y, 5).filter((tick) => !areCounts || Number.isInteger(tick)), band };
}

function pointsOf(values: (number | null)[]): Point[] {
  return values.flatMap((value, x) => (value === null ? [] : [{ x, y: value }]));
}

function byName(names: (string | number)[], left: number, band: number): Pick<Plan, "at" | "xTicks"> {
  const at = names.map((_, place) => left + band * (place + 0.5));
  return { at, xTicks: names.map((label, place) => ({ at: at[place], label })) };
}

function bySize(numbers: number[], isLog: boolean, range: [number, number]): Pick<Plan, "at" | "xTicks"> {
  const [low, high] = numbers.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [Infinity, -Infinity]);
  const domain = low < high ? [low, high] : [low - 1, high + 1];
  const x = isLog && low > 0 ? scaleLog(domain, range) : scaleLinear(domain, range);
  const ticks = ticksOf(x, Math.max(3, Math.floor((range[1] - range[0]) / 90)));
  const areAllWhole = numbers.every(Number.isInteger);
  return { at: numbers.map((one) => x(one)), xTicks: ticks.filter((tick) => !areAllWhole || Number.isInteger(tick)).map((tick) => ({ at: x(tick), label: tick })) };
}

/** The place nearest to a pointer. */
export function placeAt(at: readonly number[], pixel: number): number {
  return at.reduce((best, one, place) => (Math.abs(one - pixel) < Math.abs(at[best] - pixel) ? place : best), 0);
}

/** Whether a value can be drawn: a logarithm wants what is above nothing. */
export function isDrawn(value: number | null, isLog: boolean): value is number {
  return value !== null && (!isLog || value > 0);
}

const DIGITS = 4;

/** How many places the values of a chart need: small ones are still read to three figures. */
export function digitsOf(series: ChartBlock["series"]): number {
  const most = series.flatMap(({ values }) => values).reduce<number>((a, b) => Math.max(a, Math.abs(b ?? 0)), 0);
  return most > 0 ? Math.max(DIGITS, 2 + Math.ceil(-Math.log10(most))) : DIGITS;
}
