/** The pages of a real `attendo serve` (SERVE_URL names it), with a real model and a training that runs. */

import { readFileSync } from "node:fs";

import { expect, test } from "@playwright/test";

const { SERVE_URL = "", SERVE_SOURCE = "", SERVE_TARGET = "", SERVE_RUN = "" } = process.env;
test.skip(!SERVE_URL, "SERVE_URL names no server");
test.describe.configure({ timeout: 120_000 });

const SLOW = { timeout: 30_000 };
let errors: string[] = [];

test.beforeEach(({ page }) => {
  errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
});
test.afterEach(() => expect(errors).toEqual([]));

test("type Korean, read English, hover, click an alternative", async ({ page }) => {
  await page.goto(SERVE_URL);
  await page.locator("textarea[aria-describedby=counter]").pressSequentially(SERVE_SOURCE, { delay: 20 });
  const output = page.getByTestId("translation");
  await expect(output).toHaveText(SERVE_TARGET, SLOW);

  const words = output.getByRole("button");
  await expect(words).toHaveCount(SERVE_TARGET.split(" ").length);
  await words.first().hover();
  await expect(page.getByTestId("sources")).toContainText(/Attends to .*\d%/);
  const shares = await page.locator(".mirror mark").evaluateAll((marks) => marks.map((mark) => parseFloat(getComputedStyle(mark).getPropertyValue("--share"))));
  expect(shares).toHaveLength(SERVE_SOURCE.split(" ").length);
  expect(Math.max(...shares)).toBeGreaterThan(5);

  await words.nth(1).click();
  const others = page.getByRole("menuitem");
  await expect(others.first()).toBeVisible(SLOW);
  const first = SERVE_TARGET.split(" ")[0];
  const second = await others.nth(1).locator(".text").innerText();
  // What a model thinks of is its own affair: a full stop follows without a space.
  const begin = `${first} ?${second.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`;
  await others.nth(1).click();
  await expect(page.locator(".chip")).toContainText(new RegExp(begin));
  await expect(output).toHaveText(new RegExp(`^${begin}`), SLOW);
  const address = page.url();

  const other = await page.context().newPage();
  await other.goto(address);
  await expect(other.getByTestId("translation")).toHaveText(await output.innerText(), SLOW);
  await page.goBack();
  await expect(output).toHaveText(SERVE_TARGET, SLOW);
});

test("word by word, too", async ({ page }) => {
  await page.goto(`${SERVE_URL}#/translate?beam=1&q=${encodeURIComponent(SERVE_SOURCE)}`);
  await expect(page.getByTestId("translation")).toHaveText(SERVE_TARGET, SLOW);
});

test("a file comes back line by line", async ({ page }) => {
  await page.goto(`${SERVE_URL}#/translate`);
  await page.getByLabel("Open a file").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from(`${SERVE_SOURCE}\n\n${SERVE_SOURCE}\n`) });
  const download = page.waitForEvent("download", SLOW);
  await page.getByRole("button", { name: "Download a.en.txt" }).click(SLOW);
  expect(readFileSync(await (await download).path(), "utf8")).toBe(`${SERVE_TARGET}\n\n${SERVE_TARGET}\n`);
  await page.getByLabel("Open a file").setInputFiles({ name: "a.html", mimeType: "text/html", buffer: Buffer.from(`<p>${SERVE_SOURCE}</p>`) });
  const markup = page.waitForEvent("download", SLOW);
  await page.getByRole("button", { name: "Download a.en.html" }).click(SLOW);
  expect(readFileSync(await (await markup).path(), "utf8")).toContain(`<p>${SERVE_TARGET}</p>`);
});

test("look inside it, ablation and all", async ({ page }) => {
  await page.goto(`${SERVE_URL}#/inspect?q=${encodeURIComponent(SERVE_SOURCE)}`);
  await expect(page.getByRole("heading", { level: 2, name: SERVE_TARGET })).toBeVisible(SLOW);
  for (const name of ["Steps", "Beam search", "Embeddings", "Head metrics", "Explanations"]) await page.getByRole("tab", { name }).click();
  await page.getByRole("button", { name: "Compute it now" }).last().click();
  await expect(page.getByTestId("ablation").getByRole("listitem").first()).toBeVisible(SLOW);
});

test("watch a training run move", async ({ page }) => {
  await page.goto(`${SERVE_URL}#/runs`);
  await page.getByRole("link", { name: SERVE_RUN }).click();
  const step = async () => Number((await page.getByTestId("step").innerText()).replaceAll(",", "").match(/\d+/)?.[0]);
  await expect(page.getByText("Running")).toBeVisible(SLOW);
  const before = await step();
  await expect.poll(step, { timeout: 60_000 }).toBeGreaterThan(before);
  await expect(page.getByRole("slider", { name: /^Loss/ })).toHaveAttribute("aria-valuetext", /Training \d/);
  await expect(page.getByTestId("samples").locator(".output").first()).toBeVisible({ timeout: 60_000 });
});
