import { describe, expect, it } from "vitest";

import { parseNote } from "../../src/app/api/notes";
import { annotate, strongestSources } from "../../src/app/features/translate/annotated-translation";
import { levelOf } from "../../src/app/features/translate/confidence";
import { chunkLines, findLongLine, splitLines, translatedName } from "../../src/app/features/translate/file-chunks";
import { alignWords, findWordSpans, joinPrefix, splitAtSpans, textBefore } from "../../src/app/features/translate/word-spans";
import { chooseModel, languageName, modelForSource, modelsFor, pagesFor, reverseOf, sourcesOf, targetsOf } from "../../src/app/shared/models";

describe("words in a text", () => {
  const text = "the cat, the  cat\nsat.";
  it("are found one after the other", () => {
    expect(findWordSpans(text, ["the", "cat,", "the", "cat", "sat."])).toEqual([
      { start: 0, end: 3 },
      { start: 4, end: 8 },
      { start: 9, end: 12 },
      { start: 14, end: 17 },
      { start: 18, end: 22 },
    ]);
  });
  it("that are not there leave the others where they are", () => {
    expect(findWordSpans(text, ["the", "dog", "", "sat."])).toEqual([{ start: 0, end: 3 }, null, null, { start: 18, end: 22 }]);
  });
  it.each([[["the", "cat,", "the", "cat", "sat."]], [["cat", "sat"]], [["dog"]], [[]]])("cut it so that the parts are the text again: %j", (words) => {
    expect(splitAtSpans(text, findWordSpans(text, words)).map((part) => part.text).join("")).toBe(text);
  });
  it("of another list are matched by what they say", () => {
    expect(alignWords(["a", "b"], ["x", "y"])).toEqual([0, 1]);
    expect(alignWords(["a", "b", "a"], ["a", "a"])).toEqual([0, -1, 1]);
    expect(alignWords(["a"], [])).toEqual([-1]);
  });
  it("begin a translation anew", () => {
    expect(textBefore("I am a student.", { start: 7, end: 15 })).toBe("I am a");
    expect(textBefore("I am", { start: 0, end: 1 })).toBe("");
    expect(joinPrefix("I am", "a")).toBe("I am a");
    expect(joinPrefix("", "The")).toBe("The");
    expect(joinPrefix("Yes", ", sir")).toBe("Yes, sir");
  });
});

describe("an annotated translation", () => {
  const answer = {
    text: "I am a student.",
    words: ["I", "am", "a", "student."],
    confidence: { probability: 0.5, mean: 0.8, words: [0.99, 0.8, 0.5, 0.1].map((probability, index) => ({ text: ["I", "am", "a", "student."][index], probability })) },
    alignment: { source_words: ["나는", "학생이다."], target_words: ["I", "am", "a", "student."], weights: [[0.9, 0.1], [0.2, 0.8], [0.04, 0.9], [0, 1]] },
  };
  it("has the confidence and the source weights of each word", () => {
    const { words } = annotate(answer);
    expect(words.map((word) => levelOf(word!.probability!))).toEqual(["sure", "likely", "unsure", "doubtful"]);
    expect(words[1]).toMatchObject({ text: "am", span: { start: 2, end: 4 }, sourceWeights: [0.2, 0.8] });
  });
  it("may have neither", () => {
    const { words, sourceWords } = annotate({ text: "so it is", words: [], confidence: null, alignment: null });
    expect(words.map((word) => word?.text)).toEqual(["so", "it", "is"]);
    expect(words[0]).toMatchObject({ probability: null, sourceWeights: null });
    expect(sourceWords).toEqual([]);
  });
  it("lists the largest source weights first and leaves out small ones", () => {
    expect(strongestSources([0.2, 0.7, 0.01], ["a", "b", "c"])).toEqual([{ word: "b", weight: 0.7 }, { word: "a", weight: 0.2 }]);
  });
});

describe("a note of the server's", () => {
  it.each([
    ["no alignment: only for one sentence of up to 400 characters", { key: "note.oneSentence", parameters: { count: "400" } }],
    ["cut after 12 tokens", { key: "note.cut", parameters: { count: "12" } }],
    ["without 'crown prince'", { key: "note.without", parameters: { phrase: "crown prince" } }],
  ])("%s is translated", (note, known) => expect(parseNote(note)).toEqual(known));
  it("that is not known stays as it is", () => expect(parseNote("the moon is full")).toBeNull());
});

describe("a file in chunks", () => {
  it("has lines, however they end", () => expect(splitLines("\uFEFFa\r\nb\n\nc\n")).toEqual(["a", "b", "", "c"]));
  it("sends no more lines and characters at once than are allowed, and no empty ones", () => {
    expect(chunkLines(["aa", "", "bb", "  ", "cc", "dd"], { lines: 2, characters: 100 })).toEqual([[0, 2], [4, 5]]);
    expect(chunkLines(["aaa", "bbb", "c"], { lines: 9, characters: 4 })).toEqual([[0], [1, 2]]);
    expect(chunkLines(["a".repeat(9)], { lines: 9, characters: 4 })).toEqual([[0]]);
    expect(chunkLines([], { lines: 1, characters: 1 })).toEqual([]);
  });
  it("names the line that is too long", () => {
    expect(findLongLine(["ab", "abcd"], 3)).toBe(2);
    expect(findLongLine(["ab"], 2)).toBeNull();
  });
  it.each([["notes.txt", "notes.en.txt"], ["notes", "notes.en"], ["a.b.txt", "a.b.en.txt"]])("%s becomes %s", (name, expected) => expect(translatedName(name, "en")).toBe(expected));
  it("has a name where the language is not told", () => expect(translatedName("a.txt", "auto")).toBe("a.translated.txt"));
});

describe("models", () => {
  const model = (name: string, source: string, target: string, isDefault = false) => ({ name, source, target, default: isDefault, kind: "", num_parameters: 1, has_attention: true, max_characters: 1, dev: null, task: "translation" as const, series: null });
  const models = [model("a", "ko", "en"), model("b", "ko", "en", true), model("c", "en", "ko"), model("d", "en", "de")];
  it("are chosen by name, else the server's own choice", () => {
    expect(chooseModel(models, "c")?.name).toBe("c");
    expect(chooseModel(models, "gone")?.name).toBe("b");
    expect(chooseModel([], "c")).toBeNull();
  });
  it("are for the pages that they can do something for", () => {
    const series = { ...model("s", "auto", "auto"), task: "series" as const, series: null };
    const language = { ...model("l", "auto", "en"), task: "language" as const };
    const classifier = { ...model("k", "en", "auto"), task: "classification" as const };
    expect(pagesFor(null)).toEqual(["translate", "inspect", "runs", "lessons"]);
    expect(pagesFor([])).toEqual(["translate", "inspect", "runs", "lessons"]);
    expect(pagesFor([series])).toEqual(["forecast", "inspect", "runs", "lessons"]);
    expect(pagesFor([language, models[0]])).toEqual(["translate", "generate", "inspect", "runs", "lessons"]);
    expect(modelsFor([series, classifier, language, models[0]], "translate").map((one) => one.name)).toEqual(["a", "k"]);
    expect(modelsFor([series, language], "inspect")).toEqual([language]);
  });
  it("tell which languages there are", () => {
    expect(sourcesOf(models)).toEqual(["ko", "en"]);
    expect(targetsOf(models, "en")).toEqual(["ko", "de"]);
    expect(modelForSource(models, "en", "de")?.name).toBe("d");
    expect(modelForSource(models, "en", "fr")?.name).toBe("c");
    expect(reverseOf(models, models[0])?.name).toBe("c");
    expect(reverseOf(models, models[3])).toBeNull();
    const untold = model("e", "auto", "auto");
    expect(reverseOf([untold], untold)).toBeNull();
  });
  it("say languages in the reader's", () => {
    expect(languageName("ko", "en")).toBe("Korean");
    expect(languageName("ko", "ko")).toBe("한국어");
    expect(languageName("auto", "en")).toBeNull();
    expect(languageName("not a code!", "en")).toBe("not a code!");
  });
});
