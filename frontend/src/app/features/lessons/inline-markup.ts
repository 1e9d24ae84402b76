/** The only markup in the texts of the lessons: **bold** and `code`. Everything else stays plain text. */

export interface MarkupPart {
  style: "" | "bold" | "code";
  text: string;
}

const MARKUP = /\*\*(?<bold>.+?)\*\*|`(?<code>.+?)`/g;

/** Split a text at its markup, as `attendo.lessons` does. */
export function parseInlineMarkup(text: string): MarkupPart[] {
  const parts: MarkupPart[] = [];
  let end = 0;
  for (const match of text.matchAll(MARKUP)) {
    if (match.index > end) parts.push({ style: "", text: text.slice(end, match.index) });
    const { bold, code } = match.groups as { bold?: string; code?: string };
    parts.push(bold === undefined ? { style: "code", text: code ?? "" } : { style: "bold", text: bold });
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push({ style: "", text: text.slice(end) });
  return parts;
}

/** The text without its markup, for accessible names. */
export function stripMarkup(text: string): string {
  return parseInlineMarkup(text).map((part) => part.text).join("");
}
