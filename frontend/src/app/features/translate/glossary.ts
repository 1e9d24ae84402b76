/** The glossary box: `source = target`, one a line. Lines that are empty or begin with # say nothing. */

export type GlossaryProblem = "no_equals" | "no_source" | "no_target" | "twice";

export interface GlossaryError {
  /** Counted from 1. */
  line: number;
  problem: GlossaryProblem;
  said: string;
}

export interface Glossary {
  entries: Record<string, string>;
  size: number;
  errors: GlossaryError[];
}

export function parseGlossary(text: string): Glossary {
  const entries = new Map<string, string>();
  const errors: GlossaryError[] = [];
  text.split(/\r\n|\n|\r/).forEach((raw, place) => {
    const said = raw.trim();
    if (!said || said.startsWith("#")) return;
    const problem = readLine(said, entries);
    if (problem) errors.push({ line: place + 1, problem, said });
  });
  return { entries: Object.fromEntries(entries), size: entries.size, errors };
}

/** A tab separates as well as the sign does: that is what spreadsheets give. */
function readLine(said: string, entries: Map<string, string>): GlossaryProblem | null {
  const cut = /^([^=\t]*)[=\t](.*)$/.exec(said);
  if (!cut) return "no_equals";
  const [src, tgt] = [cut[1].trim(), cut[2].trim()];
  if (!src) return "no_source";
  if (!tgt) return "no_target";
  if (entries.has(src) && entries.get(src) !== tgt) return "twice";
  entries.set(src, tgt);
  return null;
}
