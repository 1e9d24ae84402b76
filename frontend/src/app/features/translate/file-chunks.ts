/** A text file, line by line, in pieces that the server takes. */

import { tagOf } from "../../shared/models";

export interface Limits {
  lines: number;
  characters: number;
}

/** Lines that go to the server together, by their places in the file. */
export type Piece = number[];

export function linesOf(text: string): string[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Gather the lines that say something; empty ones stay as they are. */
export function cutPieces(lines: readonly string[], { lines: most, characters }: Limits): Piece[] {
  const pieces: Piece[] = [];
  let size = 0;
  lines.forEach((line, place) => {
    if (!line.trim()) return;
    const last = pieces.at(-1);
    if (!last || last.length >= most || size + line.length > characters) {
      pieces.push([place]);
      size = line.length;
    } else {
      last.push(place);
      size += line.length;
    }
  });
  return pieces;
}

/** The first line that is longer than the server takes, counted from 1; null for none. */
export function tooLong(lines: readonly string[], characters: number): number | null {
  const place = lines.findIndex((line) => line.length > characters);
  return place < 0 ? null : place + 1;
}

/** The name for the translation of a file: notes.txt -> notes.en.txt, or notes.translated.txt. */
export function translatedName(name: string, target: string): string {
  const cut = /^(.*?)(\.[^.]*)?$/s.exec(name) ?? ["", name, ""];
  return `${cut[1]}.${tagOf(target) ?? "translated"}${cut[2] ?? ""}`;
}
