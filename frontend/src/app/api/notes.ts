/** The server gives its notes in English; these are known here, others are shown as they are. */

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

export function readNote(note: string): Note | null {
  for (const [pattern, key] of NOTES) {
    const found = pattern.exec(note);
    if (found) return { key, parameters: { ...found.groups } };
  }
  return null;
}
