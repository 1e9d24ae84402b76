/** Pages as `attendo look` writes them: the built file with a record inside, opened from the disk. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

import { expect, type Locator, type Page, test as base } from "@playwright/test";

import { PLACEHOLDER } from "../plugins/single-file";

const BUILT = fileURLToPath(new URL("../../src/attendo/inspection/static/look.html", import.meta.url));

/** Put a record in as Python does: `<` escaped, so that no text can end the script. */
export function withRecord(json: string): string {
  return readFileSync(BUILT, "utf8").replace(PLACEHOLDER, () => json.replaceAll("<", "\\u003c"));
}

export function withoutRecord(): string {
  return readFileSync(BUILT, "utf8");
}

interface Fixtures {
  /** Open a page from the disk; a record is put into the built page. */
  show: (content: object | string, tab?: string) => Promise<string>;
}

export const test = base.extend<Fixtures>({
  show: async ({ page }, use, info) => {
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await use(async (content, tab = "attention") => {
      const file = info.outputPath("look.html");
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, typeof content === "string" ? content : withRecord(JSON.stringify(content)));
      await page.goto(`file://${file}#${tab}`);
      return file;
    });
    expect(errors).toEqual([]);
  },
});

export { expect };

/** The words that look and those that are looked at. */
export function tokenRows(page: Page): { looking: Locator; lookedAt: Locator } {
  const rows = page.getByTestId("arcs").getByRole("toolbar");
  return { lookedAt: rows.nth(0).getByRole("button"), looking: rows.nth(1).getByRole("button") };
}

/** The small numbers under a row of words. */
export async function numbersOf(tokens: Locator): Promise<string[]> {
  return tokens.locator(".number").allTextContents();
}
