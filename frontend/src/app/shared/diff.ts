/** Which words of a sentence are new: how a translation has changed since the one before. */

export interface Change {
  text: string;
  kind: "same" | "new" | "gone";
}

/** Compare two texts word by word, by their longest common words in order. */
export function diffWords(before: string, after: string): Change[] {
  const [old, now] = [words(before), words(after)];
  const common = commonLengths(old, now);
  const changes: Change[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      changes.push({ text: now[j], kind: "same" });
      i++;
      j++;
    } else if (j >= now.length || (i < old.length && common[i + 1][j] >= common[i][j + 1])) {
      changes.push({ text: old[i++], kind: "gone" });
    } else {
      changes.push({ text: now[j++], kind: "new" });
    }
  }
  return changes;
}

/** The later text alone, its new words told. */
export function newWords(before: string | null, after: string): Change[] {
  if (before === null) return words(after).map((text) => ({ text, kind: "same" }));
  return diffWords(before, after).filter(({ kind }) => kind !== "gone");
}

function words(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

/** `table[i][j]`: how many words in order are common to the rests from i and from j on. */
function commonLengths(old: string[], now: string[]): number[][] {
  const table = Array.from({ length: old.length + 1 }, () => new Array<number>(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      table[i][j] = old[i] === now[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}
