import { describe, expect, it } from "vitest";

import { axesOf } from "../../src/inspector/analysis/token-units";
import { firstChoice, viewOf } from "../../src/inspector/analysis/attention";
import { keyFor } from "../../src/i18n";
import { parseRecord, readRecord } from "../../src/inspector/record/record";
import { topLabels, panelsOf, rangeOf, formatValue, shadingOf } from "../../src/inspector/analysis/series";
import { firstTab, tabsOf } from "../../src/inspector/state/tabs";
import { shortTimes } from "../../src/inspector/display/short-times";
import { HORIZON, makeSeries, WINDOW } from "../fixtures/make-series";
import { makeRecord } from "../fixtures/make-record";

const labels = readRecord(makeSeries());
const numbers = readRecord(makeSeries("numbers"));

function changed(change: (record: ReturnType<typeof makeSeries>) => void): () => unknown {
  const record = makeSeries();
  change(record);
  return () => parseRecord(JSON.stringify(record));
}

describe("the record of a series", () => {
  it("is read, with steps where there are labels and none where there are numbers", () => {
    expect(labels.series).toMatchObject({ kind: "labels", features: ["sea_temperature", "pressure"] });
    expect(labels.series?.values[0][9]).toBeNull();
    expect(labels.steps).toHaveLength(HORIZON);
    expect(numbers.steps).toHaveLength(0);
    expect(readRecord(makeRecord()).series).toBeNull();
  });

  it("is refused where something does not fit, and the part is named", () => {
    expect(changed((record) => record.series.times.pop())).toThrow(/series\.times/);
    expect(changed((record) => (record.series.values[0] = [1]))).toThrow(/series\.values\[0\]/);
    expect(changed((record) => record.series.probabilities?.[0].pop())).toThrow(/series\.probabilities\[0\]/);
    expect(changed((record) => (record.steps = []))).toThrow(/steps/);
  });

  it("has neither a search nor studies to show", () => {
    expect(tabsOf(labels)).toEqual(["attention", "steps", "words", "metrics"]);
    expect(firstTab(labels, "why")).toBe("attention");
    expect(firstTab(labels, "steps")).toBe("steps");
  });

  it("has words of its own where a sentence has others", () => {
    expect(keyFor(labels, "arcs.src")).toBe("series.arcs.src");
    expect(keyFor(labels, "mode.one")).toBe("mode.one");
    expect(keyFor(readRecord(makeRecord()), "arcs.src")).toBe("arcs.src");
  });

  it("names the steps ahead by their time; the decoder's inputs are one behind", () => {
    const cross = axesOf(labels, "cross", false);
    expect(cross.columns.map((unit) => unit.text).slice(0, 2)).toEqual(["07-15", "07-16"]);
    expect(cross.rows.map((unit) => unit.text).slice(2, 4)).toEqual(["08-16 calm", "08-17 typhoon"]);
    const self = axesOf(labels, "decoder_self", false);
    expect(self.columns[0].special).toBe("start");
    expect(self.columns[4]).toMatchObject({ text: "08-17 typhoon", members: [4] });
  });
});

describe("panels", () => {
  it("go on with the forecast where a target is a feature", () => {
    const [temperature, pressure] = panelsOf(numbers.series!);
    expect(temperature.values).toHaveLength(WINDOW + HORIZON);
    expect(temperature.forecast.slice(WINDOW, WINDOW + 2)).toEqual([28.5, 28.6]);
    expect(temperature.observed[WINDOW]).toBe(28.3);
    expect(pressure.forecast.every((value) => value === null)).toBe(true);
  });

  it("are made of targets that are no features, too", () => {
    const series = { ...numbers.series!, targets: ["rain"] };
    expect(panelsOf(series).map((panel) => panel.name)).toEqual(["sea_temperature", "pressure", "rain"]);
    expect(panelsOf(series)[2].values.every((value) => value === null)).toBe(true);
    expect(panelsOf(labels.series!)).toHaveLength(2);
  });
});

describe("shades", () => {
  const choice = firstChoice(labels)!;
  const view = viewOf(labels, choice);

  it("are what all steps together look at, where none is pointed at", () => {
    const { window, ahead } = shadingOf(view, "cross", null);
    expect(ahead).toBeNull();
    expect(window).toHaveLength(WINDOW);
    expect(window!.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 3);
  });

  it("are those of one step, or of who looks at one", () => {
    const { window } = shadingOf(view, "cross", { side: "row", index: 3 });
    expect([...window!]).toEqual([...view.matrices[0].values.subarray(3 * WINDOW, 4 * WINDOW)]);
    const { ahead } = shadingOf(view, "cross", { side: "column", index: 5 });
    expect(ahead).toHaveLength(HORIZON);
    expect(ahead![2]).toBe(view.matrices[0].values[2 * WINDOW + 5]);
  });

  it("of earlier outputs are one step earlier: the first input is the start", () => {
    const self = viewOf(labels, { ...choice, kind: "decoder_self" });
    const { ahead, window } = shadingOf(self, "decoder_self", { side: "row", index: 4 });
    expect(window).toBeNull();
    const row = self.matrices[0].values.subarray(4 * HORIZON, 5 * HORIZON);
    expect([...ahead!.subarray(0, HORIZON - 1)]).toEqual([...row.subarray(1)]);
  });
});

describe("the text of a value", () => {
  it("leaves out the year, and midnight", () => {
    expect(shortTimes(["2023-12-31", "2024-01-01"])).toEqual(["12-31", "01-01"]);
    expect(shortTimes(["2023-12-31T00:00:00", "2024-01-01T00:00:00"])).toEqual(["12-31", "01-01"]);
    expect(shortTimes(["2023-12-31T06:00:00", "2023-12-31T12:00:00"])).toEqual(["12-31 06:00", "12-31 12:00"]);
    expect(shortTimes(["+1", "+2"])).toEqual(["+1", "+2"]);
  });

  it.each([
    [26.12345, "26.12"],
    [-0.5, "−0.5000"],
    [1013.4, "1013"],
    [0, "0"],
    [12345678, "1.23e+7"],
    [0.00001, "1.00e−5"],
    [null, "–"],
  ])("%s is %s", (value, text) => expect(formatValue(value)).toBe(text));

  it("tells of the likeliest labels, all where they are few", () => {
    expect(topLabels(labels.series!, 4)).toEqual([0, 1]);
    const many = { ...labels.series!, labels: ["a", "b", "c"], probabilities: [[0.1, 0.2, 0.7]] };
    expect(topLabels(many, 2)).toEqual([2, 1]);
  });

  it("finds from where to where an axis goes", () => {
    expect(rangeOf([3, null, 1])).toEqual([1, 3]);
    expect(rangeOf([2, 2])).toEqual([1, 3]);
    expect(rangeOf([null])).toEqual([0, 1]);
  });
});
