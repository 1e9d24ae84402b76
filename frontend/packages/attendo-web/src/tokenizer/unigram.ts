/** The unigram model: of all ways to split a text into pieces, the most probable one. */

import { characterLength } from "./normalizer";

const UNKNOWN_PENALTY = 10;

interface Node {
  pieces: Map<string, Node>;
  /** The score of the piece that ends here; NaN if none does. */
  score: number;
}

/** Finds the most probable split with the scores of a vocabulary. */
export class UnigramModel {
  private readonly root: Node = { pieces: new Map(), score: NaN };
  private readonly unknownScore: number;

  /** `scores` has the pieces that a text may be split into; user-defined symbols are preferred to others. */
  constructor(scores: ReadonlyMap<string, number>, symbols: ReadonlySet<string>) {
    let [lowest, highest] = [Infinity, -Infinity];
    for (const score of scores.values()) [lowest, highest] = [Math.min(lowest, score), Math.max(highest, score)];
    this.unknownScore = lowest - UNKNOWN_PENALTY;
    const encoder = new TextEncoder();
    for (const [piece, score] of scores) {
      this.insert(piece, symbols.has(piece) ? encoder.encode(piece).length * highest - 0.1 : score);
    }
  }

  /** Return the pieces of a normalized text; a character that no piece has is a piece by itself. */
  encode(text: string): string[] {
    // Scores are added as SentencePiece adds them, in single precision, so that equal splits stay equal.
    const best = new Float32Array(text.length + 1);
    const starts = new Int32Array(text.length + 1).fill(-1);
    const relax = (start: number, end: number, pieceScore: number): void => {
      const score = Math.fround(pieceScore + best[start]!);
      if (starts[end] !== -1 && score <= best[end]!) return;
      best[end] = score;
      starts[end] = start;
    };
    for (let start = 0; start < text.length; ) {
      const length = characterLength(text, start);
      let node: Node | undefined = this.root;
      let hasSingle = false;
      for (let end = start; end < text.length; ) {
        const next: number = end + characterLength(text, end);
        node = node.pieces.get(text.slice(end, next));
        if (!node) break;
        end = next;
        if (Number.isNaN(node.score)) continue;
        relax(start, end, node.score);
        hasSingle ||= end - start === length;
      }
      if (!hasSingle) relax(start, start + length, this.unknownScore);
      start += length;
    }
    const pieces: string[] = [];
    for (let end = text.length; end > 0; end = starts[end]!) pieces.push(text.slice(starts[end], end));
    return pieces.reverse();
  }

  private insert(piece: string, score: number): void {
    let node = this.root;
    for (const character of piece) {
      let next = node.pieces.get(character);
      if (!next) node.pieces.set(character, (next = { pieces: new Map(), score: NaN }));
      node = next;
    }
    node.score = score;
  }
}
