/** The state of a question: the current answer and the result of its check. */

import type { ApiError } from "../../api/errors";
import type { CheckedAnswer } from "./schemas";

export interface Quiz {
  answer: string;
  state: "open" | "checking" | "right" | "wrong" | "failed";
  why: string | null;
  error: ApiError | null;
}

export const NEW_QUIZ: Quiz = { answer: "", state: "open", why: null, error: null };

/** Change the answer; the result of the last check is cleared. */
export function setAnswer(quiz: Quiz, answer: string): Quiz {
  return answer === quiz.answer ? quiz : { ...NEW_QUIZ, answer };
}

export function canCheck(quiz: Quiz): boolean {
  return quiz.answer.trim() !== "" && quiz.state !== "checking";
}

export function startCheck(quiz: Quiz): Quiz {
  return { ...NEW_QUIZ, answer: quiz.answer, state: "checking" };
}

/** Store the result of a check, unless the answer has changed since. */
export function endCheck(quiz: Quiz, answer: string, { is_right, why }: CheckedAnswer): Quiz {
  return quiz.answer === answer ? { ...quiz, state: is_right ? "right" : "wrong", why } : quiz;
}

export function failCheck(quiz: Quiz, answer: string, error: ApiError): Quiz {
  return quiz.answer === answer ? { ...quiz, state: "failed", error } : quiz;
}
