import { Buffer } from "node:buffer";

import type { Page } from "@playwright/test";

import { makeRecord } from "../tests/fixtures/make-record";
import { expect, test, tokenRows, withRecord } from "./page";

const record = makeRecord({ S: 60, T: 60, layers: 6, heads: 8, d_model: 512 });

test("60 + 60 tokens, 6 layers, 8 heads: opens and reacts at once", async ({ page, show }) => {
  const size = Buffer.byteLength(withRecord(JSON.stringify(record)));
  const start = performance.now();
  await show(record);
  await expect(tokenRows(page).looking).toHaveCount(60);
  await tokenRows(page).looking.nth(0).hover();
  await expect(page.locator(".line").first()).toBeAttached();
  const opened = performance.now() - start;

  const one = await timeHovers(page);
  await page.keyboard.press("a");
  const all = await timeHovers(page);
  console.log(
    `page ${(size / 1e6).toFixed(2)} MB; from navigation to the first hover ${opened.toFixed(0)} ms; ` +
      `a hover, one head: median ${one.median.toFixed(1)} ms, slowest ${one.slowest.toFixed(1)} ms; ` +
      `all heads: median ${all.median.toFixed(1)} ms, slowest ${all.slowest.toFixed(1)} ms`,
  );
  expect(size).toBeLessThan(5e6);
  expect(opened).toBeLessThan(3000);
  expect(one.median).toBeLessThan(100);
  expect(all.median).toBeLessThan(100);
});

test("60 + 60 tokens: every view opens quickly", async ({ page, show }) => {
  await show(record);
  const times = [];
  for (const name of ["Steps", "Beam search", "Explanations", "Embeddings", "Head metrics", "Attention"]) {
    const took = await page.getByRole("tab", { name }).evaluate(async (tab) => {
      const start = performance.now();
      (tab as HTMLElement).click();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - start;
    });
    times.push(`${name} ${took.toFixed(0)} ms`);
    expect(took, name).toBeLessThan(1500);
  }
  console.log(times.join(", "));
});

/** Point at forty words, one after the other; each time until the new picture is laid out. */
async function timeHovers(page: Page): Promise<{ median: number; slowest: number }> {
  const times = await page.getByTestId("arcs").evaluate(async (stage) => {
    const buttons = [...stage.querySelectorAll('[role="toolbar"]')[1].querySelectorAll("button")].slice(0, 40);
    const taken = [];
    for (const button of buttons) {
      const start = performance.now();
      button.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
      await Promise.resolve(); // the page changes in a microtask
      stage.getBoundingClientRect(); // and is laid out here
      taken.push(performance.now() - start);
      await new Promise((done) => requestAnimationFrame(done));
    }
    return taken;
  });
  times.sort((a, b) => a - b);
  return { median: times[times.length >> 1], slowest: times.at(-1)! };
}
