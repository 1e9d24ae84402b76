/** A translation prepared for display word by word: the span of each word, its probability and what it attends to. */

import type { Translation } from "../../api/schemas";
import { alignWords, findWordSpans, type Segment, type Span, splitAtSpans, splitOnSpaces } from "./word-spans";

const MIN_WEIGHT = 0.05;

export interface AnnotatedWord {
  text: string;
  span: Span;
  /** Null without confidence. */
  probability: number | null;
  /** Weights over the source words; null without an alignment. */
  sourceWeights: number[] | null;
}

export interface AnnotatedTranslation {
  segments: Segment[];
  words: (AnnotatedWord | null)[];
  sourceWords: string[];
}

export function annotate({ text, words: given, confidence, alignment }: Pick<Translation, "text" | "words" | "confidence" | "alignment">): AnnotatedTranslation {
  const words = given.length ? given : splitOnSpaces(text);
  const spans = findWordSpans(text, words);
  const confidenceIndices = alignWords(words, confidence?.words.map((word) => word.text) ?? []);
  const alignmentRows = alignWords(words, alignment?.target_words ?? []);
  return {
    segments: splitAtSpans(text, spans),
    words: spans.map((span, index) =>
      span && {
        text: words[index],
        span,
        probability: confidence?.words[confidenceIndices[index]]?.probability ?? null,
        sourceWeights: alignment?.weights[alignmentRows[index]] ?? null,
      },
    ),
    sourceWords: alignment?.source_words ?? [],
  };
}

export interface WeightedWord {
  word: string;
  weight: number;
}

/** The source words with the largest weights, largest first. */
export function strongestSources(weights: readonly number[], sourceWords: readonly string[], limit = 3): WeightedWord[] {
  return weights
    .map((weight, index) => ({ word: sourceWords[index], weight }))
    .filter(({ weight }) => weight >= MIN_WEIGHT)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, limit);
}
