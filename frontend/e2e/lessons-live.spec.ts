/** The lessons of a real server (LESSON_PLAN names a file that tells where, and what Python computes): every line must be read on the page. */

import { existsSync, readFileSync } from "node:fs";

import { type BrowserContext, expect, type Locator, type Page, test } from "@playwright/test";

interface Change {
  name: string;
  kind: "number" | "slider" | "grid" | "switch" | "choice" | "text";
  value: string;
  /** Of a matrix: row and column. */
  at: string;
  /** Lines that were not there before. */
  fresh: string[];
  lines: string[];
}

interface Plan {
  url: string;
  lang: "en" | "ko";
  lessons: { number: number; title: string; quiet: string[]; ready: string[]; lines: string[]; figures: string[]; changes: Change[]; pictures: number | null }[];
}

const { LESSON_PLAN = "" } = process.env;
const NONE: Plan = { url: "", lang: "en", lessons: [] };
const plan = existsSync(LESSON_PLAN) ? (JSON.parse(readFileSync(LESSON_PLAN, "utf8")) as Plan) : NONE;
test.skip(!plan.url, "LESSON_PLAN names no plan");
/** Every wait ends soon: what does not come is named, not waited for. */
const SOON = { timeout: 10_000, intervals: [50] };
const PICTURES = { timeout: 30_000 };
const NEXT = { en: "Next step", ko: "다음 단계" };

// One page for all: each lesson is opened as a reader does it, without loading the application again.
let context: BrowserContext;
let page: Page;
const errors: string[] = [];

test.beforeAll(async ({ browser }) => {
  context = await browser.newContext({ locale: plan.lang === "ko" ? "ko-KR" : "en-US", viewport: { width: 1280, height: 900 } });
  page = await context.newPage();
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
});
test.afterEach(() => expect(errors).toEqual([]));
test.afterAll(() => context.close());

/** One kind of minus, one kind of space: as Python has it. */
function normalize(text: string): string {
  return text.replaceAll("\u2212", "-").replace(/\s+/g, " ");
}

function missing(lines: string[], text: string): string[] {
  return lines.filter((line) => !text.includes(line));
}

/** What is on the screen, with the plain text of the formulas. */
async function textOf(content: Locator): Promise<string> {
  const formulas = await content.locator("math").evaluateAll((all) => all.map((one) => one.getAttribute("alttext") ?? ""));
  return normalize([await content.innerText(), ...formulas].join("\n"));
}

/** All that is content: the values of every chart opened, every step gone through. Done within the page: each step asked for from here would cost a trip. */
async function readAll(content: Locator): Promise<string> {
  const texts = await content.evaluate(async (article, next) => {
    const settle = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const read = async (part: HTMLElement) => {
      for (const one of part.querySelectorAll("details")) one.open = true;
      for (let tries = 0; tries < 100 && part.querySelector("details:not(:has(table))"); tries++) await settle();
      // A formula is typeset: its plain text is an attribute.
      return [part.innerText, ...[...part.querySelectorAll("math")].map((one) => one.getAttribute("alttext"))].join("\n");
    };
    const found = [await read(article as HTMLElement)];
    for (const frames of article.querySelectorAll<HTMLElement>("[data-testid=frames]")) {
      const slider = frames.querySelector<HTMLInputElement>("input[type=range]")!;
      slider.value = "0";
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      await settle();
      found.push(await read(frames));
      for (const button = frames.querySelector<HTMLElement>(`[aria-label="${next}"]`)!; button.ariaDisabled !== "true"; ) {
        button.click();
        await settle();
        found.push(await read(frames));
      }
    }
    return found;
  }, NEXT[plan.lang]);
  return normalize(texts.join("\n"));
}

async function make(change: Pick<Change, "name" | "kind" | "value" | "at">): Promise<void> {
  const field = page.locator(`[data-input="${change.name}"]`);
  switch (change.kind) {
    case "slider":
      return field.getByRole("slider").press("End");
    case "number":
      return field.getByRole("textbox").fill(change.value);
    case "grid":
      return field.locator(`[data-at="${change.at}"]`).fill(change.value);
    case "text":
      return field.getByRole("textbox").fill(change.value);
    case "switch":
      return field.getByRole("switch").click();
    case "choice":
      if (await field.locator("select").count()) return void (await field.locator("select").selectOption(change.value));
      return field.locator("label", { has: page.locator(`input[value="${change.value}"]`) }).click();
  }
}

for (const lesson of plan.lessons) {
  test(`${plan.lang} ${lesson.number} ${lesson.title}`, async () => {
    await page.goto(`${plan.url}#/lessons/${lesson.number}`);
    const whole = page.locator(`[data-testid=lesson][data-number="${lesson.number}"]`);
    const content = whole.locator("[data-testid=lesson-content][aria-busy=false]");
    await expect(whole.getByRole("heading", { level: 1 })).toHaveText(lesson.title, { timeout: SOON.timeout });
    for (const name of lesson.quiet) await make({ name, kind: "switch", value: "", at: "" });
    const arrived = async (lines: string[]) => expect.poll(async () => ((await content.count()) ? missing(lines, await textOf(content)) : lines), SOON).toEqual([]);
    await arrived(lesson.ready);
    const text = await readAll(content);
    expect(missing(lesson.figures, text)).toEqual([]);
    expect(missing(lesson.lines, text)).toEqual([]);

    for (const change of lesson.changes) {
      expect(missing(change.fresh, await textOf(content)), "nothing new yet").not.toEqual([]);
      await make(change);
      await arrived(change.fresh);
      expect(missing(change.lines, await readAll(content)), `${change.name} ${change.value}`).toEqual([]);
    }

    if (lesson.pictures === null) return;
    const own = whole.getByTestId("server-model");
    await own.scrollIntoViewIfNeeded();
    const part = own.locator(".part[aria-busy=false]");
    await expect(part).toBeVisible(PICTURES);
    const figures = part.getByTestId("figure");
    await expect(figures).toHaveCount(lesson.pictures);
    const widest = (figure: Locator) => figure.locator("svg, canvas, ol").evaluateAll((all) => Math.max(0, ...all.map((one) => one.getBoundingClientRect().width)));
    for (const figure of await figures.all()) await expect.poll(() => widest(figure), SOON).toBeGreaterThan(60);
  });
}
