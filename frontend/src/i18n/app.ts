/** Translated texts of the whole web application: those of the inspector and its own. */

import { app as appEn, inspector as inspectorEn } from "./en";
import { fill, type Lang, type Parameters } from "./index";
import { app as appKo, inspector as inspectorKo } from "./ko";

const en = { ...inspectorEn, ...appEn };
export type AppKey = keyof typeof en;

export const APP_CATALOGS: Record<Lang, Readonly<Record<AppKey, string>>> = { en, ko: { ...inspectorKo, ...appKo } };

export function translateApp(lang: Lang, key: AppKey, parameters: Parameters = {}): string {
  return fill(APP_CATALOGS[lang][key], parameters);
}
