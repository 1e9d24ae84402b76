/** The axes of charts: scales, ticks and the positions of values. */

import { scaleLinear, scaleLog } from "d3-scale";

/** A value of null is a gap in the line. */
export interface Point {
  x: number;
  y: number | null;
}

export type Scale = ReturnType<typeof scaleLinear<number, number>> | ReturnType<typeof scaleLog<number, number>>;
type Range = [number, number];

export interface YOptions {
  isLog?: boolean;
  /** Whether a linear axis starts at zero. */
  isFromZero?: boolean;
}

/** The vertical scale of some lines; a logarithmic one leaves out what is not positive. */
export function yScale(lines: readonly (readonly Point[])[], range: Range, { isLog = false, isFromZero = false }: YOptions = {}): Scale {
  const values = lines.flat().flatMap(({ y }) => (isDrawable(y, isLog) ? [y] : []));
  const [low, high] = extentOf(values, isLog);
  if (isLog) return scaleLog([low / 1.1, high * 1.1], range);
  return scaleLinear([isFromZero ? Math.min(0, low) : low, high], range).nice(4);
}

/** The lowest and the highest value, with a margin around a single one. */
function extentOf(values: number[], isLog: boolean): Range {
  if (!values.length) return [isLog ? 0.1 : 0, 1];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  if (low < high) return [low, high];
  const margin = Math.abs(low || 1) / 2;
  return isLog ? [low / 2, low * 2] : [low - margin, low + margin];
}

export interface XOptions {
  isLog?: boolean;
  /** The first and the last value of the axis; by default those of the data. */
  domain?: Range | undefined;
  /** Names of the values 0, 1, ...: they are spaced evenly. */
  names?: readonly string[] | undefined;
}

export interface Tick {
  pixel: number;
  label: number | string;
}

export interface XAxis {
  pixelOf: (x: number) => number;
  ticks: Tick[];
  /** The width of one name. */
  band: number;
}

const TICK_DISTANCE = 90;
const LETTER_WIDTH = 8;

/** The horizontal axis of a chart with these values. */
export function xAxis(values: readonly number[], range: Range, { isLog = false, domain, names }: XOptions = {}): XAxis {
  const band = (range[1] - range[0]) / Math.max(1, values.length);
  if (names) {
    const pixelOf = (x: number) => range[0] + band * (x + 0.5);
    const longest = Math.max(1, ...names.map((name) => name.length));
    // Names that would overlap are left out evenly.
    const every = Math.ceil((longest * LETTER_WIDTH + LETTER_WIDTH) / band);
    return { pixelOf, band, ticks: names.map((label, x) => ({ pixel: pixelOf(x), label })).filter((_, x) => x % every === 0) };
  }
  const [low, high] = domain ?? values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const scale = (isLog && low > 0 ? scaleLog : scaleLinear)(low < high ? [low, high] : [low - 1, high + 1], range);
  const ticks = wholeTicks(axisTicks(scale, Math.max(3, Math.floor((range[1] - range[0]) / TICK_DISTANCE))), values);
  return { pixelOf: (x) => scale(x), band, ticks: ticks.map((label) => ({ pixel: scale(label), label })) };
}

/** The ticks of an axis; those of a logarithmic one are powers of ten, or 1, 2 and 5 times them where there are too few. */
export function axisTicks(scale: Scale, maxTicks: number): number[] {
  if (!("base" in scale)) return scale.ticks(maxTicks);
  const [low, high] = scale.domain();
  const powers: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) powers.push(Number(`1e${power}`));
  const inDomain = (ticks: number[]) => ticks.filter((tick) => tick >= low && tick <= high);
  const ticks = inDomain(powers);
  if (ticks.length > maxTicks) return ticks.filter((_, index) => index % Math.ceil(ticks.length / maxTicks) === 0);
  return ticks.length >= 3 ? ticks : inDomain(powers.flatMap((power) => [power, 2 * power, 5 * power]));
}

/** Leave out fractional ticks where all values are integers. */
export function wholeTicks(ticks: number[], values: readonly (number | null)[]): number[] {
  const areWhole = values.every((value) => value === null || Number.isInteger(value));
  return areWhole ? ticks.filter(Number.isInteger) : ticks;
}

/** Whether a value can be drawn: a logarithmic axis shows positive values only. */
export function isDrawable(value: number | null, isLog: boolean): value is number {
  return value !== null && (!isLog || value > 0);
}

/** The index of the value nearest to another. */
export function nearestIndex(values: readonly number[], to: number): number {
  return values.reduce((best, value, index) => (Math.abs(value - to) < Math.abs(values[best] - to) ? index : best), 0);
}
