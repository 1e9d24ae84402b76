/** The lessons' words in the reader's language, for components. */

import type { Parameters } from "../../../i18n";
import { useApp } from "../../app-state.svelte";
import { type LessonKey, sayLesson } from "../../../i18n/lessons";

export type Say = (key: LessonKey, parameters?: Parameters) => string;

export function useWords(): Say {
  const { settings } = useApp();
  return (key, parameters) => sayLesson(settings.lang, key, parameters);
}
