/** The page Forecast of a real `attendo serve` (SERVE_URL names it) that has only a series model. */

import { expect, test } from "@playwright/test";

const { SERVE_URL = "", SERVE_CSV = "", SERVE_FORECAST = "" } = process.env;
test.skip(!SERVE_CSV, "SERVE_CSV names no file");

const SLOW = { timeout: 30_000 };

test("open a file, read the forecast, look inside", async ({ page }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(SERVE_URL);
  await expect(page).toHaveURL(/#\/forecast$/);
  await page.getByLabel("Open a CSV").setInputFiles(SERVE_CSV);
  const rows = page.getByTestId("forecast").locator("tbody").getByRole("row");
  await expect(rows.first()).toBeVisible(SLOW);
  const shown = await rows.evaluateAll((found) => found.map((row) => [...row.children].map((cell) => cell.textContent.trim()).join(" ")));
  expect(shown).toEqual(SERVE_FORECAST.split("|"));
  await page.getByRole("link", { name: "Inspect in detail" }).click();
  await expect(page.getByRole("heading", { name: "Series and forecast" })).toBeVisible(SLOW);
  for (const name of ["Steps", "Positions", "Head metrics", "Attention"]) await page.getByRole("tab", { name }).click();
  await expect(page.getByTestId("arcs").getByRole("toolbar").nth(1).getByRole("button")).toHaveCount(shown.length);
  await page.getByRole("navigation").getByRole("link", { name: "Lessons" }).click();
  await expect(page.getByRole("link", { name: /attention/i }).first()).toBeVisible(SLOW);
  expect(errors).toEqual([]);
});
