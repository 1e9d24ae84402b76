/** A question and where the learner stands with it. */

import type { ApiError } from "../../api/errors";
import type { Checked } from "./types";

export interface Quiz {
  answer: string;
  state: "open" | "checking" | "right" | "wrong" | "failed";
  why: string | null;
  error: ApiError | null;
}

export const FRESH: Quiz = { answer: "", state: "open", why: null, error: null };

/** Another answer is another try: what was said of the last one is taken back. */
export function giveAnswer(quiz: Quiz, answer: string): Quiz {
  return answer === quiz.answer ? quiz : { ...FRESH, answer };
}

export function canCheck(quiz: Quiz): boolean {
  return quiz.answer.trim() !== "" && quiz.state !== "checking";
}

export function startCheck(quiz: Quiz): Quiz {
  return { ...FRESH, answer: quiz.answer, state: "checking" };
}

/** Only the answer that was checked is judged. */
export function endCheck(quiz: Quiz, answer: string, { is_right, why }: Checked): Quiz {
  return quiz.answer === answer ? { ...quiz, state: is_right ? "right" : "wrong", why } : quiz;
}

export function failCheck(quiz: Quiz, answer: string, error: ApiError): Quiz {
  return quiz.answer === answer ? { ...quiz, state: "failed", error } : quiz;
}
