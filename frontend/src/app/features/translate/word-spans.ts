/** Where words stand in a text: to mark them without changing a letter of it. */

export interface Span {
  start: number;
  end: number;
}

/** Find each word after the one before it; null for one that is not there. */
export function placeWords(text: string, words: readonly string[]): (Span | null)[] {
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
  /** Which word it is; null for what stands between words. */
  word: number | null;
}

/** Cut a text into its words and what stands between them; together they are the text again. */
export function segments(text: string, spans: readonly (Span | null)[]): Segment[] {
  const found: Segment[] = [];
  let at = 0;
  spans.forEach((span, word) => {
    if (!span) return;
    if (span.start > at) found.push({ text: text.slice(at, span.start), word: null });
    found.push({ text: text.slice(span.start, span.end), word });
    at = span.end;
  });
  if (at < text.length) found.push({ text: text.slice(at), word: null });
  return found;
}

/** The words of a text as spaces part them. */
export function spaceWords(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

/**
 * Say which of the `others` each word is, both lists in the order of the text; -1 for none.
 *
 * Two lists of one text can differ where an unknown word was replaced, or a text was cut otherwise.
 */
export function matchWords(words: readonly string[], others: readonly string[]): number[] {
  if (words.length === others.length) return words.map((_, place) => place);
  let from = 0;
  return words.map((word) => {
    const at = others.indexOf(word, from);
    if (at >= 0) from = at + 1;
    return at;
  });
}

/** What stands before a word, to begin a translation with. */
export function textBefore(text: string, span: Span): string {
  return text.slice(0, span.start).trimEnd();
}

/** Put a chosen word after a beginning. */
export function joinPrefix(prefix: string, word: string): string {
  const joint = prefix && !/^[.,!?;:)\]}'’”"]/.test(word) ? " " : "";
  return prefix + joint + word;
}
