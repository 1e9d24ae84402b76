import { describe, expect, it } from "vitest";

import { parseGlossary } from "../../src/app/features/translate/glossary";

describe("the glossary", () => {
  it("reads source = target, with spaces or without", () => {
    expect(parseGlossary("왕자 = prince\n공주=princess\r\n물 한 잔 =  a glass of water ")).toEqual({
      entries: { 왕자: "prince", 공주: "princess", "물 한 잔": "a glass of water" },
      size: 3,
      errors: [],
    });
  });

  it("takes what a spreadsheet gives, and an = in the target", () => {
    expect(parseGlossary("왕자\tprince\nx = a = b").entries).toEqual({ 왕자: "prince", x: "a = b" });
  });

  it("passes over empty lines and remarks", () => expect(parseGlossary("\n  \n# 왕자 = king\n").size).toBe(0));

  it("tells each wrong line by its number, and keeps the right ones", () => {
    const { entries, errors } = parseGlossary("왕자 = prince\noops\n\n= x\ny =\n왕자 = king\n왕자 = prince");
    expect(entries).toEqual({ 왕자: "prince" });
    expect(errors).toEqual([
      { line: 2, problem: "no_equals", text: "oops" },
      { line: 4, problem: "no_source", text: "= x" },
      { line: 5, problem: "no_target", text: "y =" },
      { line: 6, problem: "duplicate", text: "왕자 = king" },
    ]);
  });

  it("knows no magic names", () => {
    const { entries, size } = parseGlossary("__proto__ = a\nconstructor = b");
    expect(size).toBe(2);
    expect(JSON.stringify(entries)).toBe('{"__proto__":"a","constructor":"b"}');
  });
});
