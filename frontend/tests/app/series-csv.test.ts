import { describe, expect, it } from "vitest";

import type { SeriesInfo } from "../../src/app/api/types";
import { readSeries, type SeriesRows, writeSeries } from "../../src/app/features/forecast/series-csv";
import { seriesOf } from "../../src/app/features/forecast/forecast-series";

const INFO: SeriesInfo = { columns: ["heat", "wind"], time: "day", window: 2, horizon: 2, targets: ["storm"], kind: "labels", labels: ["no", "yes"] };
const rowsOf = (text: string, info = INFO) => readSeries(text, info) as SeriesRows;

describe("a table", () => {
  it("is read by its names, whatever their order, and the last rows are taken", () => {
    expect(readSeries("wind,storm,DAY, Heat \n1,no,2023-01-01,20\n,yes,2023-01-02,21.5\n3e0,no,2023-01-03,nan\n", INFO)).toEqual({
      times: ["2023-01-02", "2023-01-03"],
      columns: { heat: [21.5, null], wind: [null, 3] },
      numRows: 2,
      numLeft: 1,
      numMissing: 2,
    });
  });

  it("may be parted by tabs or semicolons, have quotes, a mark of its coding and other line ends", () => {
    const wanted = { heat: [1, 2], wind: [3, 4] };
    expect(rowsOf("\ufeffheat\twind\r\n1\t3\r\n2\t4\r\n").columns).toEqual(wanted);
    expect(rowsOf('"heat";"wind"\n"1";3\n2;"4"').columns).toEqual(wanted);
    expect(rowsOf('day,heat,wind\n"a,""b""",1,3\nc,2,4').times).toEqual(['a,"b"', "c"]);
  });

  it("without names has the columns in order, the time first if there is one", () => {
    expect(rowsOf("1,3\n2,4")).toMatchObject({ times: null, columns: { heat: [1, 2], wind: [3, 4] } });
    expect(rowsOf("2023-01-01,1,3\n2023-01-02,2,4")).toMatchObject({ times: ["2023-01-01", "2023-01-02"], columns: { heat: [1, 2] } });
  });

  it.each([
    ["", { trouble: "empty" }],
    [" \n\n", { trouble: "empty" }],
    ["heat\n1\n2", { trouble: "columns", names: "wind" }],
    ["a,b,c\n1,2,3", { trouble: "columns", names: "heat, wind" }],
    ["heat,wind,heat\n1,2,3\n1,2,3", { trouble: "twice", names: "heat" }],
    ["heat,wind\n1,2", { trouble: "short", found: 1, wanted: 2 }],
    ["heat,wind\n1,2\n\n3", { trouble: "cells", line: 4, found: 1, wanted: 2 }],
    ["heat,wind\n1,2\n3,warm", { trouble: "number", line: 3, name: "wind", said: "warm" }],
    ["heat,wind\n1,2\n3,Infinity", { trouble: "number", line: 3, name: "wind", said: "Infinity" }],
    ["heat,wind\n1,2\n3,1e999", { trouble: "number", line: 3, name: "wind", said: "1e999" }],
    ["heat,wind\n1,2\n3,0x10", { trouble: "number", line: 3, name: "wind", said: "0x10" }],
  ])("%j is refused: %j", (text, trouble) => expect(readSeries(text, INFO)).toEqual(trouble));

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

  it("stands behind its rows", () => {
    const steps = [
      { time: "+1", label: "no", probabilities: { no: 0.75, yes: 0.25 }, values: null },
      { time: "+2", label: "yes", probabilities: { yes: 0.6, no: 0.4 }, values: null },
    ];
    const series = seriesOf(rows, INFO, { model: "m", seconds: 0.1, steps });
    expect(series).toMatchObject({ times: ["-2", "-1"], values: [[1, 3], [2, 4]], tgt_times: ["+1", "+2"], numbers: null });
    expect(series.probabilities).toEqual([[0.75, 0.25], [0.4, 0.6]]);
  });

  it("of numbers stands by target", () => {
    const info: SeriesInfo = { ...INFO, kind: "numbers", targets: ["heat"], labels: null };
    const steps = [5, 6].map((value, place) => ({ time: `+${place + 1}`, label: null, probabilities: null, values: { heat: value } }));
    expect(seriesOf(rows, info, { model: "m", seconds: null, steps })).toMatchObject({ numbers: [[5, 6]], probabilities: null });
  });

  it("that is not there yet leaves room for its steps", () => {
    expect(seriesOf(rows, INFO, null)).toMatchObject({ tgt_times: ["+1", "+2"], probabilities: null, numbers: null });
  });
});
