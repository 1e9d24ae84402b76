/** The headline of a translation: its band, lowered where the source is unlike the training data. */

import { type Band, BANDS, type Confidence, type Translation } from "../../api/schemas";

/** From this share of unknown tokens on, nothing of the translation can be trusted. */
const MAX_UNKNOWN_SHARE = 0.25;

export interface Headline {
  band: Band;
  /** The share of similar dev sentences that were right; null where the dev set says nothing about such a text. */
  quality: number | null;
  /** Whether the band was lowered: the figures of the dev set do not hold for this text. */
  isLowered: boolean;
}

/** Null for a translation without a band. */
export function headlineOf({ band, quality, unfamiliar }: Confidence, unknownWords: readonly string[]): Headline | null {
  if (!band) return null;
  const share = unfamiliar && unfamiliar.num_tokens ? unfamiliar.num_unseen / unfamiliar.num_tokens : 0;
  const isUnlike = unfamiliar !== null || unknownWords.length > 0;
  const most: Band = share >= MAX_UNKNOWN_SHARE ? "low" : isUnlike ? "check" : "high";
  const lowered = BANDS.indexOf(band) >= BANDS.indexOf(most) ? band : most;
  return { band: lowered, quality: isUnlike ? null : quality, isLowered: isUnlike };
}

/** The words of the source that the model does not know, where the server names them. */
export function unknownWordsOf(translation: Pick<Translation, "note_details">): string[] {
  return [...new Set(translation.note_details.filter(({ code }) => code === "unknown_words").flatMap(({ words }) => words))];
}
