/** The values at which a slider stops: evenly spaced, or by ratio where the range spans several orders of magnitude. */

import type { NumberInput } from "./schemas";

type Bounds = Pick<NumberInput, "low" | "high" | "step">;

const MAX_LINEAR_STOPS = 1000;
const WIDE_RATIO = 200;
const NUM_RATIOS = 160;

/** Every stop of a slider, from low to high. */
export function sliderStops({ low, high, step }: Bounds): number[] {
  const numSteps = Math.round((high - low) / step);
  const first = low > 0 ? low : step;
  if (low >= 0 && numSteps > WIDE_RATIO && high / first >= WIDE_RATIO) return stopsByRatio({ low, high, step }, first);
  const size = numSteps > MAX_LINEAR_STOPS ? (high - low) / MAX_LINEAR_STOPS : step;
  const count = Math.round((high - low) / size);
  return Array.from({ length: count + 1 }, (_, index) => (index === count ? high : roundOff(low + index * size)));
}

function stopsByRatio({ low, high, step }: Bounds, first: number): number[] {
  const isWhole = Number.isInteger(step);
  const stops = Array.from({ length: NUM_RATIOS + 1 }, (_, index) => {
    const value = first * (high / first) ** (index / NUM_RATIOS);
    return isWhole ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(2));
  });
  return [...new Set([low, ...stops.filter((stop) => stop > low && stop < high), high])];
}

/** The index of the stop nearest to a value. */
export function nearestStop(stops: readonly number[], value: number): number {
  const above = stops.findIndex((stop) => stop >= value);
  if (above <= 0) return above < 0 ? stops.length - 1 : 0;
  return value - stops[above - 1] < stops[above] - value ? above - 1 : above;
}

/** Remove the error of binary fractions: 0.30000000000000004 becomes 0.3. */
function roundOff(value: number): number {
  return Number(value.toPrecision(12));
}
