import { describe, expect, it } from "vitest";

import { ERROR_KINDS } from "../src/app/api/errors";
import { APP_CATALOGS, translateApp } from "../src/i18n/app";
import { CATALOGS, preferredLang, translate, translateNote, translateReason } from "../src/i18n";

const BOTH: [string, Record<"en" | "ko", Record<string, string>>][] = [
  ["the inspector", CATALOGS],
  ["the application", APP_CATALOGS],
];
const parameters = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort();

describe.each(BOTH)("the catalogs of %s", (_, { en, ko }) => {
  it("have the same keys", () => expect(Object.keys(ko).sort()).toEqual(Object.keys(en).sort()));

  it.each(Object.keys(en))("%s has a text in both, with the same parameters", (key) => {
    expect(en[key].trim()).not.toBe("");
    expect(ko[key].trim()).not.toBe("");
    expect(parameters(ko[key])).toEqual(parameters(en[key]));
  });

  it("have Korean in the Korean one, but for names", () => {
    const named = ["page.language", "matrix.read", "lens.cell", "words.confidence", "lesson.paper", "lesson.paperPlain", "lesson.matrix.read", "card.bleu", "positions.tensor2tensor", "machine.part.sublayer", "machine.part.sum"];
    expect(Object.keys(ko).filter((key) => !/[가-힣]/.test(ko[key]) && !named.includes(key))).toEqual([]);
  });

  it("have no Korean in the English one, but for names and examples", () => {
    const named = ["page.language", "glossary.placeholder"];
    expect(Object.keys(en).filter((key) => /[가-힣]/.test(en[key]) && !named.includes(key))).toEqual([]);
  });

  it("have no particle right after a parameter that would depend on its last letter", () => {
    const lessons = ["lesson.number", "machine.open"]; // 과: a lesson
    const wrong = Object.keys(ko).filter((key) => !lessons.includes(key) && /\}[”"]?(은|는|이|가|을|를|과|와|으로|로)(?![가-힣])/.test(ko[key]));
    expect(wrong).toEqual([]);
  });
});

describe("translating", () => {
  it("inserts the parameters", () => {
    expect(translate("en", "steps.at", { step: 2, steps: 7 })).toBe("Step 2 of 7");
    expect(translate("ko", "steps.at", { step: 2, steps: 7 })).toBe("스텝 2/7");
  });

  it("shows the name of a parameter that is not given", () => expect(translate("en", "steps.at", { step: 2 })).toBe("Step 2 of {steps}"));

  it("takes the first language that it knows", () => {
    expect(preferredLang(["fr-FR", "ko-KR", "en"])).toBe("ko");
    expect(preferredLang(["en-GB", "ko"])).toBe("en");
    expect(preferredLang(["de"])).toBe("en");
    expect(preferredLang([])).toBe("en");
  });

  it("translates the reasons of the trace, and passes on unknown ones", () => {
    expect(translateReason("ko", "beam_full")).toBe("더 나은 후보로 빔이 참");
    expect(translateReason("ko", "better ones fill the beam")).toBe("더 나은 후보로 빔이 참"); // version 1
    expect(translateReason("ko", "the moon")).toBe("the moon");
  });

  it.each([
    ["source: 3 sentences at once; translate takes them one by one", ["3"]],
    ["target: cut to a window of 64 tokens of 90", ["64", "90"]],
    ["source: 70 tokens, longer than any in training (60)", ["70", "60"]],
    ["attention: the model has none", []],
    ["cut after 9 tokens", ["9"]],
    ["not in the vocabulary: 안녕하세요, 12345", ["안녕하세요, 12345"]],
    ["copied from the source: 12345, https://a.kr", ["12345, https://a.kr"]],
    ["without 'it's a cat'", ["it's a cat"]],
    ["translated with another search, since the first output was not a translation", []],
    ["no translation: the output is empty", []],
    ["no translation: the output repeats itself", []],
    ["no translation: the output is a copy of the source", []],
    ["left out: logit lens, attribution (only for one Transformer; this is rnn-attention)", ["rnn-attention"]],
    ["attribution: sums of integrated gradients are off by up to 7%; more than 32 steps make them more exact (--attribution-steps)", ["7", "32"]],
    ["window: 1 of 24 values are missing", ["1", "24"]],
    ["window: 2 steps without any value are masked", ["2"]],
    ["the first of 3 series: Jeju", ["3", "Jeju"]],
  ] as const)("translates the note “%s” of a record", (note, values) => {
    const korean = translateNote("ko", note);
    expect(korean).toMatch(/[가-힣]/);
    expect(translateNote("en", note)).not.toMatch(/\{\w+\}/);
    const words = [korean, ...values].reduce((rest, value) => rest.replace(value, ""));
    for (const value of values) expect(korean).toContain(value);
    expect(words).not.toMatch(/[a-z]/i);
  });
  it("passes on a note that it does not know", () => expect(translateNote("ko", "the moon is full")).toBe("the moon is full"));

  it("has a text and a hint for every kind of error", () => {
    for (const kind of ERROR_KINDS) {
      expect(translateApp("ko", `apiError.${kind}`)).not.toBe(translateApp("en", `apiError.${kind}`));
      expect(translateApp("ko", `apiError.${kind}.hint`)).not.toBe(translateApp("en", `apiError.${kind}.hint`));
    }
  });
});
