/** How sure the model is of a word, in four steps that can be told apart without colours. */

export const LEVELS = ["sure", "likely", "unsure", "doubtful"] as const;
export type Level = (typeof LEVELS)[number];

/** The least probability of each step. */
export const LEAST: Record<Level, number> = { sure: 0.9, likely: 0.7, unsure: 0.4, doubtful: 0 };

export function levelOf(probability: number): Level {
  return LEVELS.find((level) => probability >= LEAST[level]) ?? "doubtful";
}
