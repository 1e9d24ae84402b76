/** The labels of rows and columns: tokens, or the words that they form. */

import type { Kind, InspectionRecord, Series, Side, Token } from "../record/record";
import { shortTimes } from "../display/short-times";

/** The label of a row or a column. */
export interface Unit {
  /** Empty for the start and the end symbol. */
  text: string;
  special: "start" | "end" | null;
  word: number | null;
  /** The indices of its tokens. */
  members: number[];
  /** Whether it is the first token of a word. */
  isFirst: boolean;
}

export interface Axes {
  rows: Unit[];
  columns: Unit[];
}

/** The pieces that stand for the start and the end of a sentence in a vocabulary. */
const SYMBOLS: Readonly<Record<string, Unit["special"]>> = { "<s>": "start", "</s>": "end" };
const START: Token = { id: -1, piece: "<s>", text: "", word: null };

/** Return the labels of the rows and columns of one kind of attention, by tokens or by words. */
export function axesOf(record: InspectionRecord, kind: Kind, byWords: boolean): Axes {
  const units = byWords ? wordUnits : tokenUnits;
  const src = () => units(record.src.tokens, record.src.words);
  const tgt = () => (record.series ? targetUnits(record) : units(record.tgt.tokens, record.tgt.words));
  if (kind === "encoder_self") return { rows: src(), columns: src() };
  if (kind === "cross") return { rows: tgt(), columns: src() };
  const inputs = [START, ...record.tgt.tokens.slice(0, -1)];
  if (record.series) return { rows: tgt(), columns: [...tokenUnits([START]), ...tgt().slice(0, -1)].map(withMember) };
  return { rows: tgt(), columns: units(inputs, record.tgt.words) };
}

/** The labels of the target tokens; those of a series begin with their time. */
export function targetUnits({ tgt, series }: { tgt: Side; series: Series | null }): Unit[] {
  const times = series && shortTimes(series.tgt_times);
  return tokenUnits(tgt.tokens).map((unit, index) => (times ? { ...unit, text: `${times[index]} ${unit.text}` } : unit));
}

function withMember(unit: Unit, index: number): Unit {
  return { ...unit, members: [index] };
}

/** Return one label per token. */
export function tokenUnits(tokens: Token[]): Unit[] {
  return tokens.map((token, index) => ({
    text: tokenText(token),
    special: specialOf(token),
    word: token.word,
    members: [index],
    isFirst: token.word === null || index === 0 || tokens[index - 1].word !== token.word,
  }));
}

/** Return one label for the consecutive tokens of a word. */
export function wordUnits(tokens: Token[], words: string[]): Unit[] {
  const units: Unit[] = [];
  tokens.forEach((token, index) => {
    const last = units.at(-1);
    if (last && token.word !== null && last.word === token.word) {
      last.members.push(index);
    } else {
      const text = token.word === null ? tokenText(token) : words[token.word];
      units.push({ text, special: specialOf(token), word: token.word, members: [index], isFirst: true });
    }
  });
  return units;
}

/**
 * Combine the weights of tokens (rows x columns) into weights of words.
 *
 * The weight to a word is the sum over its tokens, the weight from a word is the mean over them: rows that
 * sum to one still do.
 */
export function joinUnits(weights: Float32Array, { rows, columns }: Axes): Float32Array {
  const numColumns = columns.reduce((sum, unit) => sum + unit.members.length, 0);
  const joined = new Float32Array(rows.length * columns.length);
  rows.forEach((row, i) => {
    columns.forEach((column, j) => {
      let sum = 0;
      for (const r of row.members) for (const c of column.members) sum += weights[r * numColumns + c];
      joined[i * columns.length + j] = sum / row.members.length;
    });
  });
  return joined;
}

/** The text of a piece, without its word boundary mark. */
export function pieceText(piece: string): string {
  return piece.replaceAll("▁", " ").trim() || (piece.includes("▁") ? "␣" : piece);
}

/** The label of a piece that is not part of the sentence, such as a prediction. */
export function pieceLabel(piece: string): Pick<Unit, "text" | "special"> {
  return { text: pieceText(piece), special: SYMBOLS[piece] ?? null };
}

/** Join pieces into a text. */
export function joinPieces(pieces: string[]): string {
  return pieces.join("").replaceAll("▁", " ").trim();
}

function tokenText(token: Token): string {
  return token.text || (specialOf(token) ? "" : pieceText(token.piece));
}

function specialOf(token: Token): Unit["special"] {
  if (token === START) return "start";
  const isSymbol = token.text === "" && token.word === null && !/^▁+$/.test(token.piece);
  return isSymbol ? "end" : null;
}
