import { describe, expect, it } from "vitest";

import { ApiError } from "../../src/app/api/errors";
import { digitsOf, isDrawn, placeAt, planChart } from "../../src/app/features/lessons/chart";
import { LessonsClient } from "../../src/app/features/lessons/client";
import { parseMarks, withoutMarks } from "../../src/app/features/lessons/inline-markup";
import { writeCell, writeExactly, writeNumber } from "../../src/app/features/lessons/numbers";
import { addRight, parseProgress, rightOf, standingOf } from "../../src/app/features/lessons/progress";
import { canCheck, endCheck, failCheck, FRESH, giveAnswer, startCheck } from "../../src/app/features/lessons/quiz";
import { LESSON_WORDS } from "../../src/i18n/lessons";

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
  ])("%d with %d digits", (value, digits, written) => expect(writeNumber(value, digits)).toBe(written));

  it("stand in tables beside labels and gaps", () => {
    expect([null, "<eos>", 0.5, 20, true].map((cell) => writeCell(cell, 2))).toEqual(["", "<eos>", "0.50", "20", "1"]);
  });

  it("are read to more digits where one points at them", () => {
    expect([1 / 3, 12345.5, 1.5e-7, 4].map(writeExactly)).toEqual(["0.33333333", "12,345.5", "1.5e-7", "4"]);
  });
});

describe("marks", () => {
  it("are cut as the server cuts them", () => {
    expect(parseMarks("**값(value)**이며 `x`")).toEqual([
      { style: "bold", text: "값(value)" },
      { style: "", text: "이며 " },
      { style: "code", text: "x" },
    ]);
  });

  it("that are none stay text, as all HTML does", () => {
    expect(parseMarks("2 ** 3, <b>no</b>")).toEqual([{ style: "", text: "2 ** 3, <b>no</b>" }]);
    expect(parseMarks("`**a**`")).toEqual([{ style: "code", text: "**a**" }]);
    expect(parseMarks("")).toEqual([]);
    expect(withoutMarks("the **mask** of `<pad>`")).toBe("the mask of <pad>");
  });
});

describe("an answer", () => {
  const asked = startCheck(giveAnswer(FRESH, "4"));

  it("is checked once there is one, and not twice at a time", () => {
    expect(canCheck(FRESH)).toBe(false);
    expect(canCheck(giveAnswer(FRESH, "  "))).toBe(false);
    expect(canCheck(giveAnswer(FRESH, "4"))).toBe(true);
    expect(canCheck(asked)).toBe(false);
  });

  it("is right, with the reason, or not yet", () => {
    expect(endCheck(asked, "4", { is_right: true, why: "2 + 2" })).toMatchObject({ state: "right", why: "2 + 2" });
    expect(endCheck(asked, "4", { is_right: false, why: null })).toMatchObject({ state: "wrong", why: null });
  });

  it("that was changed meanwhile is not judged by the old one", () => {
    const other = giveAnswer(asked, "5");
    expect(other.state).toBe("open");
    expect(endCheck(other, "4", { is_right: true, why: "2 + 2" })).toEqual(other);
    expect(failCheck(other, "4", new ApiError("offline", ""))).toEqual(other);
  });

  it("can be given again after a failure or a wrong one", () => {
    const failed = failCheck(asked, "4", new ApiError("offline", ""));
    expect(failed.state).toBe("failed");
    expect(canCheck(failed)).toBe(true);
    expect(startCheck(failed)).toEqual(asked);
    expect(giveAnswer(endCheck(asked, "4", { is_right: false, why: null }), "5")).toEqual({ ...FRESH, answer: "5" });
  });
});

describe("progress", () => {
  it("counts each question once; all of them are a lesson", () => {
    let progress = addRight({}, 4, 2, 3);
    progress = addRight(addRight(progress, 4, 2, 3), 4, 1, 3);
    expect(rightOf(progress, 4)).toEqual([1, 2]);
    expect([standingOf(progress, 4), standingOf(progress, 5)]).toEqual(["begun", "new"]);
    expect(standingOf(addRight(progress, 4, 3, 3), 4)).toBe("done");
  });

  it.each([null, "", "[1", "3", "null", '{"4": 1, "5": {"right": "x", "of": 3}}'])("that is damaged is none: %j", (json) => expect(parseProgress(json)).toEqual({}));

  it("is remembered", () => {
    const progress = addRight({}, 4, 2, 3);
    expect(parseProgress(JSON.stringify(progress))).toEqual(progress);
  });
});

describe("charts", () => {
  const series = (...values: (number | null)[]) => [{ label: "a", values }];

  it("place numbers by their size, or by its logarithm", () => {
    const chart = { form: "lines" as const, x: [1, 10, 100], series: series(1, 2, 3), log_x: false, log_y: false };
    const [a, b, c] = planChart(chart, 600).at;
    expect((b - a) / (c - a)).toBeCloseTo(9 / 99);
    const [d, e, f] = planChart({ ...chart, log_x: true }, 600).at;
    expect((e - d) / (f - d)).toBeCloseTo(0.5);
  });

  it("stand bars upon nothing, side by side", () => {
    const plan = planChart({ form: "bars", x: ["a", "b"], series: series(5, 10), log_x: false, log_y: false }, 600);
    expect(plan.y.domain()[0]).toBe(0);
    expect(plan.xTicks.map(({ label }) => label)).toEqual(["a", "b"]);
    expect(plan.at[1] - plan.at[0]).toBeCloseTo(plan.band);
  });

  it("mark counts at whole numbers only", () => {
    const ticks = (...values: number[]) => planChart({ form: "bars", x: ["a", "b"], series: series(...values), log_x: false, log_y: false }, 600).yTicks;
    expect(ticks(1, 3)).toEqual([0, 1, 2, 3]);
    expect(ticks(1, 2.5)).toContain(0.5);
  });

  it("leave out what a logarithm cannot show", () => {
    const plan = planChart({ form: "lines", x: [1, 2, 3], series: series(0, null, 1e-6), log_x: false, log_y: true }, 600);
    expect(plan.y.domain().every((end) => end > 0)).toBe(true);
    expect([0, null, 1e-6].map((value) => isDrawn(value, true))).toEqual([false, false, true]);
    expect([0, null].map((value) => isDrawn(value, false))).toEqual([true, false]);
  });

  it("read small values to three figures", () => {
    expect([digitsOf(series(5, 0.01)), digitsOf(series(0, null)), digitsOf(series())]).toEqual([4, 4, 4]);
    expect(writeNumber(0.00066722, digitsOf(series(0.00066722, 0.0006987)))).toBe("0.000667");
  });

  it("hold also a single place", () => expect(planChart({ form: "lines", x: [7], series: series(1), log_x: false, log_y: false }, 600).at.every(Number.isFinite)).toBe(true));

  it("read the nearest place", () => expect([-5, 14, 16, 99].map((pixel) => placeAt([10, 20, 30], pixel))).toEqual([0, 0, 1, 2]));
});

describe("the server's lessons", () => {
  const told = {
    number: 4,
    title: "T",
    summary: "S",
    paper: "3.2.1",
    code: [{ file: "src/a.py", line: 3 }],
    inputs: [{ kind: "number", name: "n", label: "N", default: 2, low: 0, high: 9, step: 1 }],
    blocks: [{ kind: "frames", title: "f", frames: [{ title: "1", blocks: [{ kind: "matrix", title: "m", values: [[1, 2]], rows: null, columns: ["a", "b"], digits: 3, shade: true }] }] }],
    questions: [{ prompt: "?", choices: [["a", "A"]] }],
  };

  function server(body: unknown, init: ResponseInit = {}) {
    const asked: { url: string; init: RequestInit }[] = [];
    const fetcher: typeof fetch = (url, given = {}) => {
      asked.push({ url: String(url instanceof Request ? url.url : url), init: given });
      return Promise.resolve(new Response(JSON.stringify(body), init));
    };
    return { asked, client: new LessonsClient({ base: "http://host/below/", key: () => "secret", fetcher }) };
  }

  const { signal } = new AbortController();
  const wish = { lang: "ko" as const, inputs: { n: 3 } };

  it("are asked for beside the page, with what was changed and the key", async () => {
    const { client, asked } = server(told);
    expect(await client.lesson(4, wish, signal)).toEqual(told);
    expect(asked[0].url).toBe("http://host/below/v1/lessons/4");
    expect(asked[0].init).toMatchObject({ method: "POST", signal });
    expect(JSON.parse(asked[0].init.body as string)).toEqual(wish);
    const headers = new Headers(asked[0].init.headers);
    expect([headers.get("Authorization"), headers.get("Content-Type")]).toEqual(["Bearer secret", "application/json"]);
  });

  it.each([
    ["a kind that nobody knows", { blocks: [{ kind: "html", words: "<b>" }] }, "blocks[0].kind"],
    ["labels that do not fit, deep inside", { blocks: [{ ...told.blocks[0], frames: [{ title: "1", blocks: [{ ...told.blocks[0].frames[0].blocks[0], columns: ["a"] }] }] }] }, "blocks[0].frames[0].blocks[0].columns"],
    ["an input without bounds", { inputs: [{ kind: "number", name: "n", label: "N", default: 2 }] }, "inputs[0].low"],
  ])("with %s are refused, and the part is named", async (_, change, part) => {
    const error: unknown = await server({ ...told, ...change }).client.lesson(4, wish, signal).catch((one: unknown) => one);
    expect(error).toMatchObject({ trouble: "shape" });
    expect((error as ApiError).said).toContain(part);
  });

  it("show no picture but a PNG that is in the answer itself", async () => {
    const part = (image: string) => ({ model: "m", blocks: [{ kind: "drawing", name: "n", caption: "c", focus: {}, image }] });
    const good = "data:image/png;base64,iVBORw0KGgo=";
    expect((await server(part(good)).client.own(4, { lang: "en" }, signal)).blocks[0]).toMatchObject({ image: good, missing: null });
    for (const image of ["https://elsewhere/x.png", "data:image/svg+xml;base64,AAAA", "javascript:alert(1)"])
      await expect(server(part(image)).client.own(4, { lang: "en" }, signal)).rejects.toMatchObject({ trouble: "shape" });
  });

  it("that refuse say why", async () => {
    const { client } = server({ error: "lesson: 1 setting cannot be used" }, { status: 400 });
    await expect(client.lesson(4, wish, signal)).rejects.toMatchObject({ trouble: "bad", said: "lesson: 1 setting cannot be used" });
  });
});

describe("the words", () => {
  it("take the same parameters in both languages", () => {
    const slots = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
    for (const key of Object.keys(LESSON_WORDS.en) as (keyof typeof LESSON_WORDS.en)[]) expect(slots(LESSON_WORDS.ko[key]), key).toEqual(slots(LESSON_WORDS.en[key]));
  });
});
