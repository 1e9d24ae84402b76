/** What a list of runs is for: to find some, compare them, read their reports, and use their models. */

import { readFileSync } from "node:fs";

import { expect, type Handler, model, test } from "./app";
import { expectNothingSerious, expectToFit } from "./fit";

const MINUTE = 60_000;
const at = (minute: number) => new Date(1.7e12 + minute * MINUTE).toISOString();
const train = (step: number, loss: number | null, minute: number) => ({ time: at(minute), event: "train", step, loss, rate: step / 1e5, tokens_per_second: 12_000 });
const validation = (step: number, bleu: number, minute: number) => ({ time: at(minute), event: "validation", step, loss: 2, perplexity: 7.4, bleu });
const LOSSES = [8, 2, 6, 4];
const EVENTS = [{ time: at(0), event: "started", step: 0 }, ...LOSSES.map((loss, index) => train(100 * (index + 1), loss, index + 1)), validation(400, 30, 5)];
const BINS = [{ count: 40, confidence: 0.35, accuracy: 0.3 }, { count: 0, confidence: 0.55, accuracy: 0 }, { count: 160, confidence: 0.95, accuracy: 0.9 }];
const BANDS = { high: { count: 80, num_right: 76 }, check: { count: 15, num_right: 9 }, low: { count: 0, num_right: 0 } };
const REPORT = {
  dev: { loss: 1.9, bleu: 31.4 },
  averaged_steps: [300, 350, 400],
  calibration: { temperature: 1.24, ece_before: 0.081, ece_after: 0.012, bins_after: BINS, quality: { bands: BANDS } },
};

function run(name: string, more: object = {}): object {
  return { name, state: "finished", step: 400, max_steps: 400, dev: { loss: 2, bleu: 30 }, updated: at(9), diverged: false, config: { model: { d_model: 128 }, train: { seed: 1 } }, events: EVENTS, next: 6, samples: [], report: null, model: null, ...more };
}

function served(...runs: object[]): Record<string, Handler> {
  const named = runs as { name: string }[];
  return {
    "GET /v1/runs": () => ({ body: { runs } }),
    ...Object.fromEntries(named.flatMap((one) => [
      [`GET /v1/runs/${one.name}`, () => ({ body: one })],
      [`GET /v1/runs/${one.name}/events`, () => ({ body: { events: [], next: 6, state: "finished" } })],
    ])),
  };
}

test("runs are found by name, and several are drawn in one chart with what differs between them", async ({ page, open }) => {
  const other = { config: { model: { d_model: 256 }, train: { seed: 1 } }, events: EVENTS.slice(0, 3) };
  await open("#/runs", served(run("small"), run("small-wide", other), run("old")));
  const compare = page.getByRole("button", { name: /^Compare/ });
  await expect(page.getByRole("listitem")).toHaveCount(3);
  await page.getByRole("searchbox").fill("SMALL");
  await expect(page.getByRole("listitem")).toHaveCount(2);
  await expect(page).toHaveURL(/search=SMALL/);
  await expect(compare).toBeDisabled();
  for (const box of await page.getByRole("checkbox").all()) await box.check();
  await compare.click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Comparison of 2 runs");
  await expect(page.getByTestId("curve")).toHaveCount(4);
  await expect(page.getByTestId("reading").first()).toContainText("small 4");
  await expect(page.getByTestId("reading").first()).toContainText("small-wide 2");
  const differences = page.getByRole("region", { name: "Settings that differ" }).getByRole("row");
  await expect(differences).toHaveText([/Setting\s*small\s*small-wide/, /model\.d_model\s*128\s*256/]);
  await expectNothingSerious(page, "comparison");
  await page.setViewportSize({ width: 360, height: 740 });
  await expectToFit(page, 360, "comparison");
  await page.reload();
  await expect(differences).toHaveCount(2);
  await page.goBack();
  await expect(page.getByRole("searchbox")).toHaveValue("SMALL");
});

test("long names of runs fit a phone, in the list, in a comparison and in a lesson", async ({ page, open }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  const [name, other] = ["a-model-with-a-long-name-that-has-its-date-2026-11-19", "b-model-with-a-long-name-that-has-its-date-2026-11-19"];
  const lesson = { number: 17, title: "Learning", summary: "How weights find their values.", paper: "5", code: [], inputs: [], blocks: [], questions: [] };
  const lessons = { "GET /v1/lessons": () => ({ body: { lessons: [lesson] } }), "POST /v1/lessons/17": () => ({ body: lesson }), "POST /v1/lessons/17/own": () => ({ body: { model: "ko-en", blocks: [] } }) };
  await open("#/runs", { ...served(run(name), run(other, { config: { model: { d_model: 256 } } })), ...lessons });
  await expect(page.getByRole("listitem")).toHaveCount(2);
  await expectToFit(page, 360, "list");
  for (const box of await page.getByRole("checkbox").all()) await box.check();
  await page.getByRole("button", { name: "Compare (2)" }).click();
  await expect(page.getByTestId("curve")).toHaveCount(4);
  await expectToFit(page, 360, "comparison");
  await page.getByRole("link", { name }).click();
  await expect(page.getByRole("heading", { level: 1, name })).toBeVisible();
  await expectToFit(page, 360, "run");
  await page.goto(page.url().replace(/#.*/, "#/lessons/17"));
  await expect(page.getByTestId("watch-run").getByRole("combobox").first()).toHaveValue(name);
  await expectToFit(page, 360, "lesson");
});

test("curves are drawn over time, and smoothed", async ({ page, open }) => {
  await open("#/runs/small", served(run("small")));
  const loss = page.getByRole("slider", { name: /^Loss/ });
  await expect(loss).toHaveAttribute("aria-valuetext", /^Step 400: Training 4, /);
  await page.getByLabel("Minutes instead of steps").check();
  await expect(page).toHaveURL(/time=1/);
  await loss.focus();
  await page.keyboard.press("Home");
  await expect(loss).toHaveAttribute("aria-valuetext", /^1\.0 min: Training 8, /);
  await page.getByRole("slider", { name: /^Smoothing/ }).fill("0.5");
  await expect(page).toHaveURL(/smooth=0\.5/);
  await loss.focus();
  await page.keyboard.press("End");
  await expect(loss).toHaveAttribute("aria-valuetext", /^5\.0 min: .*Dev 2$/);
  await page.keyboard.press("ArrowLeft");
  // (8 / 8 + 2 / 4 + 6 / 2 + 4) / (1 / 8 + 1 / 4 + 1 / 2 + 1), the weights of factor 0.5
  await expect(loss).toHaveAttribute("aria-valuetext", /^4\.0 min: Training 4\.53/);
  await page.reload();
  await expect(page.getByLabel("Minutes instead of steps")).toBeChecked();
  await expect(page.getByText("Smoothing 0.50")).toBeVisible();
});

test("the report has the scores of the finished model, its calibration and its bands", async ({ page, open }) => {
  await open("#/runs/small", served(run("small", { report: REPORT })));
  await expect(page.getByText("Dev BLEU 31.4")).toBeVisible();
  await expect(page.getByText("average of 3 checkpoints (steps 300, 350, 400)")).toBeVisible();
  await expect(page.getByText(/8\.1 ?% before, 1\.2 ?% after calibration/)).toBeVisible();
  const chart = page.getByRole("slider", { name: "Calibration" });
  await chart.focus();
  await page.keyboard.press("End");
  await expect(chart).toHaveAttribute("aria-valuetext", /Confidence 95\.0%: 90\.0% right \(160 tokens\)/);
  await page.keyboard.press("ArrowLeft");
  await expect(chart).toHaveAttribute("aria-valuetext", /Confidence 35\.0%/);
  await expect(page.getByRole("row", { name: /^sure/ })).toHaveText(/80\s*95\.0%/);
  await expect(page.getByRole("row", { name: /^do not use/ })).toHaveText(/0\s*–/);
});

test("a run leads to the model that it has trained, and to no other one of its name", async ({ page, open }) => {
  const models = { "GET /v1/models": () => ({ body: { models: [model(), model("ko-en-2", "ko", "en")] } }) };
  await open("#/runs/small", { ...served(run("small", { model: "ko-en-2" }), run("ko-en")), ...models });
  await page.getByRole("link", { name: "Translate with this model" }).click();
  await expect(page).toHaveURL(/#\/translate\?model=ko-en-2$/);
  await page.goto(page.url().replace(/#.*/, "#/runs/ko-en"));
  await expect(page.getByRole("heading", { level: 1, name: "ko-en" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Download as CSV" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Translate with this model" })).toHaveCount(0);
});

test("the events are downloaded for a spreadsheet", async ({ page, open }) => {
  await open("#/runs/small", served(run("small")));
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download as CSV" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toBe("small.csv");
  const lines = readFileSync(await file.path(), "utf8").trim().split("\n");
  expect(lines[0]).toMatch(/^time,event,step,loss,rate/);
  expect(lines.slice(1).map((line) => line.split(",").slice(1, 4))).toEqual([...LOSSES.map((loss, index) => ["train", String(100 * (index + 1)), String(loss)]), ["validation", "400", "2"]]);
});

test("a run that diverged says since when, and one that was interrupted how to go on", async ({ page, open }) => {
  const diverged = run("diverged", { state: "stopped", step: 300, diverged: true, events: [train(100, 8, 1), train(200, null, 2), train(300, null, 3), validation(300, 1, 4)] });
  const interrupted = run("interrupted", { state: "stopped", step: 200, events: [train(100, 8, 1), { time: at(2), event: "interrupted", step: 200 }] });
  await open("#/runs", served(diverged, interrupted));
  await expect(page.getByRole("listitem").filter({ hasText: "diverged" })).toContainText("Diverged");
  await page.getByRole("link", { name: "diverged" }).click();
  await expect(page.getByRole("alert")).toContainText("NaN since step 200.");
  await expect(page.locator(".badge")).toContainText("Diverged");
  const loss = page.getByRole("slider", { name: /^Loss/ });
  await expect(loss).toHaveAttribute("aria-valuetext", "Last values: Training 8, Dev 2");
  await loss.focus();
  await page.keyboard.press("End");
  await expect(loss).toHaveAttribute("aria-valuetext", "Step 300: Training –, Dev 2");
  await page.goBack();
  await page.getByRole("link", { name: "interrupted" }).click();
  await expect(page.getByText("Interrupted at step 200.")).toBeVisible();
});
