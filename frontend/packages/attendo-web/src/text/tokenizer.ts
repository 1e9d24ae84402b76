/** Text to ids and back, as `onnx.json` describes it: normalization and escapes around SentencePiece. */

import { SentencePiece } from "../tokenizer/sentencepiece";

import { normalize } from "./normalize";

export interface TokenizerInfo {
  /** Names of the SentencePiece models; equal if both sides share a vocabulary. */
  src: string;
  tgt: string;
  /** Characters that SentencePiece uses itself, and what they become. */
  escapes: Record<string, string>;
  /** An imported model has a vocabulary of its own. */
  pieces: string | null;
}

export class TextTokenizer {
  readonly src: SentencePiece;
  readonly tgt: SentencePiece;

  constructor(
    private readonly info: TokenizerInfo,
    private readonly endId: number,
    src: Uint8Array,
    tgt: Uint8Array,
  ) {
    if (info.pieces !== null) throw new Error("imported models with a vocabulary of their own are not supported");
    this.src = new SentencePiece(src);
    this.tgt = tgt === src ? this.src : new SentencePiece(tgt);
  }

  /** Return the ids of a source text with the end symbol; no ids for an empty text. */
  encode(text: string): number[] {
    const prepared = this.prepare(text);
    return prepared ? [...this.src.encode(prepared), this.endId] : [];
  }

  /** Return the parts of a source text that the vocabulary lacks. */
  unknownsOf(text: string): string[] {
    const pieces = this.src.encodeAsPieces(this.prepare(text));
    return pieces.filter(({ id }) => this.src.typeOf(id) === "unknown").map((piece) => piece.text);
  }

  /** Return the words of a source text that the vocabulary lacks, at least in part. */
  unknownWords(text: string): string[] {
    if (this.unknownsOf(text).length === 0) return [];
    const words = text.split(/\s+/).filter((word) => word && this.unknownsOf(word).length > 0);
    return [...new Set(words)];
  }

  /** Return the text of target ids. */
  decode(ids: readonly number[]): string {
    return normalize(this.unescape(this.tgt.decode(ids)));
  }

  /** Return a text with the characters that were escaped for SentencePiece. */
  unescape(text: string): string {
    for (const [plain, escaped] of Object.entries(this.info.escapes).reverse()) text = text.replaceAll(escaped, plain);
    return text;
  }

  normalize(text: string): string {
    return normalize(text);
  }

  private prepare(text: string): string {
    let prepared = normalize(text);
    for (const [plain, escaped] of Object.entries(this.info.escapes)) prepared = prepared.replaceAll(plain, escaped);
    return prepared;
  }
}
