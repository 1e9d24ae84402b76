import { AHEAD, PROBABILITIES, HORIZON, makeSeries, OUTPUT_LABELS, TIMES, VALUES, WINDOW } from "../tests/fixtures/make-series";
import { expect, type Handler, model, test } from "./app";
import { expectNothingSerious, expectToFit } from "./fit";

const INFO = { columns: ["sea_temperature", "pressure"], time: "date", window: WINDOW, horizon: HORIZON, targets: ["typhoon"], kind: "labels", labels: ["calm", "typhoon"], max_rows: 1000 };
const sea = (more: object = {}) => model("sea", "ko", "en", { task: "series", kind: "series", source: null, target: null, max_characters: null, default: true, series: INFO, ...more });
const heat = sea({ name: "heat", default: false, series: { ...INFO, targets: ["sea_temperature"], kind: "numbers", labels: null } });
const HEADER = "date,sea_temperature,pressure";
const LINES = TIMES.map((time, index) => [time, ...VALUES.map((column) => column[index] ?? "")].join(","));
const CSV = [HEADER, ...LINES].join("\n");

interface Asked {
  model: string;
  columns: Record<string, (number | null)[]>;
  times?: string[];
}

const steps = AHEAD.map((time, index) => ({ time, label: OUTPUT_LABELS[index], probabilities: { calm: 1 - PROBABILITIES[index], typhoon: PROBABILITIES[index] }, values: null }));
const numbers = AHEAD.map((time, index) => ({ time, label: null, probabilities: null, values: { sea_temperature: 28 + index / 10 } }));

function server(asked: Asked[] = []): Record<string, Handler> {
  return {
    "GET /v1/models": () => ({ body: { models: [sea(), heat] } }),
    "POST /v1/forecast": (request) => {
      const wish = request.postDataJSON() as Asked;
      asked.push(wish);
      return { body: { model: wish.model, seconds: 0.03, window: { first: TIMES[0], last: TIMES.at(-1), rows: WINDOW, missing: 3 }, steps: wish.model === "sea" ? steps : numbers } };
    },
    "POST /v1/forecast/explain": () => ({ body: makeSeries() }),
  };
}

for (const [locale, words] of [
  ["en-US", { rows: "Rows of the series (CSV), oldest first", read: "Rows read: 30. Missing values: 3.", inspect: "Inspect in detail", next: "Next steps", nav: ["Forecast", "Inspect", "Runs", "Lessons"] }],
  ["ko-KR", { rows: "시계열의 행(CSV), 오래된 것부터", read: "읽은 행: 30개. 결측값: 3개.", inspect: "자세히 분석하기", next: "예측 결과", nav: ["예측", "분석", "학습", "강의"] }],
] as const) {
  test.describe(`in ${locale}`, () => {
    test.use({ locale });

    test("paste rows, read the week, look inside, and come back", async ({ page, open }) => {
      const asked: Asked[] = [];
      await open("", server(asked));
      await expect(page).toHaveURL(/#\/forecast$/);
      expect(await page.getByRole("navigation").getByRole("link").allTextContents()).toEqual(words.nav);
      await page.getByRole("textbox", { name: words.rows }).fill(CSV);
      await expect(page.getByTestId("rows-read")).toContainText(words.read);
      const table = page.getByTestId("forecast");
      await expect(table.getByRole("row").nth(4)).toContainText("2023-08-17");
      await expect(table.getByRole("row").nth(4)).toContainText("80.0%");
      expect(asked).toEqual([{ model: "sea", columns: { sea_temperature: VALUES[0], pressure: VALUES[1] }, times: TIMES }]);
      await expect(page.getByTestId("series").locator("svg path").first()).toHaveAttribute("d", /^M/);
      await page.getByRole("link", { name: words.inspect }).click();
      await expect(page.getByRole("heading", { level: 2, name: /2023-07-15 … 2023-08-13/ })).toBeVisible();
      await page.getByRole("tab").nth(1).click();
      await expect(page).toHaveURL(/tab=steps/);
      await page.goBack();
      await expect(page.getByRole("heading", { name: words.next })).toBeVisible();
      await expect(page.getByRole("textbox", { name: words.rows })).toHaveValue(CSV);
    });
  });
}

test("a file is opened, its columns in any order, older rows left out", async ({ page, open }) => {
  const asked: Asked[] = [];
  await open("#/forecast", server(asked));
  const rows = TIMES.map((time, index) => `calm;${VALUES[1][index] ?? "NA"};${time};${VALUES[0][index] ?? ""}`);
  const file = ["label;Pressure;DATE;sea_temperature", "calm;1000;2023-07-13;25", "calm;1001;2023-07-14;25.5", ...rows].join("\r\n");
  await page.getByLabel("Open a CSV").setInputFiles({ name: "sea.csv", mimeType: "text/csv", buffer: Buffer.from(`\ufeff${file}`) });
  await expect(page.getByTestId("forecast")).toBeVisible();
  expect(asked).toEqual([{ model: "sea", columns: { sea_temperature: VALUES[0], pressure: VALUES[1] }, times: TIMES }]);
  await expect(page.getByRole("textbox", { name: "Rows of the series" })).toHaveValue(CSV);
  await page.reload();
  await expect(page.getByTestId("forecast").getByRole("row")).toHaveCount(1 + HORIZON);
});

test("what is wrong with the rows is shown, and nothing is sent", async ({ page, open }) => {
  const asked: Asked[] = [];
  await open("#/forecast", server(asked));
  const box = page.getByRole("textbox", { name: "Rows of the series" });
  const rowsRead = page.getByTestId("rows-read");
  await expect(rowsRead).toContainText("Paste at least 30 rows, or drop a CSV file: date,sea_temperature,pressure");
  await box.fill([HEADER, ...LINES.slice(0, 5)].join("\n"));
  await expect(rowsRead).toHaveText("There are 5 rows, but the model reads 30.");
  await box.fill([HEADER, "2023-07-15,warm,1000", ...LINES.slice(1)].join("\n"));
  await expect(page.getByRole("alert")).toContainText("Line 2, sea_temperature: “warm” is not a number.");
  await box.fill(CSV.replace("pressure", "presure"));
  await expect(page.getByRole("alert")).toContainText("These columns are missing: pressure.");
  await page.getByLabel("Open a CSV").setInputFiles({ name: "sea.parquet", mimeType: "", buffer: Buffer.from([80, 65, 82, 0, 49]) });
  await expect(page.getByRole("alert")).toContainText("This is not a text file");
  await expect(box).toHaveAttribute("aria-invalid", "true");
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.waitForTimeout(300);
  expect(asked.filter((wish) => wish.columns.sea_temperature.length !== WINDOW)).toEqual([]);
});

test("another model, and its numbers", async ({ page, open }) => {
  await open(`#/forecast?data=${encodeURIComponent(CSV)}`, server());
  await expect(page.getByTestId("forecast")).toContainText("typhoon");
  await page.getByLabel("Model").selectOption("heat");
  await expect(page).toHaveURL(/model=heat/);
  await expect(page.getByTestId("forecast").getByRole("row").nth(2)).toContainText("28.10");
  await expect(page.locator("path.forecast").first()).toHaveAttribute("d", /^M/);
});

test.describe("a refusal", () => {
  test.use({ expected: /status of 400/ });
  test("is shown in the server's words", async ({ page, open }) => {
    await open(`#/forecast?data=${encodeURIComponent(CSV)}`, { ...server(), "POST /v1/forecast": () => ({ status: 400, body: { error: "times.4: rows are missing" } }) });
    await expect(page.getByRole("alert")).toContainText("times.4: rows are missing");
  });
});

test("a page that the models are not for outputs what they are for", async ({ page, open }) => {
  await open("#/translate", server());
  await expect(page.getByRole("heading", { name: "The server has no model for this page" })).toBeVisible();
  await page.getByRole("main").getByRole("link", { name: "Forecast" }).click();
  await expect(page.getByRole("textbox", { name: "Rows of the series" })).toBeVisible();
  await page.getByRole("navigation").getByRole("link", { name: "Inspect" }).click();
  await expect(page.getByText("The models of this server read time series.")).toBeVisible();
});

test("translators are offered without the others", async ({ page, open }) => {
  const language = model("tales", "auto", "en", { task: "language", kind: "decoder", default: true });
  const classes = model("mood", "en", "auto", { task: "classification", kind: "encoder", default: true });
  await open("#/translate?q=one", { ...server(), "GET /v1/models": () => ({ body: { models: [sea(), language, classes, model()] } }) });
  await expect(page.getByTestId("translation")).toHaveText("ONE");
  await expect(page.getByLabel("From").getByRole("option")).toHaveText(["Detect language", "Korean", "English"]);
  expect(await page.getByRole("navigation").getByRole("link").allTextContents()).toEqual(["Translate", "Forecast", "Generate", "Inspect", "Runs", "Lessons"]);
});

test("a classifier outputs the label, and the other classes below it", async ({ page, open }) => {
  const classes = model("mood", "en", "auto", { task: "classification", kind: "encoder", default: true });
  const label = (text: string, probability: number) => ({ text, score: Math.log(probability), log_prob: Math.log(probability), is_finished: true, confidence: { probability, mean_token_probability: probability, quality: null, band: "check", unfamiliar: null, words: [{ text, probability }] } });
  const made = { ...label("glad", 0.9), source_text: "x", words: ["glad"], alternatives: [label("sad", 0.1)], alignment: null, notes: ["no alignment: the model has no attention"] };
  await open("#/translate?q=what+a+day", {
    "GET /v1/models": () => ({ body: { models: [classes] } }),
    "POST /v1/translate": () => ({ body: { model: "mood", source: "en", target: "auto", seconds: 0.1, translations: [made] } }),
  });
  await expect(page.getByTestId("translation")).toHaveText("glad");
  await expect(page.getByRole("heading", { name: "Other classes" })).toBeVisible();
  await expect(page.getByTestId("alternatives")).toContainText(/sad\s*10\.0%/);
  await expect(page.getByText("Any language")).toHaveCount(0);
  await expect(page.getByText("Glossary")).toHaveCount(0);
});

test("a language model writes on, the same for the same seed", async ({ page, open }) => {
  const bodies: unknown[] = [];
  const language = model("tales", "auto", "en", { task: "language", kind: "decoder", default: true });
  await open("", {
    "GET /v1/models": () => ({ body: { models: [language] } }),
    "POST /v1/generate": (request) => {
      bodies.push(request.postDataJSON());
      return { body: { model: "tales", seconds: 0.2, texts: ["A man <b>sings</b>.", "A man sits.", "A man."] } };
    },
  });
  await expect(page).toHaveURL(/#\/generate$/);
  await page.getByLabel("Prompt").fill("A man");
  await page.getByLabel("Seed").fill("7");
  await page.getByRole("button", { name: "Generate" }).click();
  await expect(page.getByTestId("texts").getByRole("listitem")).toHaveText(["A man <b>sings</b>.", "A man sits.", "A man."]);
  expect(bodies).toEqual([{ model: "tales", prompt: "A man", count: 3, max_tokens: 60, temperature: 0.8, top_p: 0.95, seed: 7 }]);
  await expect(page).toHaveURL(/seed=7&q=A\+man/);
});

for (const [locale, colorScheme] of [["en-US", "light"], ["ko-KR", "dark"]] as const) {
  test.describe(`${locale}, ${colorScheme}`, () => {
    test.use({ locale, colorScheme });
    test("has nothing serious for axe to find, and fits a phone", async ({ page, open }) => {
      test.setTimeout(120_000);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const data = encodeURIComponent(CSV);
      const language = model("tales", "auto", "en", { task: "language", kind: "decoder", default: true });
      const all = { ...server(), "GET /v1/models": () => ({ body: { models: [sea(), heat, language] } }) };
      for (const screen of ["#/forecast", "#/forecast?data=oops", `#/forecast?data=${data}`, `#/forecast?model=heat&data=${data}`, `#/inspect?model=sea&data=${data}`, "#/generate", "#/translate"]) {
        await page.setViewportSize({ width: 1280, height: 900 });
        await open(screen, all);
        await page.waitForLoadState("networkidle");
        await expectNothingSerious(page, screen);
        await page.setViewportSize({ width: 360, height: 740 });
        await expectToFit(page, 360, screen);
      }
    });
  });
}
