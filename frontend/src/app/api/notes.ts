/** The notes of the server in the user's language: by their codes. Notes without a known code are shown unchanged, in English. */

import type { Parameters } from "../../i18n";
import type { AppKey } from "../../i18n/app";
import type { Translation } from "./schemas";

const KEYS: Readonly<Record<string, AppKey>> = {
  copied_words: "note.copied",
  corrected_placeholders: "note.corrected",
  missing_phrase: "note.without",
  cut: "note.cut",
  pieces: "note.pieces",
  not_aligned: "note.notAligned",
  no_attention: "note.noAttention",
  no_pytorch: "note.noPytorch",
  pivot_not_aligned: "note.pivotNotAligned",
  retried: "note.retried",
  empty_output: "note.emptyOutput",
  loop: "note.loop",
  untranslated: "note.untranslated",
};
/** These are shown together with the band. */
const SHOWN_ELSEWHERE = "unknown_words";

export interface Note {
  /** Null for a note without a known code. */
  key: AppKey | null;
  parameters: Parameters;
  text: string;
}

/** The notes to show, in their order. */
export function notesOf({ notes, note_details: details }: Pick<Translation, "notes" | "note_details">): Note[] {
  return notes.flatMap((text) => {
    const detail = details.find((one) => one.text === text);
    if (detail?.code === SHOWN_ELSEWHERE) return [];
    const words = detail?.words.join(", ") ?? "";
    return [{ key: KEYS[detail?.code ?? ""] ?? null, parameters: { words, phrase: words, count: detail?.count ?? 0 }, text }];
  });
}
