/** Where words are in a text, to highlight them without changing the text. */

export interface Span {
  start: number;
  end: number;
}

/** Find each word after the one before it; null for a word that is not in the text. */
export function findWordSpans(text: string, words: readonly string[]): (Span | null)[] {
  let from = 0;
  return words.map((word) => {
    const start = word ? text.indexOf(word, from) : -1;
    if (start < 0) return null;
    from = start + word.length;
    return { start, end: from };
  });
}

export interface Segment {
  text: string;
  /** The index of its word; null for text between words. */
  word: number | null;
}

/** Split a text into its words and the text between them; joined they are the text again. */
export function splitAtSpans(text: string, spans: readonly (Span | null)[]): Segment[] {
  const segments: Segment[] = [];
  let end = 0;
  spans.forEach((span, word) => {
    if (!span) return;
    if (span.start > end) segments.push({ text: text.slice(end, span.start), word: null });
    segments.push({ text: text.slice(span.start, span.end), word });
    end = span.end;
  });
  if (end < text.length) segments.push({ text: text.slice(end), word: null });
  return segments;
}

export interface MarkedSegment extends Segment {
  /** Whether it is in the marked part of the text. */
  isInside: boolean;
}

/** Split a text into words and the text between them, and at the ends of a part of it. */
export function markSegments(text: string, part: Span | null, words: readonly Span[]): MarkedSegment[] {
  const edges = part ? [part.start, part.end] : [];
  let position = 0;
  return splitAtSpans(text, words).flatMap(({ text: segment, word }) => {
    const [start, end] = [position, (position += segment.length)];
    const cuts = [start, ...edges.filter((edge) => edge > start && edge < end), end];
    return cuts.slice(1).map((cut, index) => ({
      text: text.slice(cuts[index], cut),
      word,
      isInside: part !== null && cuts[index] >= part.start && cut <= part.end,
    }));
  });
}

export function splitOnSpaces(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

/**
 * Return the index in `others` of each word, both lists being in the order of the text; -1 for none.
 *
 * Two lists of words of the same text differ where an unknown word was replaced, or where the text was split differently.
 */
export function alignWords(words: readonly string[], others: readonly string[]): number[] {
  if (words.length === others.length) return words.map((_, index) => index);
  let from = 0;
  return words.map((word) => {
    const index = others.indexOf(word, from);
    if (index >= 0) from = index + 1;
    return index;
  });
}

/** The text before a word: the prefix that keeps everything up to it. */
export function textBefore(text: string, span: Span): string {
  return text.slice(0, span.start).trimEnd();
}

/** Append a word to a prefix. */
export function joinPrefix(prefix: string, word: string): string {
  const separator = prefix && !/^[.,!?;:)\]}'’”"]/.test(word) ? " " : "";
  return prefix + separator + word;
}
