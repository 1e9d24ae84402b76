/** A translation made ready to be read word by word: where each word stands, how sure it is, where it looked. */

import type { Translated } from "../../api/types";
import { matchWords, placeWords, type Segment, segments, spaceWords, type Span } from "./word-spans";

export interface Word {
  text: string;
  span: Span;
  /** null where the model did not tell. */
  probability: number | null;
  /** Weights over the source words; null where there is no alignment. */
  looks: number[] | null;
}

export interface Reading {
  segments: Segment[];
  words: (Word | null)[];
  sourceWords: string[];
}

export function readingOf({ text, words: said, confidence, alignment }: Pick<Translated, "text" | "words" | "confidence" | "alignment">): Reading {
  const words = said.length ? said : spaceWords(text);
  const spans = placeWords(text, words);
  const sure = matchWords(words, confidence?.words.map((word) => word.text) ?? []);
  const rows = matchWords(words, alignment?.target_words ?? []);
  return {
    segments: segments(text, spans),
    words: spans.map((span, place) =>
      span && {
        text: words[place],
        span,
        probability: confidence?.words[sure[place]]?.probability ?? null,
        looks: alignment?.weights[rows[place]] ?? null,
      },
    ),
    sourceWords: alignment?.source_words ?? [],
  };
}

export interface Looked {
  word: string;
  weight: number;
}

/** The source words that a word looked at most, strongest first. */
export function strongest(looks: readonly number[], sourceWords: readonly string[], most = 3): Looked[] {
  return looks
    .map((weight, place) => ({ word: sourceWords[place], weight }))
    .filter(({ weight }) => weight >= 0.05)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, most);
}
