/** Byte-pair encoding: the adjacent pair with the best score is merged first. */

import { characterLength } from "./normalizer";

interface Part {
  /** Index of the parts before and after, or -1. */
  previous: number;
  next: number;
  text: string;
  /** A user-defined symbol is never merged. */
  isFrozen: boolean;
}

interface Pair {
  left: number;
  right: number;
  score: number;
  length: number;
}

/** What the merges depend on. */
export interface BpeVocabulary {
  /** The score of a piece, or undefined if it is none. */
  score: (piece: string) => number | undefined;
  /** Whether a piece is only an intermediate result, to be taken apart again. */
  isUnused: (piece: string) => boolean;
  /** The length of the user-defined symbol at an index of a text, or 0. */
  matchSymbol: (text: string, index: number) => number;
}

/** Return the pieces of a normalized text. */
export function encodeBpe(text: string, vocabulary: BpeVocabulary): string[] {
  const parts = splitIntoCharacters(text, vocabulary);
  const queue = new PairQueue();
  const origins = new Map<string, [string, string]>();

  function addPair(left: number, right: number): void {
    const [first, second] = [parts[left], parts[right]];
    if (!first || !second || first.isFrozen || second.isFrozen) return;
    const piece = first.text + second.text;
    const score = vocabulary.score(piece);
    if (score === undefined) return;
    queue.push({ left, right, score, length: piece.length });
    if (vocabulary.isUnused(piece)) origins.set(piece, [first.text, second.text]);
  }

  for (let index = 1; index < parts.length; index++) addPair(index - 1, index);
  for (let pair = queue.pop(); pair; pair = queue.pop()) {
    const [first, second] = [parts[pair.left]!, parts[pair.right]!];
    // Parts that were merged since then are empty or longer.
    if (!first.text || !second.text || first.text.length + second.text.length !== pair.length) continue;
    first.text += second.text;
    first.next = second.next;
    if (second.next >= 0) parts[second.next]!.previous = pair.left;
    second.text = "";
    addPair(first.previous, pair.left);
    addPair(pair.left, first.next);
  }

  const pieces: string[] = [];
  function emit(piece: string): void {
    const origin = vocabulary.isUnused(piece) ? origins.get(piece) : undefined;
    if (origin) origin.forEach(emit);
    else pieces.push(piece);
  }
  for (let index = parts.length > 0 ? 0 : -1; index >= 0; index = parts[index]!.next) emit(parts[index]!.text);
  return pieces;
}

function splitIntoCharacters(text: string, vocabulary: BpeVocabulary): Part[] {
  const parts: Part[] = [];
  for (let index = 0; index < text.length; ) {
    const symbolLength = vocabulary.matchSymbol(text, index);
    const length = symbolLength || characterLength(text, index);
    parts.push({ previous: parts.length - 1, next: parts.length + 1, text: text.slice(index, index + length), isFrozen: symbolLength > 0 });
    index += length;
  }
  if (parts.length > 0) parts.at(-1)!.next = -1;
  return parts;
}

/** A heap of pairs: the best score first, and among equal ones the leftmost. */
class PairQueue {
  private readonly pairs: Pair[] = [];

  push(pair: Pair): void {
    const pairs = this.pairs;
    let index = pairs.length;
    pairs.push(pair);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(pair, pairs[parent]!)) break;
      pairs[index] = pairs[parent]!;
      index = parent;
    }
    pairs[index] = pair;
  }

  pop(): Pair | undefined {
    const pairs = this.pairs;
    const [first, last] = [pairs[0], pairs.pop()];
    if (pairs.length === 0 || !last) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= pairs.length) break;
      if (child + 1 < pairs.length && isBefore(pairs[child + 1]!, pairs[child]!)) child++;
      if (!isBefore(pairs[child]!, last)) break;
      pairs[index] = pairs[child]!;
      index = child;
    }
    pairs[index] = last;
    return first;
  }
}

function isBefore(first: Pair, second: Pair): boolean {
  return first.score > second.score || (first.score === second.score && first.left < second.left);
}
