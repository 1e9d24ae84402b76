import { readFileSync } from "node:fs";

import { asked, expect, type Handler, test, translation } from "./app";
import { expectNothingSerious, expectToFit } from "./fit";
import { makeRecord } from "../tests/fixtures/make-record";

const Q = encodeURIComponent("나는 학생이다.");
const BLANK = { loss: null, rate: null, tokens_per_second: null };
const train = (step: number) => ({ ...BLANK, time: new Date(1.7e12 + step * 100).toISOString(), event: "train", step, loss: 8 - step / 100, rate: step / 1e5, tokens_per_second: 12_000 + step });
const validation = (step: number, bleu: number) => ({ ...BLANK, time: new Date(1.7e12 + step * 100).toISOString(), event: "validation", step, loss: 7 - step / 100, perplexity: 2, bleu });
const sampled = (step: number, output: string) => ({ step, samples: [{ src: "유나는 온다.", output, ref: "Yuna comes." }] });

/** A run that tells no more than the test lets happen: at 1 a training step, at 2 a validation too. */
function living(happened = { until: 0 }): Record<string, Handler> {
  const news = [train(120), validation(140, 40)];
  const info = { name: "ko-en", state: "running", step: 100, max_steps: 400, dev: { loss: 6.5, bleu: 12.3 }, updated: "2026-01-01T00:00:00+00:00" };
  const samples = [sampled(50, "Yuna Yuna."), sampled(100, "Yuna is comes.")];
  return {
    "GET /v1/runs": () => ({ body: { runs: [info, { ...info, name: "old", state: "finished", step: 400 }] } }),
    "GET /v1/runs/ko-en": () => ({
      body: { ...info, config: { model: { d_model: 128 }, train: { max_steps: 400 } }, events: [train(50), validation(50, 3), train(100), validation(100, 12.3)], next: 4, samples: happened.until >= 2 ? [...samples, sampled(140, "Yuna comes.")] : samples, report: null },
    }),
    "GET /v1/runs/ko-en/events": (request) => {
      const known = Number(new URL(request.url()).searchParams.get("after")) - 4;
      return { body: { events: news.slice(known, happened.until), next: 4 + happened.until, state: "running" } };
    },
  };
}

for (const [locale, words] of [
  ["en-US", { runs: "Runs", running: "Running", step: "Step 100 of 400", ref: "same as the reference", loss: "Loss" }],
  ["ko-KR", { runs: "학습", running: "진행 중", step: "스텝 100/400", ref: "정답과 같음", loss: "손실" }],
] as const) {
  test.describe(`in ${locale}`, () => {
    test.use({ locale });

    test("a run moves while it is watched", async ({ page, open }) => {
      const happened = { until: 0 };
      await open("#/runs", living(happened));
      await expect(page.getByRole("heading", { name: words.runs, level: 1 })).toBeVisible();
      await expect(page.getByText(words.running).first()).toBeVisible();
      await page.getByRole("link", { name: "ko-en" }).click();
      await expect(page).toHaveURL(/#\/runs\/ko-en$/);
      await expect(page.getByTestId("step")).toHaveText(words.step);
      await expect(page.getByTestId("curve")).toHaveCount(4);
      await expect(page.getByTestId("reading").first()).toContainText("100");
      await expect(page.getByTestId("samples").locator(".output mark")).toHaveText(["is", "comes."]);
      happened.until = 1;
      await expect(page.getByTestId("reading").first()).toContainText("120", { timeout: 8000 });
      happened.until = 2;
      await expect(page.getByTestId("samples")).toContainText(words.ref, { timeout: 8000 });
      await expect(page.getByTestId("samples").locator(".output mark")).toHaveCount(0);
    });
  });
}

test("curves are read by pointer and by keys, all at the same step", async ({ page, open }) => {
  await open("#/runs/ko-en", living());
  const loss = page.getByRole("slider", { name: /^Loss/ });
  await loss.focus();
  await page.keyboard.press("Home");
  await expect(loss).toHaveAttribute("aria-valuetext", "Step 50: Training 7.5, Dev 6.5");
  for (const reading of await page.getByTestId("reading").all()) await expect(reading).toContainText("Step 50");
  await page.keyboard.press("ArrowRight");
  await expect(loss).toHaveAttribute("aria-valuetext", /^Step 100: Training 7, Dev 6/);
  const area = (await loss.boundingBox())!;
  await page.mouse.move(area.x + 60, area.y + 80);
  await expect(page.getByTestId("reading").first()).toContainText("Step 50");
  await page.getByLabel("Logarithmic axis").check();
  await expect(page).toHaveURL(/log=1/);
  await page.goBack();
  await expect(page.getByLabel("Logarithmic axis")).not.toBeChecked();
});

test("a sentence is seen by every checkpoint that is kept", async ({ page, open }) => {
  const detail = living()["GET /v1/runs/ko-en"];
  const requests: unknown[] = [];
  await open("#/runs/ko-en", {
    ...living(),
    "GET /v1/runs/ko-en": async (request) => {
      const { body } = await detail(request);
      return { body: { ...(body as object), state: "finished", checkpoints: [75, 100] } };
    },
    "POST /v1/runs/ko-en/checkpoint": (request) => {
      const { step, text } = request.postDataJSON() as { step: number; text: string };
      requests.push({ step, text });
      return { body: { step, text, translation: `Yuna at ${step}.`, src: ["▁유나는", "</s>"], tgt: ["▁Yuna", "</s>"], attention: [[0.9, 0.1], [0.2, 0.8]] } };
    },
  });
  const checkpoints = page.getByTestId("checkpoints");
  const [output, step] = [checkpoints.getByTestId("checkpoint-output"), checkpoints.getByTestId("checkpoint-step")];
  await checkpoints.scrollIntoViewIfNeeded();
  await expect(step).toHaveText("Step 50 (1 of 3)");
  await expect(output).toHaveText("Yuna Yuna.");
  await expect(checkpoints).toContainText("2 of 3 steps");
  await expect(checkpoints.getByTestId("checkpoint-attention")).toHaveCount(0);
  await checkpoints.getByRole("slider").focus();
  await page.keyboard.press("ArrowRight");
  await expect(output).toHaveText("Yuna at 75.");
  await expect(checkpoints.getByTestId("checkpoint-attention")).toBeVisible();
  await page.keyboard.press("End");
  await expect(output).toHaveText("Yuna at 100.");
  await page.keyboard.press("ArrowLeft");
  await expect(output).toHaveText("Yuna at 75.");
  expect(requests).toEqual([75, 100].map((step) => ({ step, text: "유나는 온다." })));
  await checkpoints.getByRole("combobox").fill("나는 온다.");
  await checkpoints.getByRole("button", { name: "Show" }).click();
  await expect.poll(() => requests.at(-1)).toEqual({ step: 75, text: "나는 온다." });
});

test("the samples' past is one slider away, and in the address", async ({ page, open }) => {
  await open("#/runs/ko-en", living());
  const samples = page.getByTestId("samples");
  await samples.getByRole("slider").focus();
  await page.keyboard.press("Home");
  await expect(samples).toContainText("Yuna Yuna.");
  await expect(page).toHaveURL(/at=50/);
  await page.reload();
  await expect(page.getByTestId("samples").locator(".output")).toHaveText("Yuna Yuna.");
  await samples.getByText("All validations").click();
  await expect(samples.getByRole("row").nth(2)).toContainText("Yuna is comes.");
});

test("builds are shown step by step, with the progress of the running one", async ({ page, open }) => {
  const step = (name: string, state: string, seconds: number | null = null, estimate: number | null = null) => ({ name, state, needs: [], seconds, estimate });
  const running = { name: "ko-en", state: "running", updated: "2026-01-01T00:00:00+00:00", progress: { done: 500, total: 2000 }, steps: [step("clean", "done", 42), step("teacher", "running", null, 7200), step("forward-translate", "interrupted", null, 4000)] };
  const failed = { name: "de-en", state: "stopped", updated: "2026-01-01T00:00:00+00:00", progress: null, steps: [step("clean", "failed")] };
  await open("#/runs", { "GET /v1/builds": () => ({ body: { builds: [running, failed] } }) });
  const builds = page.getByTestId("builds").getByRole("listitem");
  await expect(builds).toHaveCount(2);
  await expect(builds.first().getByRole("row", { name: /clean/ })).toContainText("42 sec");
  await expect(builds.first().getByRole("row", { name: /teacher/ })).toContainText("≈ 2 hr");
  await expect(builds.first()).toContainText("500 of 2,000");
  await expect(builds.nth(1)).toContainText("attendo build RECIPE --dry-run");
  await expect(page.getByText("No runs to show")).toHaveCount(0);
  await expectNothingSerious(page, "builds");
  await page.setViewportSize({ width: 360, height: 740 });
  await expectToFit(page, 360, "builds");
});

test("without runs it says how to have them", async ({ page, open }) => {
  await open("#/runs");
  await expect(page.getByText("attendo serve MODEL --runs runs")).toBeVisible();
});

test.describe("a run that is not there", () => {
  test.use({ expected: /status of 404/ });
  test("leads back to the others", async ({ page, open }) => {
    await open("#/runs/gone", { ...living(), "GET /v1/runs/gone": () => ({ status: 404, body: { error: "there is no such run" } }) });
    await expect(page.getByRole("alert")).toContainText("No run has this name.");
    await page.getByRole("link", { name: "All runs" }).first().click();
    await expect(page.getByRole("link", { name: "old" })).toBeVisible();
  });
});

test("looks inside a sentence, and into a study on demand", async ({ page, open }) => {
  const bodies: unknown[] = [];
  await open("#/inspect");
  // The page starts with its example.
  await expect(page.getByRole("tab", { name: "Beam search" })).toBeVisible();
  await page.waitForLoadState("networkidle");
  await page.getByLabel("Sentence", { exact: true }).fill("나는 학생이다.");
  page.on("request", (request) => request.url().endsWith("/v1/inspect") && bodies.push(asked(request)));
  await page.getByRole("button", { name: "Inspect" }).click();
  await expect(page.getByRole("heading", { level: 2, name: /I am a student/ })).toBeVisible();
  await page.getByRole("tab", { name: "Beam search" }).click();
  await expect(page.getByRole("tree")).toBeVisible();
  await expect(page).toHaveURL(/tab=beam/);
  await page.getByRole("tab", { name: "Explanations" }).click();
  await page.getByRole("button", { name: "Compute it now" }).nth(1).click();
  await expect(page.getByTestId("ablation")).toBeVisible();
  await expect(page).toHaveURL(/tab=why&attribution=1&ablation=1/);
  await page.getByLabel("Translation to explain").fill("I am a pupil.");
  await page.getByRole("button", { name: "Inspect" }).click();
  await expect(page).toHaveURL(/target=I\+am/);
  await expect.poll(() => bodies.length).toBe(3);
  const sentence = { text: "나는 학생이다.", model: "ko-en", beam_size: 4 };
  expect(bodies).toEqual([sentence, { ...sentence, ablation: true, attribution: true }, { ...sentence, target_text: "I am a pupil." }]);
});

test("explains the sentence that is chosen, as it is on the screen", async ({ page, open }) => {
  const texts = ["왕자는 온다.", "나는 학생이다."];
  const source = texts.join(" ");
  const outputs = ["The prince comes.", "I am a pupil."];
  const at = (all: string[], index: number) => all.slice(0, index).join(" ").length + index;
  const sentences = texts.map((text, index) => ({ source_start: at(texts, index), source_end: at(texts, index) + text.length, start: at(outputs, index), end: at(outputs, index) + outputs[index].length, alignment: null }));
  const answer = { ...translation(source), text: outputs.join(" "), words: outputs.join(" ").split(" "), alignment: null, sentences };
  const bodies: unknown[] = [];
  page.on("request", (request) => request.url().endsWith("/v1/inspect") && bodies.push(asked(request)));
  await open(`#/inspect?q=${encodeURIComponent(source)}&tab=beam`, { "POST /v1/translate": () => ({ body: { model: "ko-en", seconds: 0.1, translations: [answer] } }) });
  const second = page.getByTestId("sentences").getByRole("button").nth(1);
  await second.click();
  await expect(second).toHaveAttribute("aria-pressed", "true");
  await expect(page).toHaveURL(/tab=beam&sentence=2/);
  // The search of the inspector has found another translation than the one on the screen, which is then explained.
  await expect.poll(() => bodies.at(-1)).toMatchObject({ text: texts[1], target_text: outputs[1] });
  await page.goto(page.url().replace("tab=beam", "tab=steps"));
  await expect(page.getByRole("tab", { selected: true })).toHaveText("Steps");
});

test("a record is kept as JSON, and as a page that opens by itself", async ({ page, open, context }, info) => {
  await open(`#/inspect?q=${Q}`);
  const json = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as JSON" }).click();
  expect(JSON.parse(readFileSync(await (await json).path(), "utf8"))).toMatchObject({ format: "attendo.record" });
  const html = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as HTML" }).click();
  const file = info.outputPath("look.html");
  await (await html).saveAs(file);
  const other = await context.newPage();
  await other.goto(`file://${file}`);
  await expect(other.getByRole("heading", { level: 1 })).toContainText("I am a student.");
});

test("the sentence goes along from page to page", async ({ page, open }) => {
  await open(`#/translate?q=${Q}`);
  await page.getByRole("navigation").getByRole("link", { name: "Inspect" }).click();
  await expect(page.getByLabel("Sentence")).toHaveValue("나는 학생이다.");
  await page.getByRole("navigation").getByRole("link", { name: "Runs" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Translate" }).click();
  await expect(page.locator("textarea").first()).toHaveValue("나는 학생이다.");
});

test("has both languages, and remembers; has both themes", async ({ page, open }) => {
  await open("#/translate");
  await page.getByRole("button", { name: "한국어로 보기" }).click();
  await expect(page.getByText("입력하는 대로 여기에 번역이 나옵니다.")).toBeVisible();
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("lang", "ko");
  await expect(page).toHaveTitle("번역 · Attendo");
  await page.getByRole("button", { name: "어두운 화면으로 바꾸기" }).click();
  await expect(page.locator(".attendo")).toHaveAttribute("data-theme", "dark");
});

test("no address is a dead end", async ({ page, open }) => {
  await open("#/nowhere");
  await page.getByRole("main").getByRole("link", { name: "Lessons" }).click();
  await expect(page.getByRole("link", { name: "From RNN to attention" })).toBeVisible();
  await open("#/lessons/twelve");
  await expect(page.getByText("There is no lesson twelve.")).toBeVisible();
  await page.getByRole("link", { name: "All lessons" }).click();
  await expect(page.getByRole("link", { name: "From RNN to attention" })).toBeVisible();
});

test("the first stop of Tab leads past the header, and the address stays", async ({ page, open }) => {
  await open("#/lessons");
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("#main")).toBeFocused();
  await expect(page).toHaveURL(/#\/lessons$/);
});

const SCREENS = ["#/translate", `#/translate?q=${Q}&prefix=I&glossary=oops`, "#/inspect", `#/inspect?q=${Q}&tab=why`, "#/runs", "#/runs/ko-en", "#/lessons", "#/lost/for/good"];

for (const [locale, colorScheme] of [["en-US", "light"], ["ko-KR", "dark"]] as const) {
  test.describe(`${locale}, ${colorScheme}`, () => {
    test.use({ locale, colorScheme });
    test("has nothing serious for axe to find", async ({ page, open }) => {
      test.setTimeout(120_000);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const screen of SCREENS) {
        await open(screen, living());
        await page.waitForLoadState("networkidle");
        if (screen.includes("prefix")) await page.getByTestId("translation").getByRole("button").first().click();
        await expect(page.locator(".stale")).toHaveCount(0);
        await expectNothingSerious(page, screen);
      }
    });
  });
}

test("fits a phone of 360 pixels", async ({ page, open }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  for (const screen of SCREENS) {
    await open(screen, living());
    await page.waitForLoadState("networkidle");
    await expectToFit(page, 360, screen);
  }
});

test("long sentences fit a phone, too: their tokens scroll in one line", async ({ page, open }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await open("#/inspect?q=x", { "POST /v1/inspect": () => ({ body: makeRecord({ S: 40, T: 40 }) }) });
  await expect(page.getByTestId("arcs")).toBeVisible();
  await expectToFit(page, 360, "inspect");
  const tops = await page.getByTestId("arcs").getByRole("toolbar").first().getByRole("button").evaluateAll((buttons) => buttons.map((one) => one.getBoundingClientRect().top));
  expect(new Set(tops).size).toBe(1);
});

test("asks nobody but its server", async ({ page, open }) => {
  const others: string[] = [];
  page.on("request", (request) => request.url().startsWith("http://attendo.test/") || others.push(request.url()));
  for (const screen of SCREENS) await open(screen, living());
  expect(others).toEqual([]);
});

test("can be installed: its manifest names the page, and icons of the sizes that they have", async ({ page, open }) => {
  await open("#/translate");
  const found = await page.evaluate(async () => {
    const url = document.querySelector<HTMLLinkElement>('link[rel="manifest"]')!.href;
    const manifest = (await (await fetch(url)).json()) as { name: string; display: string; start_url: string; scope: string; icons: { src: string; sizes: string; type: string }[] };
    const icons = manifest.icons.map(async ({ src, sizes, type }) => {
      const image = new Image();
      image.src = new URL(src, url).href;
      await image.decode();
      return { sizes, actual: `${image.naturalWidth}x${image.naturalHeight}`, type };
    });
    const resolve = (path: string) => new URL(path, url).href;
    return { name: manifest.name, display: manifest.display, start: resolve(manifest.start_url), scope: resolve(manifest.scope), icons: await Promise.all(icons) };
  });
  const root = new URL("/", page.url()).href;
  expect(found).toEqual({ name: "Attendo", display: "standalone", start: root, scope: root, icons: ["192x192", "512x512"].map((sizes) => ({ sizes, actual: sizes, type: "image/png" })) });
});
