import { describe, expect, it } from "vitest";

import { diffWords, newWords } from "../../src/app/shared/diff";

const spell = (changes: ReturnType<typeof diffWords>) => changes.map(({ text, kind }) => `${{ same: "", new: "+", gone: "-" }[kind]}${text}`).join(" ");

describe("what changed between two translations", () => {
  it.each([
    ["a b c", "a b c", "a b c"],
    ["", "a b", "+a +b"],
    ["a b", "", "-a -b"],
    ["Yuna by subway.", "Yuna goes to the theater by subway.", "Yuna +goes +to +the +theater by subway."],
    ["not expensive expensive.", "not expensive.", "not -expensive expensive."],
    ["on on the weekend", "on the weekend", "on -on the weekend"],
    ["x y", "y x", "-x y +x"],
    ["나는 학생", "나는  학생", "나는 학생"],
  ])("%s -> %s", (before, after, expected) => expect(spell(diffWords(before, after))).toBe(expected));

  it("keeps every word of both, in order", () => {
    const [before, after] = ["the cat sat on the mat the end", "a cat on the the mat end end"];
    const changes = diffWords(before, after);
    const said = (kind: string) => changes.filter((one) => one.kind === "same" || one.kind === kind).map(({ text }) => text).join(" ");
    expect(said("gone")).toBe(before);
    expect(said("new")).toBe(after);
    // the longest common order: cat on the mat end
    expect(changes.filter(({ kind }) => kind === "same")).toHaveLength(5);
  });

  it("marks nothing where there is nothing to compare with", () => {
    expect(newWords(null, "a b").every(({ kind }) => kind === "same")).toBe(true);
    expect(newWords("a", "b").map(({ kind }) => kind)).toEqual(["new"]);
  });
});
