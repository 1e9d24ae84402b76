import { describe, expect, it } from "vitest";

import { reorder, similarities, sinusoidal, vectorAt, waveOf } from "../../src/inspector/analysis/positions";

describe("the formula", () => {
  it("gives the paper's values, interleaved", () => {
    const table = sinusoidal(3, 4, "interleaved");
    const expected = [0, 1, 0, 1, Math.sin(1), Math.cos(1), Math.sin(0.01), Math.cos(0.01), Math.sin(2), Math.cos(2), Math.sin(0.02), Math.cos(0.02)];
    table.data.forEach((value, index) => expect(value).toBeCloseTo(expected[index], 6));
  });

  it("gives all sines first in halves", () => {
    const table = sinusoidal(2, 4, "halves");
    const expected = [Math.sin(1), Math.sin(0.01), Math.cos(1), Math.cos(0.01)];
    vectorAt(table, 1).forEach((value, index) => expect(value).toBeCloseTo(expected[index], 6));
  });
});

describe("tensor2tensor", () => {
  it("spaces the frequencies so that the last is 1 / 10000", () => {
    const expected = [Math.sin(1), Math.sin(0.0001), Math.cos(1), Math.cos(0.0001)];
    vectorAt(sinusoidal(2, 4, "tensor2tensor"), 1).forEach((value, index) => expect(value).toBeCloseTo(expected[index], 6));
  });

  it("leaves an odd last dimension 0, and is not a reordering of the paper's table", () => {
    expect(vectorAt(sinusoidal(2, 5, "tensor2tensor"), 1)[4]).toBe(0);
    const table = sinusoidal(3, 4, "interleaved");
    expect(reorder(table, "tensor2tensor")).toBe(table);
  });
});

describe("the other order", () => {
  it("is the same table by another road, and leads back", () => {
    const table = sinusoidal(7, 10, "interleaved");
    const halves = reorder(table, "halves");
    expect(halves.data).toEqual(sinusoidal(7, 10, "halves").data);
    expect(reorder(halves, "interleaved").data).toEqual(table.data);
    expect(reorder(table, "interleaved")).toBe(table);
  });

  it("knows which wave is where", () => {
    expect(waveOf(3, 8, "interleaved")).toEqual({ pair: 1, isCosine: true });
    expect(waveOf(5, 8, "halves")).toEqual({ pair: 1, isCosine: true });
  });
});

describe("likeness", () => {
  const table = sinusoidal(30, 64, "interleaved");

  it("is one with itself and the same in both directions", () => {
    const alike = similarities(table, 10);
    expect(alike[10]).toBeCloseTo(1, 6);
    expect(alike[14]).toBeCloseTo(similarities(table, 14)[10], 6);
  });

  it("depends on the distance only, as cos(distance * frequency) summed", () => {
    const expected = Array.from({ length: 32 }, (_, pair) => Math.cos(3 * 10000 ** ((-2 * pair) / 64))).reduce((a, b) => a + b, 0) / 32;
    expect(similarities(table, 4)[7]).toBeCloseTo(expected, 5);
    expect(similarities(table, 20)[23]).toBeCloseTo(expected, 5);
  });

  it("does not hang on the order of the dimensions", () => {
    const other = similarities(reorder(table, "halves"), 5);
    similarities(table, 5).forEach((value, index) => expect(other[index]).toBeCloseTo(value, 5));
  });
});
