/** A translation prepared for display: its sentences, and for each word its span, its probability and what it attends to. */

import type { Alignment, Translation } from "../../api/schemas";
import { utf16Offsets } from "./code-points";
import { alignWords, findWordSpans, type Segment, type Span, splitAtSpans, splitOnSpaces } from "./word-spans";

const MIN_WEIGHT = 0.05;

export interface AnnotatedWord {
  text: string;
  span: Span;
  /** Null without confidence. */
  probability: number | null;
  /** The index of its sentence; -1 for none. */
  sentence: number;
  /** Weights over the source words of its sentence; null without an alignment. */
  sourceWeights: number[] | null;
}

/** A part of the text that was translated by itself. */
export interface AnnotatedSentence {
  source: Span;
  target: Span;
  sourceWords: string[];
  /** In the whole source; null for a word that does not occur in the text unchanged. */
  sourceSpans: (Span | null)[];
}

export interface AnnotatedTranslation {
  segments: Segment[];
  words: (AnnotatedWord | null)[];
  sentences: AnnotatedSentence[];
  hasAlignment: boolean;
}

/** What is marked in the source: a sentence, and its words with their weights. */
export interface SourceHighlight {
  sentence: Span | null;
  words: { span: Span; weight: number }[];
}

type Given = Pick<Translation, "text" | "words" | "confidence" | "alignment" | "sentences">;

export function annotate(translation: Given, source: string): AnnotatedTranslation {
  const { text, words: given, confidence } = translation;
  const words = given.length ? given : splitOnSpaces(text);
  const spans = findWordSpans(text, words);
  const confidenceIndices = alignWords(words, confidence?.words.map((word) => word.text) ?? []);
  const sentences = sentencesOf(translation, source);
  const sentenceOf = spans.map((span) => (span ? sentences.findIndex(({ target }) => span.start < target.end && span.end > target.start) : -1));
  const rows = sentences.flatMap(({ alignment }, sentence) => rowsOf(words, sentenceOf, sentence, alignment));
  const rowByWord = new Map(rows);
  return {
    segments: splitAtSpans(text, spans),
    words: spans.map((span, index) =>
      span && {
        text: words[index],
        span,
        probability: confidence?.words[confidenceIndices[index]]?.probability ?? null,
        sentence: sentenceOf[index],
        sourceWeights: rowByWord.get(index) ?? null,
      },
    ),
    sentences: sentences.map(({ alignment, ...sentence }) => ({ ...sentence, ...sourceWordsOf(alignment, sentence.source, source) })),
    hasAlignment: rows.length > 0,
  };
}

/** A text without sentences from the server is one sentence. */
function sentencesOf({ text, sentences, alignment }: Given, source: string): { source: Span; target: Span; alignment: Alignment | null }[] {
  if (!sentences.length) return text ? [{ source: { start: 0, end: source.length }, target: { start: 0, end: text.length }, alignment }] : [];
  const [inSource, inText] = [utf16Offsets(source), utf16Offsets(text)];
  return sentences.map((sentence) => ({
    source: { start: inSource(sentence.source_start), end: inSource(sentence.source_end) },
    target: { start: inText(sentence.start), end: inText(sentence.end) },
    alignment: sentence.alignment,
  }));
}

/** The index of each word of a sentence, with its row of weights. */
function rowsOf(words: string[], sentenceOf: number[], sentence: number, alignment: Alignment | null): [number, number[]][] {
  if (!alignment) return [];
  const indices = words.flatMap((_, index) => (sentenceOf[index] === sentence ? [index] : []));
  const rows = alignWords(indices.map((index) => words[index]), alignment.target_words);
  return indices.flatMap((index, at): [number, number[]][] => (alignment.weights[rows[at]] ? [[index, alignment.weights[rows[at]]]] : []));
}

function sourceWordsOf(alignment: Alignment | null, span: Span, source: string): Pick<AnnotatedSentence, "sourceWords" | "sourceSpans"> {
  const sourceWords = alignment?.source_words ?? [];
  const spans = findWordSpans(source.slice(span.start, span.end), sourceWords);
  return { sourceWords, sourceSpans: spans.map((one) => one && { start: one.start + span.start, end: one.end + span.start }) };
}

/** What to mark in the source for a word of the translation, or for a sentence; null for nothing. */
export function sourceHighlight({ words, sentences }: AnnotatedTranslation, word: number | null, sentence: number | null): SourceHighlight | null {
  const pointed = word === null ? null : words[word];
  const found = sentences[pointed?.sentence ?? sentence ?? -1];
  if (!found) return null;
  const weighted = (pointed?.sourceWeights ?? []).flatMap((weight, index) => (found.sourceSpans[index] ? [{ span: found.sourceSpans[index], weight }] : []));
  return { sentence: sentences.length > 1 ? found.source : null, words: weighted };
}

/** The index of the sentence whose source contains an offset; null for none. */
export function sentenceAt(sentences: readonly AnnotatedSentence[], offset: number): number | null {
  const index = sentences.findIndex(({ source }) => source.start <= offset && offset <= source.end);
  return index < 0 ? null : index;
}

export interface WeightedWord {
  word: string;
  weight: number;
}

/** A word without the punctuation around it, which would look like that of our sentence. */
export function withoutPunctuation(word: string): string {
  return word.replace(/^\p{P}+|\p{P}+$/gu, "") || word;
}

/** The source words with the largest weights, largest first. */
export function strongestSources(weights: readonly number[], sourceWords: readonly string[], limit = 3): WeightedWord[] {
  return weights
    .map((weight, index) => ({ word: withoutPunctuation(sourceWords[index]), weight }))
    .filter(({ weight }) => weight >= MIN_WEIGHT)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, limit);
}
