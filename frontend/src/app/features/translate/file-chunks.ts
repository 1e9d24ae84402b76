/** Splits a text file into chunks of lines that the server accepts. */

import { langTag } from "../../shared/models";

/** The formats that the server translates with their markup. */
const DOCUMENT_SUFFIXES = [
  ".docx", ".pptx", ".odt", ".epub", ".html", ".htm", ".xhtml", ".md", ".markdown", ".srt", ".vtt", ".po", ".pot", ".xlf",
  ".xliff", ".json", ".yaml", ".yml",
];
export const DOCUMENT_NAME = new RegExp(`(${DOCUMENT_SUFFIXES.join("|").replaceAll(".", "\\.")})$`, "i");
/** What the button that opens a file offers. */
export const ACCEPTED_FILES = [".txt", "text/plain", ...DOCUMENT_SUFFIXES].join(",");

export interface ChunkLimits {
  lines: number;
  characters: number;
}

/** The indices of lines that are sent together. */
export type Chunk = number[];

export function splitLines(text: string): string[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Group the lines that are not blank. */
export function chunkLines(lines: readonly string[], limits: ChunkLimits): Chunk[] {
  const chunks: Chunk[] = [];
  let size = 0;
  lines.forEach((line, index) => {
    if (!line.trim()) return;
    const last = chunks.at(-1);
    if (!last || last.length >= limits.lines || size + line.length > limits.characters) {
      chunks.push([index]);
      size = line.length;
    } else {
      last.push(index);
      size += line.length;
    }
  });
  return chunks;
}

/** The number of the first line that is too long, counted from 1; null for none. */
export function findLongLine(lines: readonly string[], maxCharacters: number): number | null {
  const index = lines.findIndex((line) => line.length > maxCharacters);
  return index < 0 ? null : index + 1;
}

/** The name for the translation of a file: notes.txt -> notes.en.txt, or notes.translated.txt. */
export function translatedName(name: string, target: string): string {
  const [, stem, extension = ""] = /^(.*?)(\.[^.]*)?$/s.exec(name) ?? ["", name];
  return `${stem}.${langTag(target) ?? "translated"}${extension}`;
}
