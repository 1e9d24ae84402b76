/** The state of a question: the current answer and the result of its check. */

import type { ApiError } from "../../api/errors";
import type { CheckedAnswer } from "./schemas";

export interface Quiz {
  answer: string;
  state: "open" | "checking" | "right" | "wrong" | "failed";
  why: string | null;
  hint: CheckedAnswer["hint"];
  /** The hints shown so far: each wrong answer earns one more. */
  hints: string[];
  /** The right answer, if the user has asked for it. */
  solution: string | null;
  error: ApiError | null;
}

export const NEW_QUIZ: Quiz = { answer: "", state: "open", why: null, hint: null, hints: [], solution: null, error: null };

/** Change the answer; the result of the last check is cleared, the hints stay. */
export function setAnswer(quiz: Quiz, answer: string): Quiz {
  return answer === quiz.answer ? quiz : { ...NEW_QUIZ, answer, hints: quiz.hints };
}

export function canCheck(quiz: Quiz): boolean {
  return quiz.answer.trim() !== "" && quiz.state !== "checking";
}

export function startCheck(quiz: Quiz): Quiz {
  return { ...NEW_QUIZ, answer: quiz.answer, hints: quiz.hints, state: "checking" };
}

/** Store the result of a check, unless the answer has changed since. */
export function endCheck(quiz: Quiz, answer: string, { is_right, why, hint, hints, answer: solution }: CheckedAnswer): Quiz {
  if (quiz.answer !== answer) return quiz;
  const shown = solution === null ? hints.slice(0, quiz.hints.length + 1) : [];
  return { ...quiz, state: is_right ? "right" : "wrong", why, hint, hints: shown, solution };
}

export function failCheck(quiz: Quiz, answer: string, error: ApiError): Quiz {
  return quiz.answer === answer ? { ...quiz, state: "failed", error } : quiz;
}
