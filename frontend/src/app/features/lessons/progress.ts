/** Which questions have been answered; the browser remembers it. */

export const PROGRESS_KEY = "attendo.lessons";

/** By lesson: the questions that were answered rightly, and how many there are. */
export type Progress = Readonly<Record<string, { right: number[]; of: number }>>;

export type Standing = "new" | "begun" | "done";

/** Read what was remembered; what is damaged counts as nothing. */
export function parseProgress(json: string | null): Progress {
  try {
    const found: unknown = JSON.parse(json ?? "{}");
    if (typeof found !== "object" || found === null) return {};
    return Object.fromEntries(Object.entries(found).filter(([, one]) => isEntry(one))) as Progress;
  } catch {
    return {};
  }
}

function isEntry(value: unknown): boolean {
  const { right, of } = (value ?? {}) as { right?: unknown; of?: unknown };
  return Array.isArray(right) && right.every(Number.isInteger) && Number.isInteger(of);
}

export function addRight(progress: Progress, lesson: number, question: number, of: number): Progress {
  const right = [...new Set([...rightOf(progress, lesson), question])].sort((a, b) => a - b);
  return { ...progress, [lesson]: { right, of } };
}

export function rightOf(progress: Progress, lesson: number): number[] {
  return progress[lesson]?.right ?? [];
}

export function standingOf(progress: Progress, lesson: number): Standing {
  const { right, of } = progress[lesson] ?? { right: [], of: 1 };
  return right.length >= of ? "done" : right.length ? "begun" : "new";
}
