/** Why a file is not shown; the page says it in the reader's language. */

export type Problem = "not_json" | "not_record" | "newer" | "broken";

export class RecordError extends Error {
  constructor(
    readonly problem: Problem,
    readonly details: Record<string, string | number> = {},
  ) {
    super(`${problem} ${JSON.stringify(details)}`);
    this.name = "RecordError";
  }
}

/** Say which part is wrong and what was expected there. */
export function broken(part: string, expected: string): RecordError {
  return new RecordError("broken", { part, expected });
}
