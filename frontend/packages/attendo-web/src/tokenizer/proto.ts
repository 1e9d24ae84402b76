/** Reads SentencePiece model files, which are Protocol Buffers: pieces, kind of model, normalization. */

import { readFields } from "../protobuf";

export type PieceType = "normal" | "unknown" | "control" | "user_defined" | "unused" | "byte";

export interface Piece {
  text: string;
  score: number;
  type: PieceType;
}

export interface ModelProto {
  pieces: Piece[];
  kind: "unigram" | "bpe" | "word" | "char";
  hasByteFallback: boolean;
  isSpaceSuffix: boolean;
  unknownSurface: string;
  normalization: NormalizationSpec;
}

export interface NormalizationSpec {
  /** A trie of replacements and the replacements, as SentencePiece stores them; empty for the identity. */
  charsMap: Uint8Array;
  addsDummyPrefix: boolean;
  removesExtraSpaces: boolean;
  escapesSpaces: boolean;
}

const PIECE_TYPES: Record<number, PieceType> = { 1: "normal", 2: "unknown", 3: "control", 4: "user_defined", 5: "unused", 6: "byte" };
const KINDS = { 1: "unigram", 2: "bpe", 3: "word", 4: "char" } as const;

/** The fields of `sentencepiece_model.proto` that encoding and decoding need. */
const MODEL = { pieces: 1, trainer: 2, normalizer: 3 };
const PIECE = { text: 1, score: 2, type: 3 };
const TRAINER = { kind: 3, isSpaceSuffix: 24, byteFallback: 35, unknownSurface: 44 };
const NORMALIZER = { charsMap: 2, addsDummyPrefix: 3, removesExtraSpaces: 4, escapesSpaces: 5 };

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Return the model of a file; throw an error if it is damaged. */
export function readModelProto(bytes: Uint8Array): ModelProto {
  const model: ModelProto = {
    pieces: [],
    kind: "unigram",
    hasByteFallback: false,
    isSpaceSuffix: false,
    unknownSurface: " ⁇ ",
    normalization: { charsMap: new Uint8Array(), addsDummyPrefix: true, removesExtraSpaces: true, escapesSpaces: true },
  };
  for (const [field, value] of readFields(bytes)) {
    if (!(value instanceof Uint8Array)) continue;
    if (field === MODEL.pieces) model.pieces.push(readPiece(value));
    else if (field === MODEL.trainer) readTrainer(value, model);
    else if (field === MODEL.normalizer) readNormalizer(value, model.normalization);
  }
  if (model.pieces.length === 0) throw new Error("the tokenizer model has no pieces");
  return model;
}

function readPiece(bytes: Uint8Array): Piece {
  const piece: Piece = { text: "", score: 0, type: "normal" };
  for (const [field, value] of readFields(bytes)) {
    if (field === PIECE.text) piece.text = decoder.decode(value as Uint8Array);
    else if (field === PIECE.score) piece.score = value as number;
    else if (field === PIECE.type) piece.type = PIECE_TYPES[value as number] ?? "normal";
  }
  return piece;
}

function readTrainer(bytes: Uint8Array, model: ModelProto): void {
  for (const [field, value] of readFields(bytes)) {
    if (field === TRAINER.kind) model.kind = KINDS[value as keyof typeof KINDS];
    else if (field === TRAINER.isSpaceSuffix) model.isSpaceSuffix = value !== 0;
    else if (field === TRAINER.byteFallback) model.hasByteFallback = value !== 0;
    else if (field === TRAINER.unknownSurface) model.unknownSurface = decoder.decode(value as Uint8Array);
  }
}

function readNormalizer(bytes: Uint8Array, spec: NormalizationSpec): void {
  for (const [field, value] of readFields(bytes)) {
    if (field === NORMALIZER.charsMap) spec.charsMap = value as Uint8Array;
    else if (field === NORMALIZER.addsDummyPrefix) spec.addsDummyPrefix = value !== 0;
    else if (field === NORMALIZER.removesExtraSpaces) spec.removesExtraSpaces = value !== 0;
    else if (field === NORMALIZER.escapesSpaces) spec.escapesSpaces = value !== 0;
  }
}
