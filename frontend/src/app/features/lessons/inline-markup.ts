/** The only marks that the lessons' words may hold: **bold** and `code`. Everything else is text, and stays text. */

export interface Part {
  style: "" | "bold" | "code";
  text: string;
}

const MARKED = /\*\*(?<bold>.+?)\*\*|`(?<code>.+?)`/g;

/** Cut a text at its marks, as `attendo.lessons.blocks.parse_marks` does. */
export function parseMarks(text: string): Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const found of text.matchAll(MARKED)) {
    if (found.index > end) parts.push({ style: "", text: text.slice(end, found.index) });
    const { bold, code } = found.groups as { bold?: string; code?: string };
    parts.push(bold === undefined ? { style: "code", text: code ?? "" } : { style: "bold", text: bold });
    end = found.index + found[0].length;
  }
  if (end < text.length) parts.push({ style: "", text: text.slice(end) });
  return parts;
}

/** The text without its marks, for names that are only heard. */
export function withoutMarks(text: string): string {
  return parseMarks(text).map((part) => part.text).join("");
}
