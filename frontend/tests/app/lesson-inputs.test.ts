import { describe, expect, it } from "vitest";

import { changedValues, assignReasons, decodeValue, decodeValues, encodeValues, numberProblem, parseNumber, textProblem, type Values } from "../../src/app/features/lessons/inputs";
import { nearestStop, sliderStops } from "../../src/app/features/lessons/slider-stops";
import type { Input } from "../../src/app/features/lessons/schemas";
import { hrefTo, parseRoute } from "../../src/app/routing/routes";

const INPUTS: Input[] = [
  { kind: "number", name: "n", label: "N", default: 20, low: 2, high: 60, step: 1 },
  { kind: "number", name: "eps", label: "ε", default: 1e-5, low: 1e-9, high: 10, step: 1e-5 },
  { kind: "grid", name: "x", label: "X", default: [[1, 0], [0, 1]], low: -100, high: 100 },
  { kind: "switch", name: "scale", label: "scale", default: true },
  { kind: "choice", name: "cell", label: "cell", default: "lstm", choices: [["lstm", "LSTM"], ["gru", "GRU"]] },
  { kind: "text", name: "sentence", label: "words", default: "나는 학생 이다", most: 20 },
];
const DEFAULTS = decodeValues(INPUTS, {});

/** Through the URL and back. */
function roundTrip(values: Values): Values {
  const hash = hrefTo("lessons", { lesson: "4", inputs: encodeValues(INPUTS, values, {}) });
  const route = parseRoute(hash);
  return route.page === "lessons" ? decodeValues(INPUTS, route.inputs) : {};
}

describe("a URL", () => {
  it.each<Values>([
    { n: 2 },
    { eps: 1e-9 },
    { x: [[-1.5, 1e-7], [100, 0]] },
    { scale: false },
    { cell: "gru" },
    { sentence: "50% & + = # 나는_?" },
    { n: 3, eps: 0.25, x: [[1, 2], [3, 4]], scale: false, cell: "gru", sentence: "a" },
  ])("brings the same screen back: %j", (change) => expect(roundTrip({ ...DEFAULTS, ...change })).toEqual({ ...DEFAULTS, ...change }));

  it("holds only changed values", () => {
    expect(hrefTo("lessons", { lesson: "4", inputs: encodeValues(INPUTS, DEFAULTS, {}) })).toBe("#/lessons/4");
    expect(hrefTo("lessons", { lesson: "4", inputs: encodeValues(INPUTS, { ...DEFAULTS, x: [[1, 0], [0, 2]], scale: false }, {}) })).toBe("#/lessons/4?x=1+0_0+2&scale=0");
    expect(changedValues(INPUTS, { ...DEFAULTS, x: [[1, 0], [0, 1]], n: 21 })).toEqual({ n: 21 });
  });

  it("keeps other parameters", () => expect(encodeValues(INPUTS, { ...DEFAULTS, n: 5 }, { "own.text": "나는", n: "7" })).toEqual({ n: "5", "own.text": "나는" }));

  it.each([
    ["n", "61"],
    ["n", "2.5"],
    ["n", ""],
    ["n", "0x10"],
    ["n", "Infinity"],
    ["x", "1 0"],
    ["x", "1 0_0"],
    ["x", "1 0_0 101"],
    ["x", "1 0_0 a"],
    ["scale", "yes"],
    ["cell", "rnn"],
    ["sentence", " "],
    ["sentence", "x".repeat(21)],
  ])("that is not valid means the default: %s=%s", (name, encoded) => {
    expect(decodeValue(INPUTS.find((input) => input.name === name)!, encoded)).toBeNull();
    expect(decodeValues(INPUTS, { [name]: encoded })).toEqual(DEFAULTS);
  });

  it("with unknown names, or names that every object has, is harmless", () => {
    expect(decodeValues(INPUTS, { toString: "1", nobody: "1" })).toEqual(DEFAULTS);
    expect(parseRoute("#/lessons/4?__proto__=1")).toMatchObject({ page: "lessons", lesson: "4" });
  });
});

describe("what is typed", () => {
  it.each([
    ["3", 3],
    [" -1.5 ", -1.5],
    ["−2", -2],
    [".5", 0.5],
    ["1e-5", 1e-5],
    ["", null],
    ["-", null],
    ["1,5", null],
    ["1e999", null],
  ])("%j is %j", (text, value) => expect(parseNumber(text)).toBe(value));

  it("has its problem named", () => {
    const bounds = { low: 2, high: 60, step: 1 };
    expect(numberProblem("5", bounds)).toBeNull();
    expect(numberProblem("x", bounds)).toEqual({ key: "problem.number" });
    expect(numberProblem("61", bounds)).toEqual({ key: "problem.range", parameters: { low: 2, high: 60 } });
    expect(numberProblem("2.5", bounds)).toEqual({ key: "problem.whole" });
    expect(numberProblem("2.5", { low: 0, high: 5, step: 0.1 })).toBeNull();
    expect(textProblem("", { most: 3 })).toEqual({ key: "problem.text", parameters: { most: 3 } });
    expect(textProblem("😀😀😀", { most: 3 })).toBeNull();
  });

  it("gets the server's reasons at its input", () => {
    const message = "lesson: 2 settings cannot be used   - n: 99 is outside 2 to 60   - x: 2 rows of 2 numbers are needed";
    expect(assignReasons(message.replaceAll("   - ", "\n  - "), INPUTS)).toEqual(assignReasons(message, INPUTS));
    expect(assignReasons(message, INPUTS)).toEqual({ byInput: { n: "99 is outside 2 to 60", x: "2 rows of 2 numbers are needed" }, rest: "" });
    expect(assignReasons("'고양이' is not in the vocabulary; use one of these", INPUTS)).toEqual({ byInput: {}, rest: "'고양이' is not in the vocabulary; use one of these" });
    expect(assignReasons("lesson: 1 setting cannot be used   - unknown input 'q': known are n", INPUTS).rest).toContain("unknown input 'q'");
  });
});

describe("a slider", () => {
  it("stops at every step of a plain range", () => {
    expect(sliderStops({ low: 0, high: 0.5, step: 0.1 })).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5]);
    expect(sliderStops({ low: -5, high: 5, step: 0.1 })).toHaveLength(101);
  });

  it.each([
    { low: 1, high: 1024, step: 1 },
    { low: 0, high: 10000, step: 1 },
    { low: 1e-9, high: 10, step: 1e-5 },
    { low: 0, high: 1, step: 1e-6 },
  ])("reaches every part of a wide one: %j", (range) => {
    const stops = sliderStops(range);
    expect([stops[0], stops.at(-1)]).toEqual([range.low, range.high]);
    expect(stops.every((stop, index) => !index || stop > stops[index - 1])).toBe(true);
    expect(stops.length).toBeLessThanOrEqual(200);
    // Most of the stops lie in the lower tenth.
    expect(stops.filter((stop) => stop < range.high / 10).length).toBeGreaterThan(stops.length / 2);
    if (Number.isInteger(range.step)) expect(stops.every(Number.isInteger)).toBe(true);
  });

  it("is at the nearest stop", () => {
    const stops = [0, 10, 20];
    expect([-1, 4, 6, 20, 99].map((value) => nearestStop(stops, value))).toEqual([0, 0, 1, 2, 2]);
  });
});
