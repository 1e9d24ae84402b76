/** Text to ids and back, as SentencePiece does it: the same ids for the same model file. */

import { encodeBpe } from "./bpe";
import { characterLength, Normalizer, SPACE_SYMBOL } from "./normalizer";
import { readModelProto, type ModelProto, type Piece, type PieceType } from "./proto";
import { UnigramModel } from "./unigram";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class SentencePiece {
  private readonly model: ModelProto;
  private readonly ids = new Map<string, number>();
  /** Scores of the pieces that text can be split into. */
  private readonly scores = new Map<string, number>();
  private readonly unused = new Set<string>();
  private readonly symbols = new Set<string>();
  private readonly byteIds: (number | undefined)[] = [];
  private readonly unknownId: number;
  private readonly normalizer: Normalizer;
  private readonly split: (text: string) => string[];
  private readonly longestSymbol: number;

  /** `bytes` are those of a SentencePiece model file. */
  constructor(bytes: Uint8Array) {
    this.model = readModelProto(bytes);
    let unknownId = 0;
    this.model.pieces.forEach(({ text, score, type }, id) => {
      if (type === "unknown") unknownId = id;
      if (type === "byte") this.byteIds[parseInt(text.slice(3, 5), 16)] = id;
      if (type === "unknown" || type === "control" || type === "byte") return;
      this.ids.set(text, id);
      this.scores.set(text, score);
      if (type === "unused") this.unused.add(text);
      if (type === "user_defined") this.symbols.add(text);
    });
    this.unknownId = unknownId;
    this.longestSymbol = Math.max(0, ...Array.from(this.symbols, (symbol) => symbol.length));
    const matchSymbol = (text: string, index: number): number => this.matchSymbol(text, index);
    this.normalizer = new Normalizer(this.model.normalization, this.model.isSpaceSuffix, matchSymbol);
    this.split = this.makeSplitter(matchSymbol);
  }

  /** The number of pieces. */
  get size(): number {
    return this.model.pieces.length;
  }

  /** Return the ids of a text, without begin and end symbols. */
  encode(text: string): number[] {
    return this.encodeAsPieces(text).map(({ id }) => id);
  }

  /** Return each piece of a text with its id; the bytes of an unknown character are pieces. */
  encodeAsPieces(text: string): { id: number; text: string }[] {
    const result: { id: number; text: string }[] = [];
    let isAfterUnknown = false;
    for (const piece of this.split(this.normalizer.normalize(text))) {
      const id = this.ids.get(piece);
      if (id !== undefined) result.push({ id, text: piece });
      else if (this.model.hasByteFallback) {
        for (const byte of encoder.encode(piece)) {
          const byteId = this.byteIds[byte]!;
          result.push({ id: byteId, text: this.model.pieces[byteId]!.text });
        }
      } else if (isAfterUnknown) result.at(-1)!.text += piece;
      else result.push({ id: this.unknownId, text: piece });
      isAfterUnknown = id === undefined && !this.model.hasByteFallback;
    }
    return result;
  }

  /** Return the text of ids. */
  decode(ids: Iterable<number>): string {
    let text = "";
    let bytes: number[] = [];
    let isFirst = true;
    for (const id of ids) {
      const piece = this.model.pieces[id];
      if (!piece) throw new Error(`no piece has the id ${String(id)}`);
      if (piece.type === "control") continue;
      if (piece.type === "byte") {
        bytes.push(parseInt(piece.text.slice(3, 5), 16));
        isFirst = false;
        continue;
      }
      const surface = this.surfaceOf(piece, isFirst);
      text += decodeBytes(Uint8Array.from(bytes)) + surface.replaceAll(SPACE_SYMBOL, " ");
      bytes = [];
      // A space alone at the beginning, where extra spaces are removed, leaves the next piece the first one.
      isFirst &&= surface === "" && this.model.normalization.removesExtraSpaces;
    }
    return text + decodeBytes(Uint8Array.from(bytes));
  }

  /** Return the text of a piece; the first one loses the space that encoding puts before a text. */
  private surfaceOf(piece: Piece, isFirst: boolean): string {
    if (piece.type === "unknown") return this.model.unknownSurface;
    const { addsDummyPrefix, removesExtraSpaces } = this.model.normalization;
    const hasPrefix = (addsDummyPrefix || removesExtraSpaces) && !this.model.isSpaceSuffix;
    return isFirst && hasPrefix && piece.text.startsWith(SPACE_SYMBOL) ? piece.text.slice(1) : piece.text;
  }

  /** Return the piece of an id; a space is written as ▁. */
  pieceOf(id: number): string {
    return this.model.pieces[id]?.text ?? "";
  }

  typeOf(id: number): PieceType {
    return this.model.pieces[id]?.type ?? "control";
  }

  private makeSplitter(matchSymbol: (text: string, index: number) => number): (text: string) => string[] {
    const { kind } = this.model;
    if (kind === "unigram") {
      const used = new Map([...this.scores].filter(([piece]) => !this.unused.has(piece)));
      const model = new UnigramModel(used, this.symbols);
      return (text) => model.encode(text);
    }
    if (kind === "bpe") {
      const vocabulary = {
        score: (piece: string) => this.scores.get(piece),
        isUnused: (piece: string) => this.unused.has(piece),
        matchSymbol,
      };
      return (text) => encodeBpe(text, vocabulary);
    }
    if (kind === "char") return (text) => splitCharacters(text, matchSymbol);
    return (text) => splitWords(text, this.model.isSpaceSuffix);
  }

  /** Return the length of the longest user-defined symbol at an index of a text. */
  private matchSymbol(text: string, index: number): number {
    for (let length = Math.min(this.longestSymbol, text.length - index); length > 0; length--) {
      if (this.symbols.has(text.slice(index, index + length))) return length;
    }
    return 0;
  }
}

/** Decode UTF-8; each byte that belongs to no character becomes U+FFFD. */
function decodeBytes(bytes: Uint8Array): string {
  let text = "";
  for (let offset = 0; offset < bytes.length; ) {
    const first = bytes[offset]!;
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    try {
      text += decoder.decode(bytes.subarray(offset, offset + length));
      offset += length;
    } catch {
      text += "\ufffd";
      offset++;
    }
  }
  return text;
}

function splitCharacters(text: string, matchSymbol: (text: string, index: number) => number): string[] {
  const parts: string[] = [];
  for (let index = 0; index < text.length; ) {
    const length = matchSymbol(text, index) || characterLength(text, index);
    parts.push(text.slice(index, index + length));
    index += length;
  }
  return parts;
}

function splitWords(text: string, isSpaceSuffix: boolean): string[] {
  const boundary = isSpaceSuffix ? new RegExp(`(?<=${SPACE_SYMBOL})(?!${SPACE_SYMBOL})`, "u") : new RegExp(`(?=${SPACE_SYMBOL})`, "u");
  return text ? text.split(boundary) : [];
}
