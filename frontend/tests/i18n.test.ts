import { describe, expect, it } from "vitest";

import { TROUBLES } from "../src/app/api/errors";
import { APP_DICTIONARIES, say } from "../src/i18n/app";
import { DICTIONARIES, preferredLang, translate, translateReason } from "../src/i18n";

const BOTH: [string, Record<"en" | "ko", Record<string, string>>][] = [
  ["the look-inside page", DICTIONARIES],
  ["the application", APP_DICTIONARIES],
];
const places = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort();

describe.each(BOTH)("the dictionaries of %s", (_, { en, ko }) => {
  it("have the same keys", () => expect(Object.keys(ko).sort()).toEqual(Object.keys(en).sort()));

  it.each(Object.keys(en))("%s says something in both, with the same parameters", (key) => {
    expect(en[key].trim()).not.toBe("");
    expect(ko[key].trim()).not.toBe("");
    expect(places(ko[key])).toEqual(places(en[key]));
  });

  it("have Korean in the Korean one, but for names", () => {
    const named = ["page.language", "matrix.read", "lens.cell", "words.sure"];
    expect(Object.keys(ko).filter((key) => !/[가-힣]/.test(ko[key]) && !named.includes(key))).toEqual([]);
  });

  it("have no Korean in the English one, but for names and examples", () => {
    const named = ["page.language", "glossary.placeholder"];
    expect(Object.keys(en).filter((key) => /[가-힣]/.test(en[key]) && !named.includes(key))).toEqual([]);
  });

  it("have no particle right after a parameter that would depend on its last letter", () => {
    const wrong = Object.values(ko).filter((text) => /\}[”"]?(은|는|이|가|을|를|과|와|으로|로)(?![가-힣])/.test(text));
    expect(wrong).toEqual([]);
  });
});

describe("saying things", () => {
  it("puts the parameters in", () => {
    expect(translate("en", "steps.at", { step: 2, steps: 7 })).toBe("Step 2 of 7");
    expect(translate("ko", "steps.at", { step: 2, steps: 7 })).toBe("7단계 중 2단계");
  });

  it("leaves a parameter that is not given to be seen", () => expect(translate("en", "steps.at", { step: 2 })).toBe("Step 2 of {steps}"));

  it("takes the first language that it knows", () => {
    expect(preferredLang(["fr-FR", "ko-KR", "en"])).toBe("ko");
    expect(preferredLang(["en-GB", "ko"])).toBe("en");
    expect(preferredLang(["de"])).toBe("en");
    expect(preferredLang([])).toBe("en");
  });

  it("knows the reasons of the trace, and passes on those it does not", () => {
    expect(translateReason("ko", "better ones fill the beam")).toBe("더 나은 것들로 빔이 찼음");
    expect(translateReason("ko", "the moon")).toBe("the moon");
  });

  it("has a word and a remedy for every trouble", () => {
    for (const trouble of TROUBLES) {
      expect(say("ko", `trouble.${trouble}`)).not.toBe(say("en", `trouble.${trouble}`));
      expect(say("ko", `trouble.${trouble}.remedy`)).not.toBe(say("en", `trouble.${trouble}.remedy`));
    }
  });
});
