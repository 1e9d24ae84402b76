import { headOf } from "../src/inspector/analysis/attention";
import { percent, shortShare } from "../src/inspector/display/format";
import { readRecord } from "../src/inspector/record/record";
import { makeRecord } from "../tests/fixtures/make-record";
import { expect, test } from "./page";

const made = makeRecord();
const record = readRecord(made);

test.beforeEach(async ({ show }) => {
  await show(made, "steps");
});

test("a step shows what was chosen, the likeliest tokens and where it looked", async ({ page }) => {
  await page.getByTestId("target").getByRole("button").nth(3).click();
  const step = record.steps[3];
  await expect(page.getByTestId("step")).toHaveText(`Step 4 of 6 chosen: “student”, probability ${percent(step.probability)}`);
  const bars = page.getByRole("list", { name: "Most probable tokens" }).getByRole("listitem");
  await expect(bars).toHaveCount(step.top.length);
  await expect(bars.locator(".number")).toHaveText(step.top.map((guess) => percent(guess.probability)));
  await expect(bars.filter({ hasText: "chosen" })).toContainText("student");
  await expect(page.getByTestId("entropy")).toContainText(`${step.entropy.toFixed(2)} nats`);
  await page.getByRole("combobox", { name: "Head" }).selectOption("1.2");
  const row = headOf(record.attention.cross!, 1, 2).subarray(15, 20);
  await expect(page.getByTestId("source-weights").locator(".number")).toHaveText(Array.from(row, shortShare));
});

test("plays to the end by itself, and pauses", async ({ page }) => {
  await page.getByRole("button", { name: "Play" }).click();
  await expect(page.getByTestId("step")).toContainText("Step 2 of 6");
  await page.getByRole("button", { name: "Pause" }).click();
  const at = await page.getByTestId("step").textContent();
  await page.waitForTimeout(1300);
  await expect(page.getByTestId("step")).toHaveText(at!);
  await page.getByLabel("Steps per second").selectOption("4");
  await page.getByRole("button", { name: "Play" }).click();
  await expect(page.getByTestId("step")).toContainText("Step 6 of 6");
  await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
});

test("steps and scrubs", async ({ page }) => {
  await page.getByRole("button", { name: "Next step" }).click();
  await page.getByRole("button", { name: "Next step" }).click();
  await page.getByRole("button", { name: "Previous step" }).click();
  await expect(page.getByTestId("step")).toContainText("Step 2 of 6");
  await page.getByRole("slider", { name: "Step" }).fill("4");
  await expect(page.getByTestId("step")).toContainText("Step 5 of 6");
  await page.getByRole("button", { name: "Last step" }).click();
  await expect(page.getByTestId("step")).toContainText("⟨end⟩");
  await page.getByRole("button", { name: "First step" }).click();
  await expect(page.getByTestId("step")).toContainText("Step 1 of 6");
});

test("is driven by keys, but leaves a slider its own", async ({ page }) => {
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByTestId("step")).toContainText("Step 3 of 6");
  await page.keyboard.press("End");
  await expect(page.getByTestId("step")).toContainText("Step 6 of 6");
  await page.keyboard.press("Space");
  await expect(page.getByRole("button", { name: "Pause" })).toBeVisible();
  await page.keyboard.press("Space");
  await page.getByRole("slider", { name: "Step" }).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByTestId("step")).toContainText("Step 2 of 6");
});

test("the logit lens tells each layer's guess", async ({ page }) => {
  const cell = record.logit_lens!.layers[0][2];
  await page.getByRole("button", { name: /^Layer 1, “a”/ }).click();
  const lens = page.getByTestId("lens");
  await expect(lens.locator(".number")).toHaveText(cell.top.map((guess) => percent(guess.probability)));
  await expect(lens).toContainText(`rank ${cell.rank + 1} here, with probability ${percent(cell.probability)}`);
  await expect(page.getByTestId("step")).toContainText("Step 3 of 6");
});
