import type { Request } from "@playwright/test";

import { makeRecord } from "../tests/fixtures/make-record";
import { expect, type Handler, model, test } from "./app";
import { expectNothingSerious, expectToFit } from "./fit";

type Lang = "en" | "ko";
interface LessonWish {
  lang: Lang;
  inputs: { n?: number; x?: number[][]; scale?: boolean; cell?: string };
}

/** 1, -2 and 0.5 in half precision, the weights of one word, and arcs of the record. */
const FIGURE = {
  title: "the figure",
  about: "layer 1",
  rows: [
    [
      { kind: "heatmap", title: "vector", rows: null, columns: null, row_label: "", column_label: "", num_rows: 1, num_columns: 3, limit: 2, is_signed: true, digits: null, encoding: "f16", data: "ADwAwAA4" },
      { kind: "operator", text: "=" },
      { kind: "bars", title: "weights of one word", names: ["a", "b"], values: [0.75, null], digits: 2, marked: 0 },
    ],
    [{ kind: "record", view: "arcs", attention: "cross", layer: 0, heads: [0], row: 1 }],
  ],
};
const WORDS = {
  en: { titles: ["From RNN to attention", "Words to vectors", "Positions"], sum: "the sum", right: "Correct.", why: "two and two", wrong: "Not correct", next: "Next step", previous: "Previous step", at: "2 of 3", check: "Check", reset: "Reset", numDone: "1 of 3 lessons done", range: "Enter a number from 1 to 10.", rows: "row 2", show: "Show", sentence: "Sentence", all: "All lessons" },
  ko: { titles: ["RNN에서 어텐션까지", "단어를 벡터로", "위치"], sum: "모두 더한 값", right: "맞습니다.", why: "둘 더하기 둘", wrong: "정답이 아닙니다", next: "다음 단계", previous: "이전 단계", at: "3단계 중 2단계", check: "확인", reset: "초기화", numDone: "강의 3편 중 1편을 마쳤습니다", range: "1부터 10까지 넣을 수 있습니다.", rows: "2행", show: "보기", sentence: "문장", all: "모든 강의" },
} as const;

/** A lesson that really computes: n times the sum of X, halved where it is scaled. */
function lesson({ lang, inputs: { n = 2, x = [[1, 2], [3, -4]], scale = true, cell = "lstm" } }: LessonWish) {
  const words = WORDS[lang];
  const sum = (n * x.flat().reduce((a, b) => a + b, 0)) / (scale ? 4 : 1);
  return {
    number: 2,
    title: words.titles[1],
    summary: "**S** <b>no tag</b>",
    paper: "3.2 and 3.4",
    code: [{ file: "src/attendo/model/attention.py", line: 48 }],
    inputs: [
      { kind: "number", name: "n", label: "n, times", default: 2, low: 1, high: 10, step: 1 },
      { kind: "grid", name: "x", label: "X", default: [[1, 2], [3, -4]], low: -100, high: 100 },
      { kind: "switch", name: "scale", label: "divide by 4", default: true },
      { kind: "choice", name: "cell", label: "cell", default: "lstm", choices: [["lstm", "LSTM"], ["gru", "GRU"]] },
    ],
    blocks: [
      { kind: "paragraph", words: `**${words.sum}**: \`${sum}\`` },
      { kind: "formula", text: "y = n · ∑ x     z = y / 4" },
      { kind: "matrix", title: "M", values: x.map((row) => row.map((one) => one / 3)), rows: null, columns: ["a", "b"], digits: 3, shade: true, product: { left: x, right: x[0].map((_, row) => x[0].map((_, column) => Number(row === column) / 3)), plus: null } },
      { kind: "table", title: "", headers: ["", cell], rows: [["sum", sum], ["none", null]], digits: 3 },
      { kind: "chart", form: "lines", title: "lines", x: [1, 10, 100], series: [{ label: "up", values: [0.001, 0.1, n] }, { label: "down", values: [5, null, 0.01] }], x_label: "d", y_label: "size", log_x: true, log_y: true },
      { kind: "chart", form: "bars", title: "bars", x: ["a", "b"], series: [{ label: "one", values: [0.5, -0.25] }], x_label: "", y_label: "", log_x: false, log_y: false },
      { kind: "steps", title: "film", frames: [1, 2, 3].map((step) => ({ title: `frame ${step}`, blocks: [{ kind: "paragraph", words: `picture ${step * n}` }] })) },
      { kind: "note", words: "careful" },
    ],
    questions: [
      { prompt: "2 + 2?", choices: [] },
      { prompt: "which `x`?", choices: [["x1", "the first"], ["x2", "the second"]] },
    ],
  };
}

const TERMS = [
  { name: "key", other: "키", lesson: 2, meaning: "found by it" },
  { name: "mask", other: "마스크", lesson: 3, meaning: "hides" },
];

const langOf = (request: Request) => (request.postDataJSON() as LessonWish).lang;

const SERVER: Record<string, Handler> = {
  "GET /v1/lessons": (request) => {
    const lang = new URL(request.url()).searchParams.get("lang") as Lang;
    return { body: { lessons: WORDS[lang].titles.map((title, index) => ({ number: index + 1, title, summary: "S" })), terms: TERMS } };
  },
  "POST /v1/lessons/2": (request) => ({ body: lesson(request.postDataJSON() as LessonWish) }),
  "POST /v1/lessons/2/answer": (request) => {
    const { question, answer } = request.postDataJSON() as { question: number; answer: string };
    const isRight = answer === ["4", "x2"][question - 1];
    return { body: { is_right: isRight, why: isRight ? WORDS[langOf(request)].why : null, hints: isRight ? [] : ["vague", "clear"] } };
  },
  "POST /v1/lessons/2/own": (request) => {
    const { text = "the usual", model: name = "" } = request.postDataJSON() as { text?: string; model?: string };
    return { body: { model: name, blocks: [{ kind: "paragraph", words: `own: ${text}` }, { kind: "model_plot", name: "d", caption: "a **picture**", focus: {}, figure: FIGURE }], record: makeRecord() } };
  },
};

for (const [locale, lang] of [["en-US", "en"], ["ko-KR", "ko"]] as const) {
  const words = WORDS[lang];
  test.describe(`in ${locale}`, () => {
    test.use({ locale });

    test("a lesson follows what is changed, and the address with it", async ({ page, open }) => {
      await open("#/lessons", SERVER);
      await page.getByRole("link", { name: words.titles[1] }).click();
      await expect(page).toHaveTitle(`${words.titles[1]} · Attendo`);
      const content = page.getByTestId("lesson-content");
      await expect(content.getByText(`${words.sum}: 1`)).toBeVisible();
      await page.getByLabel("n, times", { exact: true }).fill("6");
      await expect(content.getByText(`${words.sum}: 3`)).toBeVisible();
      await expect(page).toHaveURL(/#\/lessons\/2\?n=6$/);
      await page.getByRole("switch").click();
      await page.locator("[data-at='1-1']").fill("-5");
      await expect(content.getByText(`${words.sum}: 6`)).toBeVisible();
      await expect(page).toHaveURL(/n=6&x=1\+2_3\+-5&scale=0$/);
      await page.reload();
      await expect(content.getByText(`${words.sum}: 6`)).toBeVisible();
      await expect(page.getByLabel("n, times", { exact: true })).toHaveValue("6");
      await page.getByRole("button", { name: words.reset }).click();
      await expect(content.getByText(`${words.sum}: 1`)).toBeVisible();
      await expect(page).toHaveURL(/#\/lessons\/2$/);
      await page.getByLabel("n, times", { exact: true }).fill("11");
      await expect(page.getByText(words.range)).toBeVisible();
      await expect(content.getByText(`${words.sum}: 1`)).toBeVisible();
    });

    test("frames are stepped through, by button and by keys", async ({ page, open }) => {
      await open("#/lessons/2", SERVER);
      const frames = page.getByTestId("frames");
      await frames.getByRole("button", { name: words.next }).click();
      await expect(frames.getByRole("status")).toHaveText(`${words.at} frame 2`);
      await expect(frames).toContainText("picture 4");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      await expect(frames).toContainText("picture 6");
      await frames.getByRole("button", { name: words.previous }).click();
      await frames.getByRole("slider").press("Home");
      await expect(frames).toContainText("picture 2");
    });

    test("questions are answered wrongly, then rightly, and the lesson is done", async ({ page, open }) => {
      await open("#/lessons/2", SERVER);
      const [first, second] = [page.getByTestId("question").nth(0), page.getByTestId("question").nth(1)];
      await expect(first.getByRole("button", { name: words.check })).toBeDisabled();
      await first.getByRole("textbox").fill("5");
      await first.getByRole("textbox").press("Enter");
      await expect(first.getByRole("status")).toContainText(words.wrong);
      await expect(first.getByTestId("hint")).toHaveText([/vague/]);
      await first.getByRole("textbox").fill("4");
      await expect(first.getByRole("status")).toBeEmpty();
      await first.getByRole("button", { name: words.check }).click();
      await expect(first.getByRole("status")).toContainText(`${words.right} ${words.why}`);
      await second.getByLabel("the second").check();
      await second.getByRole("button", { name: words.check }).click();
      await expect(second.getByRole("status")).toContainText(words.right);
      await page.getByRole("link", { name: `← ${words.all}` }).click();
      await expect(page.getByText(words.numDone)).toBeVisible();
      await page.reload();
      await expect(page.locator("[data-status=done]")).toHaveCount(1);
    });

    test("one's own model is shown, for a sentence of one's own", async ({ page, open }) => {
      await open("#/lessons/2", { ...SERVER, "GET /v1/models": () => ({ body: { models: [model(), model("en-ko", "en", "ko")] } }) });
      const own = page.getByTestId("server-model");
      await own.scrollIntoViewIfNeeded();
      await expect(own).toContainText("own: the usual");
      const figure = own.getByRole("figure", { name: "a picture" });
      await expect(figure).toContainText("weights of one word");
      await figure.getByRole("application", { name: /^vector/ }).focus();
      await page.keyboard.press("ArrowRight");
      await expect(figure).toContainText("-2");
      await expect(figure.getByTestId("arcs")).toBeVisible();
      await own.getByLabel(words.sentence).fill("왕자는 온다.");
      await own.getByRole("button", { name: words.show }).click();
      await expect(own).toContainText("own: 왕자는 온다.");
      await own.getByRole("combobox").selectOption("en-ko");
      await expect(own.locator(".part")).toContainText("en-ko");
      await expect(page).toHaveURL(/own\.model=en-ko/);
    });
  });
}

test("frames are played to the end, and again", async ({ page, open }) => {
  await open("#/lessons/2", SERVER);
  const frames = page.getByTestId("frames");
  await frames.getByRole("button", { name: "Play" }).click();
  await expect(frames.getByRole("button", { name: "Pause" })).toBeVisible();
  await expect(frames).toContainText("picture 6");
  await expect(frames.getByRole("button", { name: "Play" })).toBeVisible();
  await frames.getByRole("button", { name: "Play" }).click();
  await expect(frames).toContainText("picture 2");
  await frames.getByRole("button", { name: "Pause" }).click();
  await frames.getByRole("slider").press("End");
  await expect(frames).toContainText("picture 6");
});

test("on a phone the inputs come when they are wanted, and what follows stays in sight", async ({ page, open }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open("#/lessons/2", SERVER);
  const field = page.getByLabel("n, times", { exact: true });
  await expect(field).toBeHidden();
  const toggle = page.getByRole("button", { name: "Inputs" });
  await toggle.click();
  await expect(toggle).toHaveAttribute("aria-expanded", "true");
  await field.fill("6");
  await expect(page.getByTestId("lesson-content").getByText("the sum: 3")).toBeVisible();
  await toggle.click();
  await expect(field).toBeHidden();
  await page.setViewportSize({ width: 1280, height: 900 });
  await expect(field).toHaveValue("6");
  await expect(toggle).toBeHidden();
});

test("words are never taken for HTML", async ({ page, open }) => {
  await open("#/lessons/2", SERVER);
  await expect(page.getByText("S <b>no tag</b>")).toBeVisible();
  await expect(page.getByTestId("lesson-content").locator("strong", { hasText: "the sum" })).toBeVisible();
  await expect(page.getByText("§ 3.2, 3.4")).toBeVisible();
});

test("cells and charts are read by pointer and by keys", async ({ page, open }) => {
  await open("#/lessons/2", SERVER);
  const matrix = page.getByTestId("matrix");
  await matrix.getByRole("gridcell").nth(1).hover();
  await expect(matrix.getByTestId("cell")).toHaveText("row 1, b: 0.66666667");
  await expect(page.getByTestId("product")).toHaveText("1 · 0 + 2 · 0.333 = 0.667");
  await matrix.getByRole("gridcell").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(matrix.getByRole("gridcell", { name: "row 2, b: -1.333" })).toBeFocused();
  const chart = page.getByRole("slider", { name: /^lines/ });
  await chart.focus();
  await page.keyboard.press("End");
  await expect(chart).toHaveAttribute("aria-valuetext", "d 100: up 2, down 0.0100");
  await page.keyboard.press("ArrowLeft");
  await expect(chart).toHaveAttribute("aria-valuetext", "d 10: up 0.1000, down –");
  await page.getByText("The values as a table").first().click();
  await expect(page.getByTestId("chart").first().getByRole("cell", { name: "0.1000" })).toBeVisible();
});

test("a matrix is written with the keyboard alone", async ({ page, open }) => {
  await open("#/lessons/2", SERVER);
  await page.getByLabel("X: row 1, column 1").focus();
  await page.keyboard.type("7");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByLabel("X: row 2, column 2")).toBeFocused();
  await page.keyboard.type("-8");
  await expect(page.getByTestId("lesson-content").getByText("the sum: 2")).toBeVisible();
  await page.keyboard.type("x");
  await expect(page.getByText("This is not a number.")).toBeVisible();
});

test("an old answer never comes last, and what was there stays until then", async ({ page, open }) => {
  const counted: number[] = [];
  const slow: Handler = (request) => {
    const wish = request.postDataJSON() as LessonWish;
    counted.push(wish.inputs.n ?? 2);
    return { body: lesson(wish), after: wish.inputs.n === 6 ? 1500 : 0 };
  };
  await open("#/lessons/2", { ...SERVER, "POST /v1/lessons/2": slow });
  const field = page.getByLabel("n, times", { exact: true });
  await field.fill("6");
  await expect.poll(() => counted).toContain(6);
  await expect(page.getByTestId("lesson-content").getByText("the sum: 1")).toBeVisible();
  // Typed within the pause, in one task of the page, so that a busy machine cannot make it longer: only the last is asked for.
  await field.evaluate((node: HTMLInputElement) => {
    for (const n of ["3", "5", "7", "10"]) {
      node.value = n;
      node.dispatchEvent(new Event("input", { bubbles: true }));
    }
  });
  await expect(page.getByTestId("lesson-content").getByText("the sum: 5")).toBeVisible();
  await page.waitForTimeout(1600);
  await expect(page.getByTestId("lesson-content").getByText("the sum: 5")).toBeVisible();
  expect(counted).toEqual([2, 6, 10]);
});

test.describe("trouble", () => {
  test.use({ expected: /status of 40/ });

  test("is shown at the input that it is about, or above all", async ({ page, open }) => {
    const refusing: Handler = (request) => {
      const wish = request.postDataJSON() as LessonWish;
      if (wish.inputs.n === 3) return { status: 400, body: { error: "lesson: 1 setting cannot be used   - n: three is not for use" } };
      if (wish.inputs.n === 4) return { status: 400, body: { error: "four does not divide; take another" } };
      return { body: lesson(wish) };
    };
    await open("#/lessons/2", { ...SERVER, "POST /v1/lessons/2": refusing });
    const field = page.getByLabel("n, times", { exact: true });
    await field.fill("3");
    await expect(page.locator("[data-input=n]")).toContainText("three is not for use");
    await field.fill("4");
    await expect(page.getByRole("alert")).toContainText("four does not divide");
    await expect(page.getByTestId("lesson-content").getByText("the sum: 1")).toBeVisible();
    await field.fill("6");
    await expect(page.getByTestId("lesson-content").getByText("the sum: 3")).toBeVisible();
    await expect(page.getByRole("alert")).toHaveCount(0);
  });

  test("a lesson that is not there leads back", async ({ page, open }) => {
    await open("#/lessons/99", { ...SERVER, "POST /v1/lessons/99": () => ({ status: 400, body: { error: "no lesson 99" } }) });
    await expect(page.getByText("There is no lesson 99.")).toBeVisible();
    await page.getByRole("link", { name: "All lessons" }).click();
    await expect(page.getByRole("link", { name: "Positions" })).toBeVisible();
  });
});

test("terms are explained at the end of their lesson, and all of them under the list", async ({ page, open }) => {
  await open("#/lessons/2", SERVER);
  const terms = page.getByTestId("terms");
  await terms.getByText("Terms of this lesson").click();
  await expect(terms.locator("dt")).toHaveText([/key\s*키/]);
  await expect(terms.getByText("found by it")).toBeVisible();
  await page.getByRole("link", { name: "← All lessons" }).click();
  await terms.getByText("Glossary").click();
  await expect(terms.getByRole("link", { name: "Lesson 3" })).toHaveAttribute("href", "#/lessons/3");
});

test("lessons lead on and back", async ({ page, open }) => {
  await open("#/lessons/2", SERVER);
  const around = page.getByRole("navigation", { name: "Previous and next lesson" });
  await expect(around.getByRole("link")).toHaveText([/Previous lesson.*From RNN/, /Next lesson.*Positions/]);
  await expect(around.getByRole("link").first()).toHaveAttribute("href", "#/lessons/1");
});

for (const [locale, colorScheme] of [["en-US", "light"], ["ko-KR", "dark"]] as const) {
  test.describe(`${locale}, ${colorScheme}`, () => {
    test.use({ locale, colorScheme });

    test("has nothing serious for axe to find, and fits a phone", async ({ page, open }) => {
      test.setTimeout(60_000);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        for (const screen of ["#/lessons", "#/lessons/2?n=7"]) {
          await open(screen, SERVER);
          await page.waitForLoadState("networkidle");
          if (screen.includes("2")) {
            await page.getByTestId("server-model").scrollIntoViewIfNeeded();
            await expect(page.getByTestId("server-model")).toContainText("own: the usual");
          }
          await expectNothingSerious(page, `${screen} at ${width}`);
          await expectToFit(page, width, screen);
        }
      }
    });
  });
}
