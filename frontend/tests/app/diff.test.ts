import { describe, expect, it } from "vitest";

import { addedWords } from "../../src/app/shared/diff";

const marked = (before: string | null, after: string) => addedWords(before, after).map(({ text, isAdded }) => `${isAdded ? "+" : ""}${text}`).join(" ");

describe("the words that are new in a translation", () => {
  it.each([
    ["a b c", "a b c", "a b c"],
    ["", "a b", "+a +b"],
    ["a b", "", ""],
    ["Yuna by subway.", "Yuna goes to the theater by subway.", "Yuna +goes +to +the +theater by subway."],
    ["not expensive expensive.", "not expensive.", "not expensive."],
    ["on on the weekend", "on the weekend", "on the weekend"],
    ["x y", "y x", "y +x"],
    ["나는 학생", "나는  학생", "나는 학생"],
  ])("%s -> %s", (before, after, expected) => expect(marked(before, after)).toBe(expected));

  it("are as few as possible", () => {
    const words = addedWords("the cat sat on the mat the end", "a cat on the the mat end end");
    expect(words.map(({ text }) => text).join(" ")).toBe("a cat on the the mat end end");
    // the longest common subsequence: cat on the mat end
    expect(words.filter(({ isAdded }) => !isAdded)).toHaveLength(5);
  });

  it("are none without a text to compare with", () => {
    expect(marked(null, "a b")).toBe("a b");
    expect(marked("a", "b")).toBe("+b");
  });
});
