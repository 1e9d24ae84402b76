/** Which questions have been answered correctly; stored in the browser. */

export const PROGRESS_KEY = "attendo.lessons";

/** By lesson: the questions that were answered correctly, and the number of questions. */
export type Progress = Readonly<Record<string, { right: number[]; of: number }>>;

export type LessonStatus = "new" | "started" | "done";

/** Parse stored progress; invalid entries are ignored. */
export function parseProgress(json: string | null): Progress {
  try {
    const found: unknown = JSON.parse(json ?? "{}");
    if (typeof found !== "object" || found === null) return {};
    return Object.fromEntries(Object.entries(found).filter(([, entry]) => isEntry(entry))) as Progress;
  } catch {
    return {};
  }
}

function isEntry(value: unknown): boolean {
  const { right, of } = (value ?? {}) as { right?: unknown; of?: unknown };
  return Array.isArray(right) && right.every(Number.isInteger) && Number.isInteger(of);
}

export function addCorrect(progress: Progress, lesson: number, question: number, numQuestions: number): Progress {
  const right = [...new Set([...correctOf(progress, lesson), question])].sort((a, b) => a - b);
  return { ...progress, [lesson]: { right, of: numQuestions } };
}

export function correctOf(progress: Progress, lesson: number): number[] {
  return progress[lesson]?.right ?? [];
}

export function statusOf(progress: Progress, lesson: number): LessonStatus {
  const { right, of } = progress[lesson] ?? { right: [], of: 1 };
  return right.length >= of ? "done" : right.length ? "started" : "new";
}
