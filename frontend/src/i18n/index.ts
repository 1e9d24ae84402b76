/** Korean and English. */

import { type Dictionary, en, type Key } from "./en";
import { ko } from "./ko";

export type Lang = "en" | "ko";
export type { Key } from "./en";
export type Parameters = Record<string, string | number>;

export const DICTIONARIES: Record<Lang, Dictionary> = { en, ko };

export function translate(lang: Lang, key: Key, parameters: Parameters = {}): string {
  return fill(DICTIONARIES[lang][key], parameters);
}

/** The word for a record of numbers over time where there is one of its own: `series.` and the key. */
export function keyFor(record: { series: unknown }, key: Key): Key {
  const own = `series.${key}`;
  return record.series && own in en ? (own as Key) : key;
}

/** Put the parameters into a text; one that is not given stays to be seen. */
export function fill(text: string, parameters: Parameters): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(parameters[name] ?? whole));
}

/** The reader's language, as far as the browser knows it. */
export function preferredLang(languages: readonly string[]): Lang {
  const known = languages.map((one) => one.slice(0, 2).toLowerCase()).find((one) => one === "ko" || one === "en");
  return known === "ko" ? "ko" : "en";
}

/** The trace gives its reasons in English; these are known here, others are shown as they are. */
const REASONS: Record<string, Key> = {
  "better ones fill the beam": "why.beam_full",
  "the end symbol, but not among the best": "why.end_outside",
  "would say a forbidden phrase": "why.forbidden",
  "would end before a required phrase": "why.missing",
  "another one was drawn": "why.not_drawn",
  "nothing alive can become better than what is finished": "why.done",
  "the limit of its length": "why.limit",
  "nothing may follow": "why.stuck",
};

export function translateReason(lang: Lang, reason: string): string {
  const key = REASONS[reason];
  return key ? translate(lang, key) : reason;
}
