/** The page that `attendo look` itself has written (REAL_PAGE names it), from every side. */

import { existsSync } from "node:fs";

import { expect, test } from "@playwright/test";

const file = process.env.REAL_PAGE ?? "";
test.skip(!existsSync(file), "REAL_PAGE names no page");

test("every tab of a real record opens, and nothing goes wrong", async ({ page }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(`file://${file}`);
  await expect(page.getByText("왕자는 공주를 구했다").first()).toBeVisible();
  const tabs = page.getByRole("tab");
  const count = await tabs.count();
  expect(count).toBeGreaterThanOrEqual(5);
  for (let index = 0; index < count; index += 1) {
    await tabs.nth(index).click();
    await expect(tabs.nth(index)).toHaveAttribute("aria-selected", "true");
    await expect(page.getByRole("tabpanel").filter({ visible: true })).toHaveCount(1);
  }
  expect(errors).toEqual([]);
});
