import { describe, expect, it } from "vitest";

import { arcsAt, overviewArcs, strokeWidth } from "../../src/inspector/analysis/attention-arcs";

const box = (x: number, top: number) => ({ x, width: 20, top, bottom: top + 10 });
const boxes = { rows: [box(10, 100), box(40, 100)], columns: [box(10, 0), box(40, 0), box(70, 0)] };
const matrix = (head: number | null, ...values: number[]) => ({ head, numRows: 2, numColumns: 3, values: Float32Array.from(values) });

describe("lines of a word", () => {
  const matrices = [matrix(0, 0.7, 0.295, 0.005, 0, 0.5, 0.5)];

  it("run from the top of the one that looks to the bottom of the one looked at", () => {
    const [first] = arcsAt(matrices, { side: "row", index: 0 }, boxes);
    expect(first).toMatchObject({ key: "0.0.0", head: 0 });
    expect(first.path).toMatch(/^M10 100C.* 10 10$/);
    expect(first.weight).toBeCloseTo(0.7, 6);
  });

  it("leave out what is too thin to be seen", () => {
    expect(arcsAt(matrices, { side: "row", index: 0 }, boxes)).toHaveLength(2);
  });

  it("come from every row for a word that is looked at", () => {
    expect(arcsAt(matrices, { side: "column", index: 1 }, boxes).map((arc) => arc.key)).toEqual(["0.1.1", "0.0.1"]);
  });

  it("of two heads do not lie on one another", () => {
    const two = arcsAt([...matrices, matrix(1, 0.7, 0.2, 0.1, 0, 0, 1)], { side: "row", index: 0 }, boxes);
    expect(new Set(two.map((arc) => arc.path)).size).toBe(two.length);
  });

  it("wait until the words are on the page", () => {
    expect(arcsAt(matrices, { side: "row", index: 0 }, { rows: [], columns: [] })).toEqual([]);
  });
});

describe("lines of all words", () => {
  it("show at least one line per word, and others only if strong", () => {
    const arcs = overviewArcs([matrix(null, 0.9, 0.1, 0, 0.4, 0.35, 0.25)], boxes);
    expect(arcs.map((arc) => arc.key)).toEqual(["mean.0.0", "mean.1.0", "mean.1.1", "mean.1.2"]);
  });
});

it("is as thick as its weight", () => {
  expect(strokeWidth(0.8)).toBeCloseTo(2 * strokeWidth(0.4), 6);
  expect(strokeWidth(0.0001)).toBeGreaterThan(0.5);
});
