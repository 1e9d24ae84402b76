/** Translates the notes of the server, which are English; unknown notes are shown unchanged. */

import type { Parameters } from "../../i18n";
import type { AppKey } from "../../i18n/app";

const NOTES: [RegExp, AppKey][] = [
  [/^no alignment: only for one sentence of up to (?<count>\d+) characters$/, "note.oneSentence"],
  [/^no alignment: the model has no attention$/, "note.noAttention"],
  [/^cut after (?<count>\d+) tokens$/, "note.cut"],
  [/^translated in (?<count>\d+) pieces$/, "note.pieces"],
  [/^without '(?<phrase>.*)'$/s, "note.without"],
];

export interface Note {
  key: AppKey;
  parameters: Parameters;
}

export function parseNote(note: string): Note | null {
  for (const [pattern, key] of NOTES) {
    const match = pattern.exec(note);
    if (match) return { key, parameters: { ...match.groups } };
  }
  return null;
}
