/** What the application says beside what the look-inside page says. */

import { fill, type Lang, type Parameters } from "../../lib/i18n";
import { type AppDictionary, type AppKey, en } from "./en";
import { ko } from "./ko";

export type { AppKey } from "./en";

export const APP_DICTIONARIES: Record<Lang, AppDictionary> = { en, ko };

export function say(lang: Lang, key: AppKey, parameters: Parameters = {}): string {
  return fill(APP_DICTIONARIES[lang][key], parameters);
}
