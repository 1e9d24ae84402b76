/** The confidence of a word in four levels, which can be distinguished without color. */

export const LEVELS = ["sure", "likely", "unsure", "doubtful"] as const;
export type Level = (typeof LEVELS)[number];

export const MIN_PROBABILITY: Record<Level, number> = { sure: 0.9, likely: 0.7, unsure: 0.4, doubtful: 0 };

export function levelOf(probability: number): Level {
  return LEVELS.find((level) => probability >= MIN_PROBABILITY[level]) ?? "doubtful";
}
