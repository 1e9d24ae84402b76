/** Parses a glossary: `source = target`, one entry per line. Empty lines and lines that begin with # are ignored. */

export type GlossaryProblem = "no_equals" | "no_source" | "no_target" | "duplicate";

export interface GlossaryError {
  /** Counted from 1. */
  line: number;
  problem: GlossaryProblem;
  text: string;
}

export interface Glossary {
  entries: Record<string, string>;
  size: number;
  errors: GlossaryError[];
}

export function parseGlossary(text: string): Glossary {
  const entries = new Map<string, string>();
  const errors: GlossaryError[] = [];
  text.split(/\r\n|\n|\r/).forEach((raw, index) => {
    const line = raw.trim();
    if (!line || line.startsWith("#")) return;
    const problem = addEntry(line, entries);
    if (problem) errors.push({ line: index + 1, problem, text: line });
  });
  return { entries: Object.fromEntries(entries), size: entries.size, errors };
}

/** A tab separates as well, since text pasted from a spreadsheet has tabs. */
function addEntry(line: string, entries: Map<string, string>): GlossaryProblem | null {
  const match = /^([^=\t]*)[=\t](.*)$/.exec(line);
  if (!match) return "no_equals";
  const [src, tgt] = [match[1].trim(), match[2].trim()];
  if (!src) return "no_source";
  if (!tgt) return "no_target";
  if (entries.has(src) && entries.get(src) !== tgt) return "duplicate";
  entries.set(src, tgt);
  return null;
}
