/** Which words of a text are new compared with an earlier version of it. */

import { diffArrays } from "diff";

export interface DiffWord {
  text: string;
  isAdded: boolean;
  /** What is between it and the word before: nothing, a space, or line breaks. */
  separator: string;
}

/** Split `after` into words and mark those that `before` does not have; null: there is nothing to compare with. */
export function addedWords(before: string | null, after: string): DiffWord[] {
  const words = splitWords(after);
  const parts = before === null ? [{ value: words, added: false, removed: false }] : diffArrays(splitWords(before), words);
  const separators = [...after.matchAll(/(\s*)\S+/g)].map(([, space]) => space.replace(/[^\n]+/g, "") || (space && " "));
  return parts.filter(({ removed }) => !removed)
    .flatMap(({ value, added }) => value.map((text) => ({ text, isAdded: added })))
    .map((word, index) => ({ ...word, separator: index ? separators[index] : "" }));
}

function splitWords(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}
