/** What the application says beside what the look-inside page says. */

import { fill, type Lang, type Parameters } from ".";
import { type AppDictionary, type AppKey, en } from "./app-en";
import { ko } from "./app-ko";

export type { AppKey } from "./app-en";

export const APP_DICTIONARIES: Record<Lang, AppDictionary> = { en, ko };

export function say(lang: Lang, key: AppKey, parameters: Parameters = {}): string {
  return fill(APP_DICTIONARIES[lang][key], parameters);
}
