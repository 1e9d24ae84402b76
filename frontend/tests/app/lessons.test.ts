import { describe, expect, it } from "vitest";

import { Client } from "../../src/app/api/client";
import { ApiError } from "../../src/app/api/errors";
import { LessonsClient } from "../../src/app/features/lessons/client";
import { layoutStack } from "../../src/app/features/lessons/figure/stack-layout";
import { fitFactor } from "../../src/app/features/lessons/fit-width";
import { parseInlineMarkup, stripMarkup } from "../../src/app/features/lessons/inline-markup";
import { spellProduct } from "../../src/app/features/lessons/matrix-product";
import { digitsOf, formatBriefly, formatCell, formatLessonNumber, formatPrecisely } from "../../src/app/features/lessons/numbers";
import { addCorrect, correctOf, parseProgress, statusOf } from "../../src/app/features/lessons/progress";
import { canCheck, endCheck, failCheck, NEW_QUIZ, setAnswer, startCheck } from "../../src/app/features/lessons/quiz";
import { axisTicks, isDrawable, nearestIndex, wholeTicks, xAxis, yScale } from "../../src/inspector/display/axes";

describe("numbers", () => {
  // Every line is what attendo.lessons.numbers.write_number gives.
  it.each([
    [4, 3, "4"],
    [0.13613, 3, "0.136"],
    [0.0000761, 3, "7.61e-05"],
    [0.125, 2, "0.12"],
    [0.0625, 3, "0.062"],
    [0.375, 2, "0.38"],
    [2.5, 0, "2"],
    [0.03125, 1, "3.12e-02"],
    [0.09375, 1, "9.38e-02"],
    [-0.5, 3, "-0.500"],
    [1234567.891, 2, "1,234,567.89"],
    [63082496, 3, "63,082,496"],
    [-0, 3, "-0"],
    [1e15, 3, "1,000,000,000,000,000.000"],
    [1e22, 2, "10,000,000,000,000,000,000,000.00"],
    [0.001, 3, "0.001"],
    [0.0009999, 3, "1.00e-03"],
    [0.9999, 3, "1.000"],
    [999.9996, 3, "1,000.000"],
    [-1234.5, 1, "-1,234.5"],
    [1e-300, 3, "1.00e-300"],
    [1e-5, 5, "0.00001"],
    [0.5, 0, "5.00e-01"],
    [12345.6785, 3, "12,345.678"],
    [9.996e-5, 3, "1.00e-04"],
    [5e-324, 4, "4.94e-324"],
    [-7.6e-5, 4, "-7.60e-05"],
  ])("%d with %d digits", (value, digits, written) => expect(formatLessonNumber(value, digits)).toBe(written));

  it("are in tables with labels and gaps", () => {
    expect([null, "<eos>", 0.5, 20, true].map((cell) => formatCell(cell, 2))).toEqual(["", "<eos>", "0.50", "20", "1"]);
  });

  it("are read to more digits where one points at them", () => {
    expect([1 / 3, 12345.5, 1.5e-7, 4].map(formatPrecisely)).toEqual(["0.33333333", "12,345.5", "1.5e-7", "4"]);
  });
});

describe("marks", () => {
  it("are cut as the server cuts them", () => {
    expect(parseInlineMarkup("**값(value)**이며 `x`")).toEqual([
      { style: "bold", text: "값(value)" },
      { style: "", text: "이며 " },
      { style: "code", text: "x" },
    ]);
  });

  it("that are none stay text, as all HTML does", () => {
    expect(parseInlineMarkup("2 ** 3, <b>no</b>")).toEqual([{ style: "", text: "2 ** 3, <b>no</b>" }]);
    expect(parseInlineMarkup("`**a**`")).toEqual([{ style: "code", text: "**a**" }]);
    expect(parseInlineMarkup("")).toEqual([]);
    expect(stripMarkup("the **mask** of `<pad>`")).toBe("the mask of <pad>");
  });
});

describe("a number in a narrow cell", () => {
  it.each([
    [0.000557, 1, "0.0"],
    [-0.0004, 2, "0.00"],
    [-0.26, 1, "-0.3"],
    [1, 2, "1"],
  ])("%d with %d digits has no exponent", (value, digits, written) => expect(formatBriefly(value, digits)).toBe(written));
});

describe("an answer", () => {
  const asked = startCheck(setAnswer(NEW_QUIZ, "4"));

  it("is checked once there is one, and not twice at a time", () => {
    expect(canCheck(NEW_QUIZ)).toBe(false);
    expect(canCheck(setAnswer(NEW_QUIZ, "  "))).toBe(false);
    expect(canCheck(setAnswer(NEW_QUIZ, "4"))).toBe(true);
    expect(canCheck(asked)).toBe(false);
  });

  it("is right, with the reason, or not yet", () => {
    expect(endCheck(asked, "4", { is_right: true, why: "2 + 2", hint: null, hints: [], answer: "4" })).toMatchObject({ state: "right", why: "2 + 2" });
    expect(endCheck(asked, "4", { is_right: false, why: null, hint: "lower", hints: ["vague", "clear"], answer: null })).toMatchObject({ state: "wrong", why: null, hint: "lower", solution: null });
  });

  it("earns one more hint each time it is wrong", () => {
    const wrong = { is_right: false, why: null, hint: null, hints: ["vague", "clear"], answer: null };
    let quiz = asked;
    for (const shown of [["vague"], ["vague", "clear"], ["vague", "clear"]]) {
      quiz = endCheck(quiz, "4", wrong);
      expect(quiz.hints).toEqual(shown);
      quiz = startCheck(setAnswer(setAnswer(quiz, "5"), "4"));
    }
  });

  it("that was changed meanwhile is not judged by the old one", () => {
    const other = setAnswer(asked, "5");
    expect(other.state).toBe("open");
    expect(endCheck(other, "4", { is_right: true, why: "2 + 2", hint: null, hints: [], answer: "4" })).toEqual(other);
    expect(failCheck(other, "4", new ApiError("offline", ""))).toEqual(other);
  });

  it("can be given again after a failure or a wrong one", () => {
    const failed = failCheck(asked, "4", new ApiError("offline", ""));
    expect(failed.state).toBe("failed");
    expect(canCheck(failed)).toBe(true);
    expect(startCheck(failed)).toEqual(asked);
    expect(setAnswer(endCheck(asked, "4", { is_right: false, why: null, hint: null, hints: [], answer: null }), "5")).toEqual({ ...NEW_QUIZ, answer: "5" });
  });
});

describe("progress", () => {
  it("counts each question once; all of them are a lesson", () => {
    let progress = addCorrect({}, 4, 2, 3);
    progress = addCorrect(addCorrect(progress, 4, 2, 3), 4, 1, 3);
    expect(correctOf(progress, 4)).toEqual([1, 2]);
    expect([statusOf(progress, 4), statusOf(progress, 5)]).toEqual(["started", "new"]);
    expect(statusOf(addCorrect(progress, 4, 3, 3), 4)).toBe("done");
  });

  it.each([null, "", "[1", "3", "null", '{"4": 1, "5": {"right": "x", "of": 3}}'])("that is damaged is none: %j", (json) => expect(parseProgress(json)).toEqual({}));

  it("is remembered", () => {
    const progress = addCorrect({}, 4, 2, 3);
    expect(parseProgress(JSON.stringify(progress))).toEqual(progress);
  });
});

describe("charts", () => {
  const series = (...values: (number | null)[]) => [{ label: "a", values }];

  const range: [number, number] = [0, 600];

  it("position numbers by their size, or by its logarithm", () => {
    const [a, b, c] = [1, 10, 100].map(xAxis([1, 10, 100], range).pixelOf);
    expect((b - a) / (c - a)).toBeCloseTo(9 / 99);
    const [d, e, f] = [1, 10, 100].map(xAxis([1, 10, 100], range, { isLog: true }).pixelOf);
    expect((e - d) / (f - d)).toBeCloseTo(0.5);
  });

  it("position names side by side, and leave out names that would overlap", () => {
    const axis = xAxis([0, 1], range, { names: ["a", "b"] });
    expect(axis.ticks.map(({ label }) => label)).toEqual(["a", "b"]);
    expect(axis.pixelOf(1) - axis.pixelOf(0)).toBeCloseTo(axis.band);
    const names = Array.from({ length: 60 }, (_, index) => `name ${index}`);
    expect(xAxis(names.map((_, index) => index), range, { names }).ticks.length).toBeLessThan(10);
  });

  it("have ticks at integers only for counts", () => {
    const ticks = (...values: number[]) => wholeTicks(axisTicks(yScale([values.map((y, x) => ({ x, y }))], range, { isFromZero: true }), 5), values);
    expect(ticks(1, 3)).toEqual([0, 1, 2, 3]);
    expect(ticks(1, 2.5)).toContain(0.5);
  });

  it("leave out what a logarithm cannot show", () => {
    const values = [0, null, 1e-6];
    const y = yScale([values.map((value, x) => ({ x, y: value }))], range, { isLog: true });
    expect(y.domain().every((end) => end > 0)).toBe(true);
    expect(values.map((value) => isDrawable(value, true))).toEqual([false, false, true]);
    expect([0, null].map((value) => isDrawable(value, false))).toEqual([true, false]);
  });

  it("read small values to three figures", () => {
    expect([digitsOf(series(5, 0.01)), digitsOf(series(0, null)), digitsOf(series())]).toEqual([4, 4, 4]);
    expect(formatLessonNumber(0.00066722, digitsOf(series(0.00066722, 0.0006987)))).toBe("0.000667");
  });

  it("can have a single value", () => expect(Number.isFinite(xAxis([7], range).pixelOf(7))).toBe(true));

  it("find the nearest value", () => expect([-5, 14, 16, 99].map((pixel) => nearestIndex([10, 20, 30], pixel))).toEqual([0, 0, 1, 2]));
});

describe("cells of a product", () => {
  it("are spelled out term by term", () => {
    const product = { left: [[1, -1]], right: [[2, 0.5], [3, -0.25]], plus: [4, -1] };
    expect(spellProduct(product, 0, 0, 3)).toBe("1 · 2 + (-1) · 3 + 4 = 3");
    expect(spellProduct({ ...product, plus: null }, 0, 1, 3)).toBe("1 · 0.500 + (-1) · (-0.250) = 0.750");
  });

  it("of many terms show the largest", () => {
    const oneHot = { left: [Array.from({ length: 20 }, (_, index) => Number(index === 7))], right: Array.from({ length: 20 }, (_, index) => [index]), plus: null };
    expect(spellProduct(oneHot, 0, 0, 3)).toBe("1 · 7 = 7");
    const long = { left: [Array.from({ length: 20 }, (_, index) => index)], right: Array.from({ length: 20 }, () => [1]), plus: null };
    const spelled = spellProduct(long, 0, 0, 3);
    expect(spelled).toMatch(/^12 · 1 \+ .* \+ 19 · 1 \+ … = 190$/);
    expect(spelled.split(" + ")).toHaveLength(9);
    const equal = spellProduct({ ...long, left: [Array(20).fill(2) as number[]] }, 0, 0, 3);
    expect(equal.split(" + ")).toHaveLength(9);
    expect(equal).toMatch(/ = 40$/);
  });
});

describe("the server's lessons", () => {
  const lesson = {
    number: 4,
    title: "T",
    summary: "S",
    paper: "3.2.1",
    code: [{ file: "src/a.py", line: 3 }],
    inputs: [{ kind: "number", name: "n", label: "N", default: 2, low: 0, high: 9, step: 1 }],
    blocks: [{ kind: "steps", title: "f", frames: [{ title: "1", blocks: [{ kind: "matrix", title: "m", values: [[1, 2]], rows: null, columns: ["a", "b"], digits: 3, shade: true, product: { left: [[1]], right: [[1, 2]], plus: null } }] }] }],
    questions: [{ prompt: "?", choices: [["a", "A"]] }],
  };

  function server(body: unknown, init: ResponseInit = {}) {
    const asked: { url: string; init: RequestInit }[] = [];
    const fetcher: typeof fetch = (url, given = {}) => {
      asked.push({ url: String(url instanceof Request ? url.url : url), init: given });
      return Promise.resolve(new Response(JSON.stringify(body), init));
    };
    return { asked, client: new LessonsClient(new Client({ base: "http://host/below/", key: () => "secret", fetcher })) };
  }

  const { signal } = new AbortController();
  const request = { lang: "ko" as const, inputs: { n: 3 } };

  it("are asked for next to the page, with what was changed and the key", async () => {
    const { client, asked } = server(lesson);
    expect(await client.lesson(4, request, signal)).toEqual(lesson);
    expect(asked[0].url).toBe("http://host/below/v1/lessons/4");
    expect(asked[0].init).toMatchObject({ method: "POST", signal });
    expect(JSON.parse(asked[0].init.body as string)).toEqual(request);
    const headers = new Headers(asked[0].init.headers);
    expect([headers.get("Authorization"), headers.get("Content-Type")]).toEqual(["Bearer secret", "application/json"]);
  });

  it.each([
    ["a kind that nobody knows", { blocks: [{ kind: "html", words: "<b>" }] }, "blocks[0].kind"],
    ["labels that do not fit, deep inside", { blocks: [{ ...lesson.blocks[0], frames: [{ title: "1", blocks: [{ ...lesson.blocks[0].frames[0].blocks[0], columns: ["a"] }] }] }] }, "blocks[0].frames[0].blocks[0].columns"],
    ["a product that does not fit", { blocks: [{ ...lesson.blocks[0].frames[0].blocks[0], product: { left: [[1, 2]], right: [[1, 2]], plus: null } }] }, "blocks[0].product"],
    ["an input without bounds", { inputs: [{ kind: "number", name: "n", label: "N", default: 2 }] }, "inputs[0].low"],
  ])("with %s are refused, and the part is named", async (_, change, part) => {
    const error: unknown = await server({ ...lesson, ...change }).client.lesson(4, request, signal).catch((one: unknown) => one);
    expect(error).toMatchObject({ kind: "shape" });
    expect((error as ApiError).detail).toContain(part);
  });

  it("have figures as numbers, which must fit", async () => {
    const part = (panel: object) => ({ model: "m", record: null, blocks: [{ kind: "model_plot", name: "n", caption: "c", focus: {}, figure: { title: "t", about: "", rows: [[panel]] } }] });
    // 1, NaN, -2 and 0.5 in half precision
    const heatmap = { kind: "heatmap", title: "h", rows: ["a", "b"], columns: null, row_label: "", column_label: "", num_rows: 2, num_columns: 2, limit: 2, is_signed: true, digits: null, encoding: "f16", data: btoa("\x00\x3c\x00\x7e\x00\xc0\x00\x38") };
    const { blocks } = await server(part(heatmap)).client.modelPart(4, { lang: "en" }, signal);
    expect(blocks[0]).toMatchObject({ figure: { rows: [[{ values: new Float32Array([1, NaN, -2, 0.5]) }]] } });
    for (const panel of [{ ...heatmap, num_rows: 3, rows: null }, { ...heatmap, rows: ["a"] }, { kind: "image", url: "https://elsewhere/x.png" }])
      await expect(server(part(panel)).client.modelPart(4, { lang: "en" }, signal)).rejects.toMatchObject({ kind: "shape" });
  });

  it("that refuse say why", async () => {
    const { client } = server({ error: "lesson: 1 setting cannot be used" }, { status: 400 });
    await expect(client.lesson(4, request, signal)).rejects.toMatchObject({ kind: "bad", detail: "lesson: 1 setting cannot be used" });
  });
});

describe("the stack", () => {
  const boxes = (...names: [string, string, boolean][]) => names.map(([name, shape, repeated]) => ({ name, shape, repeated, skipped: Number(name === "norm") }));
  const encoder = { boxes: boxes(["ids", "(5,)", false], ["embedding", "(5, 8)", false], ["self", "(2, 5, 5)", true], ["norm", "(5, 8)", true], ["ff", "(5, 16)", true]), num_layers: 2, text: "a" };
  const decoder = { boxes: boxes(["ids", "(4,)", false], ["embedding", "(4, 8)", false], ["masked", "(2, 4, 4)", true], ["cross", "(2, 4, 5)", true], ["linear", "(4, 99)", false]), num_layers: 3, text: "b" };
  it("knows what each stage is", () => {
    const layout = layoutStack({ encoder, decoder, cross: "cross", memory: "m" });
    expect(layout.boxes.map(({ part }) => part)).toEqual(["other", "input", "attention", "other", "feed", "other", "input", "attention", "cross", "output"]);
  });
  it.each([false, true])("goes from the bottom up, inside its picture, with a frame around the repeated stages (narrow: %s)", (isNarrow) => {
    const { boxes, frames, width: whole, height: most } = layoutStack({ encoder, decoder, cross: "cross", memory: "m" }, isNarrow);
    const ys = boxes.slice(0, 5).map(({ y }) => y);
    expect(ys).toEqual([...ys].sort((a, b) => b - a));
    for (const { x, y, width, height } of boxes) {
      expect(Math.min(x, y)).toBeGreaterThan(0);
      expect(x + width).toBeLessThanOrEqual(whole);
      expect(y + height).toBeLessThanOrEqual(most);
    }
    expect(frames.map(({ count }) => count)).toEqual([2, 3]);
    expect(frames[0].y).toBeLessThan(boxes[4].y);
  });
  it("has a residual connection around the stage before each sum", () => {
    const { boxes, residuals, frames } = layoutStack({ encoder, decoder, cross: "cross", memory: "m" });
    expect(residuals).toHaveLength(1);
    const [from, side, to] = [/^M\S+ ([\d.]+)H/, /H(\d+)V/, /V([\d.]+)H/].map((pattern) => Number(pattern.exec(residuals[0])?.[1]));
    const [around, sum] = [boxes[2], boxes[3]];
    expect(from).toBeGreaterThan(around.y + around.height);
    expect(to).toBe(sum.y + sum.height / 2);
    expect(side).toBeGreaterThan(around.x + around.width);
    expect(side).toBeLessThan(frames[0].x + frames[0].width);
  });
  it("puts the decoder above the encoder where there is no space next to it", () => {
    const { boxes, width: whole } = layoutStack({ encoder, decoder, cross: "cross", memory: "m" }, true);
    expect(whole).toBeLessThan(340);
    expect(Math.max(...boxes.slice(5).map(({ y, height }) => y + height))).toBeLessThan(Math.min(...boxes.slice(0, 5).map(({ y }) => y)));
  });
});

describe("a formula or table that is too wide", () => {
  it.each([
    [300, 320, 0.66, 1],
    [400, 320, 0.66, 0.8],
    [1000, 320, 0.66, 0.66],
    [400, 0, 0.66, 1],
  ])("%d in %d shrinks to no less than %d", (content, width, smallest, factor) => expect(fitFactor(content, width, smallest)).toBe(factor));
});
