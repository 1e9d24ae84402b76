/** What stands along the edges of a picture: tokens, or the words that they make up. */

import type { Kind, LookRecord, Series, Side, Token } from "../record/types";
import { shortTimes } from "../display/short-times";

/** One label of a row or a column. */
export interface Unit {
  /** What it says; empty for the start and the end symbol. */
  text: string;
  special: "start" | "end" | null;
  word: number | null;
  /** The token rows or columns that it stands for. */
  members: number[];
  /** Whether a new word begins here. */
  isFirst: boolean;
}

export interface Axes {
  rows: Unit[];
  columns: Unit[];
}

const START: Token = { id: -1, piece: "<s>", text: "", word: null };

/** Name the rows and columns of one kind of attention, by tokens or by words. */
export function axesOf(record: LookRecord, kind: Kind, byWords: boolean): Axes {
  const units = byWords ? wordUnits : tokenUnits;
  const src = () => units(record.src.tokens, record.src.words);
  const tgt = () => (record.series ? targetUnits(record) : units(record.tgt.tokens, record.tgt.words));
  if (kind === "encoder_self") return { rows: src(), columns: src() };
  if (kind === "cross") return { rows: tgt(), columns: src() };
  const inputs = [START, ...record.tgt.tokens.slice(0, -1)];
  if (record.series) return { rows: tgt(), columns: [...tokenUnits([START]), ...tgt().slice(0, -1)].map(atPlace) };
  return { rows: tgt(), columns: units(inputs, record.tgt.words) };
}

/** The tokens of the target; those of a series say when. */
export function targetUnits({ tgt, series }: { tgt: Side; series: Series | null }): Unit[] {
  const times = series && shortTimes(series.tgt_times);
  return tokenUnits(tgt.tokens).map((unit, place) => (times ? { ...unit, text: `${times[place]} ${unit.text}` } : unit));
}

function atPlace(unit: Unit, place: number): Unit {
  return { ...unit, members: [place] };
}

/** Give each token a label of its own. */
export function tokenUnits(tokens: Token[]): Unit[] {
  return tokens.map((token, place) => ({
    text: sayToken(token),
    special: specialOf(token),
    word: token.word,
    members: [place],
    isFirst: token.word === null || place === 0 || tokens[place - 1].word !== token.word,
  }));
}

/** Put neighbouring tokens of one word under one label. */
export function wordUnits(tokens: Token[], words: string[]): Unit[] {
  const units: Unit[] = [];
  tokens.forEach((token, place) => {
    const last = units.at(-1);
    if (last && token.word !== null && last.word === token.word) {
      last.members.push(place);
    } else {
      const said = token.word === null ? sayToken(token) : words[token.word];
      units.push({ text: said, special: specialOf(token), word: token.word, members: [place], isFirst: true });
    }
  });
  return units;
}

/** The units of one side on its own. */
export function unitsOf(side: Side, byWords: boolean): Unit[] {
  return byWords ? wordUnits(side.tokens, side.words) : tokenUnits(side.tokens);
}

/**
 * Join weights (rows x columns of tokens) into weights of units.
 *
 * What a word gets is the sum over its tokens, what a word gives is the mean over them: rows that
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

/** The words of a piece, without its mark: for lists of guesses. */
export function sayPiece(piece: string): string {
  return piece.replaceAll("▁", " ").trim() || (piece.includes("▁") ? "␣" : piece);
}

/** Put pieces together into a text. */
export function joinPieces(pieces: string[]): string {
  return pieces.join("").replaceAll("▁", " ").trim();
}

function sayToken(token: Token): string {
  return token.text || (specialOf(token) ? "" : sayPiece(token.piece));
}

function specialOf(token: Token): Unit["special"] {
  if (token === START) return "start";
  const isSymbol = token.text === "" && token.word === null && !/^▁+$/.test(token.piece);
  return isSymbol ? "end" : null;
}
