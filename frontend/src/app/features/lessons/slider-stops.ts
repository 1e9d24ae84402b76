/** The stops of a slider. Where a range spans hundreds they lie by ratio: each part of it can be reached. */

import type { NumberInput } from "./types";

const MOST_LINEAR = 1000;
const WIDE = 200;
const NUM_RATIOS = 160;

/** Every value that a slider stops at, from low to high. */
export function stopsOf({ low, high, step }: Pick<NumberInput, "low" | "high" | "step">): number[] {
  const numSteps = Math.round((high - low) / step);
  const first = low > 0 ? low : step;
  if (low >= 0 && numSteps > WIDE && high / first >= WIDE) return byRatio({ low, high, step }, first);
  const size = numSteps > MOST_LINEAR ? (high - low) / MOST_LINEAR : step;
  const count = Math.round((high - low) / size);
  return Array.from({ length: count + 1 }, (_, place) => (place === count ? high : tidy(low + place * size)));
}

function byRatio({ low, high, step }: Pick<NumberInput, "low" | "high" | "step">, first: number): number[] {
  const isWhole = Number.isInteger(step);
  const stops = Array.from({ length: NUM_RATIOS + 1 }, (_, place) => {
    const value = first * (high / first) ** (place / NUM_RATIOS);
    return isWhole ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(2));
  });
  const inside = stops.filter((stop) => stop > low && stop < high);
  return [...new Set([low, ...inside, high])];
}

/** The stop nearest to a value, by its place. */
export function stopAt(stops: readonly number[], value: number): number {
  const above = stops.findIndex((stop) => stop >= value);
  if (above <= 0) return above < 0 ? stops.length - 1 : 0;
  return value - stops[above - 1] < stops[above] - value ? above - 1 : above;
}

/** Without the crumbs of binary fractions: 0.30000000000000004 is 0.3. */
function tidy(value: number): number {
  return Number(value.toPrecision(12));
}
