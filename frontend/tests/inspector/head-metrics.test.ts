import { describe, expect, it } from "vitest";

import { metricRows, metricNames, sortMetricRows } from "../../src/inspector/analysis/head-metrics";
import { parameters, percent, score, share, signed, shortShare } from "../../src/inspector/display/format";
import { cellAt, layoutMatrix, moveCell } from "../../src/inspector/analysis/matrix-layout";
import { readRecord } from "../../src/inspector/record/record";
import { makeRecord } from "../fixtures/make-record";

describe("the table of measures", () => {
  const record = readRecord(makeRecord());
  const rows = metricRows(record, "cross");

  it("has a row a head, and only the measures of its kind", () => {
    expect(rows).toHaveLength(8);
    expect(metricNames(rows)).toEqual(["focus", "entropy", "distance", "agreement", "alignment"]);
    expect(metricNames(metricRows(record, "encoder_self"))).toContain("previous");
    expect(metricNames(metricRows(record, "encoder_self"))).not.toContain("alignment");
  });

  it("sorts both ways and does not touch the original", () => {
    const before = [...rows];
    const down = sortMetricRows(rows, { by: "entropy", isDescending: true }).map((row) => row.metrics.entropy!);
    expect(down).toEqual([...down].sort((a, b) => b - a));
    expect(sortMetricRows(rows, { by: "head", isDescending: true })[0]).toMatchObject({ layer: 1, head: 3 });
    expect(rows).toEqual(before);
  });
});

describe("numbers", () => {
  it("are short, and never hide that something is there", () => {
    expect([share(0.834), share(0.001), share(0), share(1)]).toEqual(["0.83", "<0.01", "0.00", "1.00"]);
    expect([shortShare(0.834), shortShare(0.004), shortShare(0.999), shortShare(1)]).toEqual([".83", "", "1", "1"]);
    expect([percent(0.9312), percent(0.0002), percent(0)]).toEqual(["93.1%", "<0.1%", "0.0%"]);
    expect([parameters(918528), parameters(65_000_000), parameters(1_200_000), parameters(213)]).toEqual(["0.92 M", "65 M", "1.2 M", "213"]);
  });

  it("have a true minus sign, and no sign at zero", () => {
    expect([signed(-0.5), signed(0.25), signed(-0.001)]).toEqual(["−0.50", "+0.25", "0.00"]);
    expect(score(-1.2345)).toBe("−1.234");
  });
});

describe("the fields of a matrix", () => {
  it("fill the space, with numbers where they fit", () => {
    expect(layoutMatrix(400, 10, 10)).toMatchObject({ cellWidth: 40, hasNumbers: true });
    expect(layoutMatrix(400, 60, 60).hasNumbers).toBe(false);
    expect(layoutMatrix(400, 60, 60).cellWidth).toBeGreaterThan(10); // smaller could not be pointed at: it scrolls
    expect(layoutMatrix(4000, 3, 3).cellWidth).toBeLessThan(80);
  });

  it("are found under the pointer", () => {
    const layout = { cellWidth: 20, cellHeight: 10, hasNumbers: false };
    expect(cellAt(45, 15, layout, 3, 3)).toEqual({ row: 1, column: 2 });
    expect(cellAt(61, 5, layout, 3, 3)).toBeNull();
    expect(cellAt(-1, 5, layout, 3, 3)).toBeNull();
  });

  it("are reached by arrow keys, within the bounds", () => {
    expect(moveCell("ArrowDown", { row: 0, column: 1 }, 2, 3)).toEqual({ row: 1, column: 1 });
    expect(moveCell("ArrowDown", { row: 1, column: 1 }, 2, 3)).toEqual({ row: 1, column: 1 });
    expect(moveCell("End", { row: 1, column: 0 }, 2, 3)).toEqual({ row: 1, column: 2 });
    expect(moveCell("q", { row: 0, column: 0 }, 2, 3)).toBeNull();
  });
});
