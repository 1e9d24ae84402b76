/** Translated texts of the inspector, in English and Korean. */

import { inspector as en } from "./en";
import { inspector as ko } from "./ko";

export type Lang = "en" | "ko";
export type Key = keyof typeof en;
export type Parameters = Record<string, string | number>;

export const CATALOGS: Record<Lang, Readonly<Record<Key, string>>> = { en, ko };

export function translate(lang: Lang, key: Key, parameters: Parameters = {}): string {
  return fill(CATALOGS[lang][key], parameters);
}

/** Return the key for a record of a time series where it has a text of its own: `series.` and the key. */
export function keyFor(record: { series: unknown }, key: Key): Key {
  const own = `series.${key}`;
  return record.series && own in en ? (own as Key) : key;
}

/** Insert parameters into a text; the name of a parameter that is not given stays visible. */
export function fill(text: string, parameters: Parameters): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(parameters[name] ?? whole));
}

/** The user's language, from the languages that the browser prefers. */
export function preferredLang(languages: readonly string[]): Lang {
  const known = languages.map((one) => one.slice(0, 2).toLowerCase()).find((one) => one === "ko" || one === "en");
  return known === "ko" ? "ko" : "en";
}

/** The codes of the reasons in a search trace; traces of version 1 have sentences instead. */
const REASONS: Record<string, Key> = {
  beam_full: "why.beam_full",
  end_not_in_beam: "why.end_outside",
  forbidden_phrase: "why.forbidden",
  missing_required_phrase: "why.missing",
  after_end: "why.late",
  not_sampled: "why.not_drawn",
  best_finished: "why.done",
  length_limit: "why.limit",
  no_continuation: "why.stuck",
  "better ones fill the beam": "why.beam_full",
  "the end symbol, but not among the best": "why.end_outside",
  "would say a forbidden phrase": "why.forbidden",
  "would end before a required phrase": "why.missing",
  "would add a required phrase after the end of the sentence": "why.late",
  "another one was drawn": "why.not_drawn",
  "nothing alive can become better than what is finished": "why.done",
  "the limit of its length": "why.limit",
  "nothing may follow": "why.stuck",
};

export function translateReason(lang: Lang, reason: string): string {
  const key = REASONS[reason];
  return key ? translate(lang, key) : reason;
}

/** The notes in a record are English; these are translated, others are shown unchanged. */
const NOTES: [RegExp, Key][] = [
  [/^source: (?<count>\d+) sentences at once; translate takes them one by one$/, "recordNote.sentences"],
  [/^(?:source|target): cut to a window of (?<window>\d+) tokens of (?<count>\d+)$/, "recordNote.cut"],
  [/^source: (?<count>\d+) tokens, longer than any in training \((?<most>\d+)\)$/, "recordNote.long"],
  [/^attention: the model has none$/, "arcs.none"],
  [/^cut after (?<count>\d+) tokens$/, "recordNote.cutAfter"],
  [/^not in the vocabulary: (?<words>.+)$/s, "recordNote.unknown"],
  [/^copied from the source: (?<words>.+)$/s, "recordNote.copied"],
  [/^without '(?<phrase>.+)'$/s, "recordNote.without"],
  [/^translated with another search, since the first output was not a translation$/, "recordNote.retried"],
  [/^no translation: the output is empty$/, "recordNote.empty"],
  [/^no translation: the output repeats itself$/, "recordNote.loop"],
  [/^no translation: the output is a copy of the source$/, "recordNote.copy"],
  [/^left out: .+ \(only for one Transformer; this is (?<kind>.+)\)$/s, "recordNote.leftOut"],
  [/^attribution: sums of integrated gradients are off by up to (?<share>\d+)%; more than (?<count>\d+) steps/, "recordNote.inexact"],
  [/^window: (?<count>\d+) of (?<total>\d+) values are missing$/, "recordNote.missing"],
  [/^window: (?<count>\d+) steps without any value are masked$/, "recordNote.masked"],
  [/^the first of (?<count>\d+) series: (?<name>.+)$/s, "recordNote.firstSeries"],
];

export function translateNote(lang: Lang, note: string): string {
  for (const [pattern, key] of NOTES) {
    const match = pattern.exec(note);
    if (match) return translate(lang, key, { ...match.groups });
  }
  return note;
}
