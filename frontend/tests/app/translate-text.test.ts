import { describe, expect, it } from "vitest";

import { notesOf } from "../../src/app/api/notes";
import { annotate, sentenceAt, sourceHighlight, strongestSources } from "../../src/app/features/translate/annotated-translation";
import { countCharacters, utf16Offsets } from "../../src/app/features/translate/code-points";
import { levelOf } from "../../src/app/features/translate/confidence";
import { headlineOf, unknownWordsOf } from "../../src/app/features/translate/headline";
import { addEntry, parseHistory } from "../../src/app/features/translate/history.svelte";
import { chunkLines, findLongLine, splitLines, translatedName } from "../../src/app/features/translate/file-chunks";
import { alignWords, findWordSpans, joinPrefix, markSegments, splitAtSpans, textBefore } from "../../src/app/features/translate/word-spans";
import { chooseModel, languageName, modelForSource, modelsFor, pagesFor, reverseOf, sourcesOf, targetsOf, twoSteps } from "../../src/app/shared/models";

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
    confidence: { probability: 0.5, mean_token_probability: 0.8, quality: 0.96, band: "high" as const, unfamiliar: null, words: [0.99, 0.8, 0.5, 0.1].map((probability, index) => ({ text: ["I", "am", "a", "student."][index], probability })) },
    alignment: { source_words: ["나는", "학생이다."], target_words: ["I", "am", "a", "student."], weights: [[0.9, 0.1], [0.2, 0.8], [0.04, 0.9], [0, 1]] },
    sentences: [],
  };
  const source = "나는 학생이다.";
  it("has the confidence and the source weights of each word", () => {
    const { words } = annotate(answer, source);
    expect(words.map((word) => levelOf(word!.probability!))).toEqual(["sure", "likely", "unsure", "doubtful"]);
    expect(words[1]).toMatchObject({ text: "am", span: { start: 2, end: 4 }, sourceWeights: [0.2, 0.8] });
  });
  it("may have neither", () => {
    const { words, sentences, hasAlignment } = annotate({ text: "so it is", words: [], confidence: null, alignment: null, sentences: [] }, "ka");
    expect(words.map((word) => word?.text)).toEqual(["so", "it", "is"]);
    expect(words[0]).toMatchObject({ probability: null, sourceWeights: null });
    expect(sentences).toMatchObject([{ sourceWords: [], target: { start: 0, end: 8 } }]);
    expect(hasAlignment).toBe(false);
  });
  it("has the words of each sentence where they are in the source", () => {
    const alignment = (source_word: string, target_word: string) => ({ source_words: [source_word], target_words: [target_word], weights: [[0.7]] });
    const sentences = [
      { source_start: 0, source_end: 3, start: 0, end: 4, alignment: alignment("😀.", "Hi.") },
      { source_start: 4, source_end: 6, start: 5, end: 8, alignment: alignment("네.", "Hi.") },
    ].map((one) => ({ ...one, source_end: one.source_end, alignment: one.alignment }));
    const found = annotate({ text: "😀Hi. Hi.", words: ["😀Hi.", "Hi."], confidence: null, alignment: null, sentences }, "x😀. 네.");
    expect(found.sentences.map(({ source: span }) => span)).toEqual([{ start: 0, end: 4 }, { start: 5, end: 7 }]);
    expect(found.words.map((word) => word?.sentence)).toEqual([0, 1]);
    expect(sourceHighlight(found, 1, null)).toEqual({ sentence: { start: 5, end: 7 }, words: [{ span: { start: 5, end: 7 }, weight: 0.7 }] });
    expect(sourceHighlight(found, null, 0)).toEqual({ sentence: { start: 0, end: 4 }, words: [] });
    expect(sourceHighlight(found, null, null)).toBeNull();
    expect([0, 6, 9].map((offset) => sentenceAt(found.sentences, offset))).toEqual([0, 1, null]);
  });
  it("lists the largest source weights first and leaves out small ones", () => {
    expect(strongestSources([0.2, 0.7, 0.01], ["a", "b", "c"])).toEqual([{ word: "b", weight: 0.7 }, { word: "a", weight: 0.2 }]);
  });
  it("names source words without the punctuation around them", () => {
    expect(strongestSources([0.4, 0.3, 0.3], ["“princess.”", "don't", "…"]).map(({ word }) => word)).toEqual(["princess", "don't", "…"]);
  });
});

describe("characters", () => {
  it("are counted as the server counts them", () => {
    expect(countCharacters("a😀b")).toBe(3);
    expect([0, 1, 2, 3].map(utf16Offsets("a😀b"))).toEqual([0, 1, 3, 4]);
  });
  it("of a part are marked, in words and between them", () => {
    const parts = markSegments("ab cd ef", { start: 3, end: 6 }, [{ start: 0, end: 2 }, { start: 2, end: 4 }]);
    expect(parts).toEqual([
      { text: "ab", word: 0, isInside: false },
      { text: " ", word: 1, isInside: false },
      { text: "c", word: 1, isInside: true },
      { text: "d ", word: null, isInside: true },
      { text: "ef", word: null, isInside: false },
    ]);
  });
});

describe("the headline", () => {
  const sure = { probability: 0.9, mean_token_probability: 0.9, quality: 0.97, band: "high" as const, unfamiliar: null, words: [] };
  const unfamiliar = (num_unseen: number) => ({ num_tokens: 8, num_unseen, bits_per_character: num_unseen ? null : 5 });
  it("is the band of a familiar text", () => expect(headlineOf(sure, [])).toEqual({ band: "high", quality: 0.97, isLowered: false }));
  it("falls with what is not known", () => {
    expect(headlineOf({ ...sure, unfamiliar: unfamiliar(1) }, [])).toEqual({ band: "check", quality: null, isLowered: true });
    expect(headlineOf({ ...sure, unfamiliar: unfamiliar(0) }, [])).toMatchObject({ band: "check" });
    expect(headlineOf({ ...sure, unfamiliar: unfamiliar(2) }, [])).toMatchObject({ band: "low" });
    expect(headlineOf(sure, ["zork"])).toMatchObject({ band: "check" });
  });
  it("never rises, and needs a band", () => {
    expect(headlineOf({ ...sure, band: "low", unfamiliar: unfamiliar(1) }, [])).toMatchObject({ band: "low" });
    expect(headlineOf({ ...sure, band: null }, [])).toBeNull();
  });
  it("takes the unknown words from the notes", () => {
    const note_details = [{ text: "copied", code: "copied_words", words: ["x"], count: null }, { text: "", code: "unknown_words", words: ["zork", "moria", "zork"], count: null }];
    expect(unknownWordsOf({ note_details })).toEqual(["zork", "moria"]);
  });
});

describe("the history", () => {
  const entry = (text: string, model = "m") => ({ text, translation: text.toUpperCase(), model });
  it("has the newest first, and each text once", () => {
    expect(addEntry([entry("b"), entry("a")], entry("a"))).toEqual([entry("a"), entry("b")]);
    expect(addEntry([entry("b")], entry("b", "n"))).toEqual([entry("b", "n"), entry("b")]);
  });
  it("does not keep what was on the way to a longer text", () => expect(addEntry([entry("I am")], entry("I am a student."))).toEqual([entry("I am a student.")]));
  it("survives damage", () => {
    expect(parseHistory("{")).toEqual([]);
    expect(parseHistory('[{"text": 1}, {"text": "a", "translation": "A", "model": "m"}]')).toEqual([entry("a")]);
  });
});

describe("a note of the server's", () => {
  const shown = (text: string, code: string, more: object = {}) => notesOf({ notes: [text], note_details: [{ code, text, words: [], count: null, ...more }] });
  it("is translated by its code, whatever its text", () => {
    expect(shown("aligned up to 2000", "not_aligned", { count: 2000 })).toMatchObject([{ key: "note.notAligned", parameters: { count: 2000 } }]);
    expect(shown("!", "missing_phrase", { words: ["crown prince"] })).toMatchObject([{ key: "note.without", parameters: { phrase: "crown prince" } }]);
    expect(shown("copied", "copied_words", { words: ["42", "7"] })).toMatchObject([{ key: "note.copied", parameters: { words: "42, 7" } }]);
  });
  it("about unknown words is shown with the band instead", () => expect(shown("not in the vocabulary: x", "unknown_words", { words: ["x"] })).toEqual([]));
  it("without a known code stays as it is", () => {
    expect(shown("the moon is full", "moon")).toMatchObject([{ key: null, text: "the moon is full" }]);
    expect(notesOf({ notes: ["cut after 3 tokens"], note_details: [] })).toMatchObject([{ key: null, text: "cut after 3 tokens" }]);
  });
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
  it("has a name where the language is not known", () => expect(translatedName("a.txt", "auto")).toBe("a.translated.txt"));
});

describe("models", () => {
  const model = (name: string, source: string, target: string, isDefault = false) => ({ name, source, target, default: isDefault, kind: "", num_parameters: 1, has_attention: true, max_characters: 1, dev: null, task: "translation" as const, quality: null, series: null, labels: [], vocab_sizes: null, training: null });
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

  it("has the two models of a translation in two steps, where both are there", () => {
    const pivots = [{ source: "en", target: "fr", via: "ko" }];
    const [first, second] = [{ ...models[0], source: "en", target: "ko" }, { ...models[0], source: "ko", target: "fr" }];
    expect(twoSteps([second, first], pivots, "en", "fr")?.models).toEqual([first, second]);
    expect(twoSteps([first], pivots, "en", "fr")).toBeNull();
    expect(twoSteps([first, second], pivots, "en", "de")).toBeNull();
  });
  it("say languages in the reader's", () => {
    expect(languageName("ko", "en")).toBe("Korean");
    expect(languageName("ko", "ko")).toBe("한국어");
    expect(languageName("auto", "en")).toBeNull();
    expect(languageName("not a code!", "en")).toBe("not a code!");
  });
});
