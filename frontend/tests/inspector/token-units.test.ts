import { describe, expect, it } from "vitest";

import { readRecord } from "../../src/inspector/record/record";
import { axesOf, joinPieces, joinUnits, pieceLabel, pieceText, tokenUnits, wordUnits } from "../../src/inspector/analysis/token-units";
import { makeRecord } from "../fixtures/make-record";

const record = readRecord(makeRecord());

describe("units", () => {
  it("are one a token, and know where words begin", () => {
    const units = tokenUnits(record.src.tokens);
    expect(units.map((unit) => unit.text)).toEqual(["나는", "학생", "이다", ".", ""]);
    expect(units.map((unit) => unit.isFirst)).toEqual([true, true, false, false, true]);
    expect(units.at(-1)!.special).toBe("end");
  });

  it("are one a word when joined, symbols on their own", () => {
    const units = wordUnits(record.src.tokens, record.src.words);
    expect(units.map((unit) => unit.text)).toEqual(["나는", "학생이다.", ""]);
    expect(units.map((unit) => unit.members)).toEqual([[0], [1, 2, 3], [4]]);
  });

  it("show a lone space and an unshown byte as what they are, not as the end", () => {
    const units = tokenUnits([
      { id: 9, piece: "▁", text: "", word: null },
      { id: 10, piece: "<0xEC>", text: "", word: 0 },
    ]);
    expect(units.map((unit) => [unit.text, unit.special])).toEqual([
      ["␣", null],
      ["<0xEC>", null],
    ]);
  });
});

describe("axes", () => {
  it("of cross attention are translation by source", () => {
    const { rows, columns } = axesOf(record, "cross", false);
    expect([rows.length, columns.length]).toEqual([6, 5]);
  });

  it("of decoder self-attention have the start symbol in front and end one token before", () => {
    const { rows, columns } = axesOf(record, "decoder_self", false);
    expect(rows.map((unit) => unit.text)).toEqual(["I", "am", "a", "student", ".", ""]);
    expect(columns.map((unit) => unit.text)).toEqual(["", "I", "am", "a", "student", "."]);
    expect(columns[0].special).toBe("start");
  });

  it("of decoder self-attention by words keep start, and join the shifted tokens", () => {
    const { columns } = axesOf(record, "decoder_self", true);
    expect(columns.map((unit) => unit.members)).toEqual([[0], [1], [2], [3], [4, 5]]);
  });
});

describe("joining weights", () => {
  it("sums what a word gets and averages what it gives", () => {
    const unit = (members: number[]) => ({ text: "", special: null, word: 0, members, isFirst: true });
    const axes = { rows: [unit([0, 1])], columns: [unit([0]), unit([1, 2])] };
    const joined = joinUnits(Float32Array.of(0.5, 0.25, 0.25, 0.1, 0.4, 0.5), axes);
    expect(joined[0]).toBeCloseTo(0.3, 6);
    expect(joined[1]).toBeCloseTo(0.7, 6);
  });
});

describe("pieces", () => {
  it("are shown without their mark", () => {
    expect([pieceText("▁the"), pieceText("ing"), pieceText("▁")]).toEqual(["the", "ing", "␣"]);
    expect(["<s>", "</s>", "▁the"].map(pieceLabel).map(({ special, text }) => special ?? text)).toEqual(["start", "end", "the"]);
    expect(joinPieces(["▁I", "▁am", "▁stud", "ent", "."])).toBe("I am student.");
  });
});
