import { describe, expect, it } from "vitest";

import { diagram, textLines } from "../../src/app/features/lessons/diagram/diagram";
import { frameOf, framesOf, jumpWord, shorten } from "../../src/app/features/lessons/machine/machine-frames";
import { explainCell, labelPieces, machineValues, panelOf, rowWords } from "../../src/app/features/lessons/machine/machine-values";
import { block } from "../../src/app/features/lessons/schemas";
import { makeMachine, makeMachineValues } from "../fixtures/make-machine";

const values = machineValues(makeMachineValues(), "values");
const FRAMES = framesOf(["src_embedding", "encoder_self", "cross", "search"], 2);

describe("the frames", () => {
  it("run the encoder once and the decoder for every word", () => {
    expect(FRAMES.map(({ stage, step }) => `${stage} ${step}`)).toEqual(["src_embedding 0", "encoder_self 0", "cross 0", "search 0", "cross 1", "search 1"]);
  });
  it("are found by stage and step", () => {
    expect(frameOf(FRAMES, "cross", 1)).toBe(4);
    expect(frameOf(FRAMES, "encoder_self", 1)).toBe(1);
    expect(frameOf(FRAMES, "none", 1)).toBe(-1);
  });
  it("are jumped over word by word", () => {
    expect([0, 2, 4].map((at) => jumpWord(FRAMES, at, 1))).toEqual([2, 4, 5]);
    expect([5, 4, 2, 0].map((at) => jumpWord(FRAMES, at, -1))).toEqual([4, 2, 0, 0]);
  });
});

describe("the words", () => {
  const raw = { ...makeMachineValues(), src: ["▁어제", "</s>"], tgt: ["▁I", "</s>"] };
  const label = (piece: string) => ({ "<s>": "start", "</s>": "end" })[piece] ?? piece.replace("▁", "");
  it("of a trained model are the labels of its pieces, everywhere", () => {
    const { src, tgt, start } = labelPieces(machineValues(raw, "values"), label);
    expect([src, tgt, start]).toEqual([["어제", "end"], ["I", "end"], "start"]);
    expect(labelPieces(values, (piece) => `${piece}!`).steps[0].top[0].word).toBe(`${values.steps[0].top[0].word}!`);
  });
  it("of the built-in example are words already", () => {
    expect(labelPieces({ ...values, model: null }, label).start).toBe(values.start);
  });
});

describe("the numbers", () => {
  it("of a decoder stage are those of the words read so far", () => {
    expect(rowWords(values, "cross", 1)).toEqual(["<s>", "x"]);
    expect(rowWords(values, "encoder_self", 1)).toEqual(["a", "b", "c"]);
    const panel = panelOf({ values: Float32Array.of(1, -9, 3, 4), num_columns: 2 }, ["a"], "t");
    expect([panel.num_rows, [...panel.values], panel.limit]).toEqual([1, [1, -9], 9]);
  });
  it("of a cell are the products of its query and key, their sum, the score and the weight", () => {
    const { largest, sum, score, weight, isScaled } = explainCell(values.attention.cross, 1, 2, 0);
    expect(largest.map(({ q, k, product }) => [q, k, product])).toEqual([[2, 4, 8], [2, 3, 6], [2, 2, 4], [2, 1, 2]]);
    expect([sum, score, weight, isScaled]).toEqual([20, 10, 0.5, true]);
  });
  it("of a masked cell have no weight", () => {
    expect(explainCell(values.attention.decoder_self, 0, 0, 2).weight).toBeNull();
  });
  it("that do not fit their sizes are refused", () => {
    const broken = makeMachineValues();
    broken.attention.cross.num_heads = 3;
    expect(() => machineValues(broken, "values")).toThrow(/cross/);
  });
});

describe("a drawing", () => {
  it("is read as a block", () => {
    expect(block(makeMachine(), "block").kind).toBe("machine");
  });
  it("has no path but lines and curves", () => {
    const broken = makeMachine().wide;
    const shapes = broken.shapes.map((shape) => ("path" in shape ? { ...shape, path: "M0 0;url(x)" } : shape));
    expect(() => diagram({ ...broken, shapes }, "d")).toThrow(/path/);
  });
  it("writes lines around the middle", () => {
    expect(textLines("a\nb", 100, 10).map(({ y }) => y)).toEqual([97.5, 109.5]);
  });
});

describe("a long sentence", () => {
  it("loses its end, or its beginning", () => {
    expect(shorten(["one", "two"], 7, false)).toBe("one two");
    expect(shorten(["one", "two", "three"], 9, false)).toBe("one two …");
    expect(shorten(["one", "two", "three"], 8, true)).toBe("… three");
    expect(shorten(["나는", "학생"], 9, false)).toBe("나는 학생");
    expect(shorten(["나는", "학생"], 7, false)).toBe("나는 …");
  });
});
