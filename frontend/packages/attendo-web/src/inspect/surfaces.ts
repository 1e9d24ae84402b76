/** Tokens of one side with their surface text and words, as a record has them. */

import { SPACE_SYMBOL } from "../tokenizer/normalizer";
import type { SentencePiece } from "../tokenizer/sentencepiece";

const UNKNOWN_MARK = "⁇";

export interface RecordToken {
  id: number;
  piece: string;
  text: string;
  word: number | null;
}

export interface RecordSide {
  text: string;
  tokens: RecordToken[];
  words: string[];
}

/** Return ids, pieces and surfaces of one side, each with the index of its word; `unknowns` are the texts of unknown pieces. */
export function buildSide(
  text: string,
  ids: readonly number[],
  tokenizer: SentencePiece,
  unescape: (text: string) => string,
  unknowns: readonly string[] = [],
): RecordSide {
  const surfaces = surfacesOf(ids, tokenizer, [...unknowns]).map(unescape);
  const words: string[] = [];
  const wordOfToken = new Map<number, number>();
  for (const indices of groupIntoWords(surfaces)) {
    const word = indices.map((index) => surfaces[index]).join("").trim();
    if (!word) continue; // a lone space is not a word
    for (const index of indices) wordOfToken.set(index, words.length);
    words.push(word);
  }
  const tokens = ids.map((id, index) => ({
    id,
    piece: tokenizer.pieceOf(id),
    text: surfaces[index]!.trim(),
    word: tokenizer.typeOf(id) === "control" ? null : (wordOfToken.get(index) ?? null),
  }));
  return { text, tokens, words };
}

/** Return the text of each id; of a character that is split into bytes, the last byte has it. */
function surfacesOf(ids: readonly number[], tokenizer: SentencePiece, unknowns: string[]): string[] {
  let decoder = new TextDecoder();
  const surfaces: string[] = [];
  for (const id of ids) {
    const [type, piece] = [tokenizer.typeOf(id), tokenizer.pieceOf(id)];
    if (type === "byte") {
      surfaces.push(decoder.decode(Uint8Array.of(parseInt(piece.slice(3, 5), 16)), { stream: true }));
      continue;
    }
    const unfinished = decoder.decode();
    if (unfinished) surfaces[surfaces.length - 1] += unfinished;
    decoder = new TextDecoder();
    const surface = type === "unknown" ? (unknowns.shift() ?? UNKNOWN_MARK) : piece;
    surfaces.push(type === "control" ? "" : surface.replaceAll(SPACE_SYMBOL, " "));
  }
  const unfinished = decoder.decode();
  if (unfinished) surfaces[surfaces.length - 1] += unfinished;
  if (surfaces[0]) surfaces[0] = surfaces[0].replace(/^ /, "");
  return surfaces;
}

function groupIntoWords(surfaces: readonly string[]): number[][] {
  const words: number[][] = [];
  surfaces.forEach((surface, index) => {
    if (surface.startsWith(" ") || words.length === 0) words.push([]);
    words.at(-1)!.push(index);
  });
  return words;
}
