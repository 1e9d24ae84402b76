/** Why a file cannot be shown; the page explains it in the user's language. */

export type RecordProblem = "not_json" | "not_record" | "newer" | "broken";

export class RecordError extends Error {
  constructor(
    readonly problem: RecordProblem,
    readonly details: Record<string, string | number> = {},
  ) {
    super(`${problem} ${JSON.stringify(details)}`);
    this.name = "RecordError";
  }
}

/** Return an error that names the invalid part and what was expected there. */
export function invalid(path: string, expected: string): RecordError {
  return new RecordError("broken", { path, expected });
}
