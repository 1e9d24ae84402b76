import { describe, expect, it } from "vitest";

import type { SeriesInfo } from "../../src/app/api/schemas";
import { forecastSeries } from "../../src/app/features/forecast/forecast-series";
import { readSeries, type SeriesRows, writeSeries } from "../../src/app/features/forecast/series-csv";

const INFO: SeriesInfo = { columns: ["heat", "wind"], time: "day", window: 2, horizon: 2, targets: ["storm"], kind: "labels", labels: ["no", "yes"] };
const rowsOf = (text: string, info = INFO) => readSeries(text, info) as SeriesRows;

describe("a table", () => {
  it("is read by its column names in any order, and the last rows are taken", () => {
    expect(readSeries("wind,storm,DAY, Heat \n1,no,2023-01-01,20\n,yes,2023-01-02,21.5\n3e0,no,2023-01-03,nan\n", INFO)).toEqual({
      times: ["2023-01-02", "2023-01-03"],
      columns: { heat: [21.5, null], wind: [null, 3] },
      numRows: 2,
      numSkipped: 1,
      numMissing: 2,
    });
  });

  it("may have tabs or semicolons, quotes, a byte order mark and any line ends", () => {
    const expected = { heat: [1, 2], wind: [3, 4] };
    expect(rowsOf("\ufeffheat\twind\r\n1\t3\r\n2\t4\r\n").columns).toEqual(expected);
    expect(rowsOf('"heat";"wind"\n"1";3\n2;"4"').columns).toEqual(expected);
    expect(rowsOf('day,heat,wind\n"a,""b""",1,3\nc,2,4').times).toEqual(['a,"b"', "c"]);
  });

  it("bug: a line break inside quotes does not end a row", () => {
    const text = 'day,"he\nat",heat,wind\n"Mon\r\nday",x,1,3\n\n"Tues ""2""\n\nday",y,2,4\n';
    expect(rowsOf(text)).toEqual({ times: ["Mon\nday", 'Tues "2"\n\nday'], columns: { heat: [1, 2], wind: [3, 4] }, numRows: 2, numSkipped: 0, numMissing: 0 });
    expect(rowsOf(writeSeries(rowsOf(text), INFO))).toEqual(rowsOf(text));
    // The line of a problem counts the lines inside of quotes as well.
    expect(readSeries('day,heat,wind\n"a\nb",1,2\nc,3,warm', INFO)).toEqual({ problem: "number", line: 4, name: "wind", text: "warm" });
  });

  it("reads a quote that is not closed, or not at the start of a cell, as an ordinary character", () => {
    expect(rowsOf('day,heat,wind\n5" pipe,1,3\n"c,2,4').times).toEqual(['5" pipe', '"c']);
  });

  it("without names has the columns in order, the time first if there is one", () => {
    expect(rowsOf("1,3\n2,4")).toMatchObject({ times: null, columns: { heat: [1, 2], wind: [3, 4] } });
    expect(rowsOf("2023-01-01,1,3\n2023-01-02,2,4")).toMatchObject({ times: ["2023-01-01", "2023-01-02"], columns: { heat: [1, 2] } });
  });

  it.each([
    ["", { problem: "empty" }],
    [" \n\n", { problem: "empty" }],
    ["heat\n1\n2", { problem: "columns", names: "wind" }],
    ["a,b,c\n1,2,3", { problem: "columns", names: "heat, wind" }],
    ["heat,wind,heat\n1,2,3\n1,2,3", { problem: "duplicate", names: "heat" }],
    ["heat,wind\n1,2", { problem: "short", found: 1, expected: 2 }],
    ["heat,wind\n1,2\n\n3", { problem: "cells", line: 4, found: 1, expected: 2 }],
    ["heat,wind\n1,2\n3,warm", { problem: "number", line: 3, name: "wind", text: "warm" }],
    ["heat,wind\n1,2\n3,Infinity", { problem: "number", line: 3, name: "wind", text: "Infinity" }],
    ["heat,wind\n1,2\n3,1e999", { problem: "number", line: 3, name: "wind", text: "1e999" }],
    ["heat,wind\n1,2\n3,0x10", { problem: "number", line: 3, name: "wind", text: "0x10" }],
  ])("%j is refused: %j", (text, problem) => expect(readSeries(text, INFO)).toEqual(problem));

  it("reads the same after it was written", () => {
    const rows = rowsOf('day,heat,wind\n"a,b",1,\nc,-2.5,4');
    expect(writeSeries(rows, INFO)).toBe('day,heat,wind\n"a,b",1,\nc,-2.5,4');
    expect(rowsOf(writeSeries(rows, INFO))).toEqual(rows);
    const timeless = rowsOf("heat,wind\n1,2\n3,4");
    expect(writeSeries(timeless, INFO)).toBe("heat,wind\n1,2\n3,4");
  });
});

describe("a forecast", () => {
  const rows = rowsOf("heat,wind\n1,2\n3,4");

  it("comes after its rows", () => {
    const steps = [
      { time: "+1", label: "no", probabilities: { no: 0.75, yes: 0.25 }, values: null },
      { time: "+2", label: "yes", probabilities: { yes: 0.6, no: 0.4 }, values: null },
    ];
    const series = forecastSeries(rows, INFO, { model: "m", seconds: 0.1, steps });
    expect(series).toMatchObject({ times: ["-2", "-1"], values: [[1, 3], [2, 4]], tgt_times: ["+1", "+2"], numbers: null });
    expect(series.probabilities).toEqual([[0.75, 0.25], [0.4, 0.6]]);
  });

  it("of numbers is grouped by target", () => {
    const info: SeriesInfo = { ...INFO, kind: "numbers", targets: ["heat"], labels: null };
    const steps = [5, 6].map((value, index) => ({ time: `+${index + 1}`, label: null, probabilities: null, values: { heat: value } }));
    expect(forecastSeries(rows, info, { model: "m", seconds: null, steps })).toMatchObject({ numbers: [[5, 6]], probabilities: null });
  });

  it("that is not there yet leaves space for its steps", () => {
    expect(forecastSeries(rows, INFO, null)).toMatchObject({ tgt_times: ["+1", "+2"], probabilities: null, numbers: null });
  });
});
