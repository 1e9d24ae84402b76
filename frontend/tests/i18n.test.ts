import { describe, expect, it } from "vitest";

import { DICTIONARIES, type Key, preferredLang, translate, translateReason } from "../src/lib/i18n";

const { en, ko } = DICTIONARIES;
const places = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort();

describe("the dictionaries", () => {
  it("have the same keys", () => expect(Object.keys(ko).sort()).toEqual(Object.keys(en).sort()));

  it.each(Object.keys(en) as Key[])("%s says something in both, with the same parameters", (key) => {
    expect(en[key].trim()).not.toBe("");
    expect(ko[key].trim()).not.toBe("");
    expect(places(ko[key])).toEqual(places(en[key]));
  });

  it("have Korean in the Korean one, but for names", () => {
    const named = ["page.language", "matrix.read", "lens.cell"];
    expect(Object.keys(ko).filter((key) => !/[가-힣]/.test(ko[key as Key]) && !named.includes(key))).toEqual([]);
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
});
