/** Whether a page is fit for everyone, once it has come to rest: what shows for a moment only is not a finding. */

import { AxeBuilder } from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";

const PATIENCE = { timeout: 10_000 };

/** Nothing that axe calls serious or critical. */
export async function expectNothingSerious(page: Page, screen = ""): Promise<void> {
  await expect(async () => {
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`), screen).toEqual([]);
  }).toPass(PATIENCE);
}

/** Nothing overflows at the side. */
export async function expectToFit(page: Page, width: number, screen = ""): Promise<void> {
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: screen, ...PATIENCE }).toBeLessThanOrEqual(width);
}
