import { describe, expect, it } from "vitest";

import { type Choice, choose, firstChoice, headOf, kindsOf, meanAt, meanOf, toggleHead, strongest, viewOf, weightsAt } from "../../src/inspector/analysis/attention";
import { readRecord } from "../../src/inspector/record/record";
import { makeRecord } from "../fixtures/make-record";

const record = readRecord(makeRecord());
const cross = record.attention.cross!;
const base: Choice = { kind: "cross", layer: 0, mode: "one", heads: [0], byWords: false };

/** Straight from the packed order: layer, head, row, column. */
function at(layer: number, head: number, row: number, column: number): number {
  return cross.data[((layer * cross.heads + head) * cross.rows + row) * cross.columns + column];
}

describe("what is shown first", () => {
  it("is the cross head that is most like an alignment", () => {
    const best = record.measures.cross.flatMap((heads, layer) => heads.map((one, head) => ({ layer, head, worth: one.alignment! }))).sort((a, b) => b.worth - a.worth)[0];
    expect(firstChoice(record)).toEqual({ kind: "cross", layer: best.layer, mode: "one", heads: [best.head], byWords: false });
  });

  it("is nothing for a model without attention", () => {
    const none = { cross: null, encoder_self: null, decoder_self: null };
    expect(kindsOf({ ...record, attention: none })).toEqual([]);
    expect(firstChoice({ ...record, attention: none })).toBeNull();
  });
});

describe("a view", () => {
  it("of one head has exactly its weights", () => {
    const { matrices } = viewOf(record, { ...base, layer: 1, heads: [2] });
    expect(matrices).toHaveLength(1);
    expect(weightsAt(matrices[0], { side: "row", index: 3 })[1]).toBe(at(1, 2, 3, 1));
  });

  it("of all heads has a matrix each, of the mean one", () => {
    expect(viewOf(record, { ...base, mode: "all" }).matrices.map((matrix) => matrix.head)).toEqual([0, 1, 2, 3]);
    const [mean] = viewOf(record, { ...base, mode: "mean" }).matrices;
    const expected = [0, 1, 2, 3].reduce((sum, head) => sum + at(0, head, 2, 4), 0) / 4;
    expect(mean.head).toBeNull();
    expect(mean.values[2 * cross.columns + 4]).toBeCloseTo(expected, 6);
  });

  it("of all layers averages them", () => {
    const [matrix] = viewOf(record, { ...base, layer: "all", heads: [1] }).matrices;
    expect(matrix.values[7]).toBeCloseTo((headOf(cross, 0, 1)[7] + headOf(cross, 1, 1)[7]) / 2, 6);
  });

  it("by words still has rows that sum to one", () => {
    const { matrices, axes } = viewOf(record, { ...base, byWords: true });
    axes.rows.forEach((_, index) => {
      const sum = weightsAt(matrices[0], { side: "row", index }).reduce((a, b) => a + b, 0);
      expect(sum).toBeCloseTo(1, 3);
    });
    expect(axes.rows.map((unit) => unit.text)).toEqual(["I", "am", "a", "student.", ""]);
  });
});

describe("one word", () => {
  const { matrices } = viewOf(record, { ...base, mode: "all" });

  it("gives along its row and gets along its column", () => {
    const gets = weightsAt(matrices[3], { side: "column", index: 2 });
    expect([...gets]).toEqual(Array.from({ length: 6 }, (_, row) => at(0, 3, row, 2)));
  });

  it("has a mean over the chosen heads", () => {
    const mean = meanAt(matrices, { side: "row", index: 0 });
    expect(mean[1]).toBeCloseTo(meanOf(cross, [0], [0, 1, 2, 3])[1], 6);
  });

  it("has its strongest links first, ties in reading order, none below the floor", () => {
    const links = strongest(Float32Array.of(0.1, 0.4, 0.05, 0.4), 9, 0.1);
    expect(links.map((link) => link.index)).toEqual([1, 3, 0]);
  });
});

describe("choosing", () => {
  it("keeps within layers and heads that are there", () => {
    expect(choose(record, base, { layer: 9 }).layer).toBe(1);
    expect(choose(record, base, { layer: -1 }).layer).toBe(0);
    expect(choose(record, base, { mode: "several", heads: [3, 9, 1, 3] }).heads).toEqual([1, 3]);
    expect(choose(record, base, { heads: [] }).heads).toEqual([0]);
  });

  it("stays where the model has no such kind", () => {
    const half = { ...record, attention: { ...record.attention, encoder_self: null } };
    expect(choose(half, base, { kind: "encoder_self" })).toBe(base);
  });

  it("replaces the head in the mode of one", () => expect(toggleHead(record, base, 2, false).heads).toEqual([2]));

  it("adds and takes away in the mode of several, but never the last", () => {
    const two = toggleHead(record, base, 2, true);
    expect(two).toMatchObject({ mode: "several", heads: [0, 2] });
    const one = toggleHead(record, two, 0, false);
    expect(one.heads).toEqual([2]);
    expect(toggleHead(record, one, 2, false)).toBe(one);
  });

  it("leaves one out of all", () => {
    expect(toggleHead(record, { ...base, mode: "all" }, 1, true)).toMatchObject({ mode: "several", heads: [0, 2, 3] });
  });

  it("ignores a head that the model has not", () => expect(toggleHead(record, base, 7, false)).toBe(base));
});
