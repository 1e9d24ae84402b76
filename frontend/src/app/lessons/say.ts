/** The lessons' words in the reader's language, for components. */

import type { Parameters } from "../../lib/i18n";
import { useApp } from "../context.svelte";
import { type LessonKey, sayLesson } from "./words";

export type Say = (key: LessonKey, parameters?: Parameters) => string;

export function useWords(): Say {
  const { settings } = useApp();
  return (key, parameters) => sayLesson(settings.lang, key, parameters);
}
