/** The page of `attendo export --to web`, from static files: no server of ours answers anything. */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

import AxeBuilder from "@axe-core/playwright";
import { expect as plainExpect, type Page, test } from "@playwright/test";

const FOLDER = process.env.SITE_FOLDER ?? "";
const FILE = process.env.SITE_FILE ?? "";
/** Lines to translate, and what Python says of them. */
const LINES = (process.env.SITE_LINES ?? "").split("|");
const TRANSLATIONS = (process.env.SITE_TRANSLATIONS ?? "").split("|");
const ADDRESS = "http://site.test/";
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json" };

/** A busy machine needs its time. */
const expect = plainExpect.configure({ timeout: 30_000 });
test.setTimeout(90_000);
test.skip(!FOLDER, "needs an exported page: SITE_FOLDER");

async function open(page: Page, fragment = ""): Promise<{ outside: string[]; paths: string[] }> {
  const outside: string[] = [];
  const paths: string[] = [];
  await page.context().route("**", async (route) => {
    const url = new URL(route.request().url());
    if (url.host !== "site.test") {
      outside.push(url.href);
      return route.abort();
    }
    const path = join(FOLDER, normalize(url.pathname === "/" ? "/index.html" : url.pathname));
    paths.push(url.pathname);
    try {
      await route.fulfill({ body: readFileSync(path), contentType: TYPES[extname(path)] ?? "application/octet-stream" });
    } catch {
      await route.fulfill({ status: 404 });
    }
  });
  await page.goto(ADDRESS + fragment);
  return { outside, paths };
}

test("it translates as Python does, without any server", async ({ page }) => {
  const { outside } = await open(page);
  const output = page.locator(".output");
  await expect(output).not.toBeEmpty();
  await page.getByRole("textbox").fill(LINES.join("\n"));
  await expect(output).toHaveText(TRANSLATIONS.join("\n"), { useInnerText: true });
  expect(outside).toEqual([]);
});

test("words that the vocabulary lacks are named", async ({ page }) => {
  await open(page);
  await expect(page.locator(".output")).not.toBeEmpty();
  await page.getByRole("textbox").fill("☃☃ ♬ ☃☃");
  await expect(page.getByTestId("unknown")).toContainText(": ☃☃, ♬.");
  await page.getByRole("textbox").fill("");
  await expect(page.getByTestId("unknown")).toHaveCount(0);
});

test("every head of a sentence that one types is shown", async ({ page }) => {
  await open(page);
  await page.getByRole("textbox").fill(LINES[0]!);
  const sentence = page.locator(".sentence");
  await expect(sentence).toHaveCount(1);
  await expect(sentence).toContainText(TRANSLATIONS[0]!);
  await sentence.click();
  await expect(page.getByRole("tab").first()).toBeVisible();
  await page.getByRole("tab", { name: "Beam search" }).click();
  await expect(page.getByRole("tabpanel").last()).toContainText(TRANSLATIONS[0]!);
});

test("one file opens from the disk, without a web server", async ({ page }) => {
  test.skip(!FILE, "needs a page in one file: SITE_FILE");
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url().slice(0, 8)));
  await page.goto(`file://${FILE}`);
  await expect(page.locator(".output")).not.toBeEmpty();
  expect(requests.filter((url) => !/^(data|blob):/.test(url))).toEqual(["file:///"]);
  await page.locator(".sentence").click();
  await expect(page.getByRole("tab").first()).toBeVisible();
  await page.getByText("The whole machine at work").click();
  await expect(page.getByTestId("machine-drawing")).toBeVisible();
});

test("the whole machine works on the example, step by step", async ({ page }) => {
  const { paths } = await open(page);
  await expect(page.locator(".output")).not.toBeEmpty();
  expect(paths).not.toContain("/models/1/machine.json"); // only those who open it load it
  await page.getByText("The whole machine at work").click();
  const machine = page.getByTestId("machine");
  const written = machine.getByTestId("written").locator(".word");
  await expect(written.first()).toHaveText("…");
  await machine.getByRole("button", { name: "Play" }).focus();
  await page.keyboard.press("End");
  const pieces = await written.allTextContents();
  const drawn = pieces.slice(0, -1).join("").replaceAll(/[ ␣]/g, "");
  expect(drawn).not.toBe("");
  expect(TRANSLATIONS[0]!.replaceAll(" ", "")).toContain(drawn); // long ones are cut
  await machine.locator("[data-stage=cross]").press("Enter");
  await expect(machine.getByTestId("dot-product")).toBeVisible();
  await expect(machine.locator("a")).toHaveCount(0);
});

test("the lesson embeds the drawing without loading the model", async ({ page }) => {
  const { outside, paths } = await open(page, "#machine");
  await expect(page.getByTestId("machine-drawing")).toBeVisible();
  await expect(page.getByRole("textbox")).toHaveCount(0);
  expect(paths.filter((path) => /\.(onnx|model)$/.test(path))).toEqual([]);
  expect(outside).toEqual([]);
});

test("after one visit it opens and translates without a network", async ({ page, context }) => {
  const server = createServer((request, response) => {
    const name = request.url === "/" ? "/index.html" : (request.url ?? "");
    response.setHeader("content-type", TYPES[extname(name)] ?? "application/octet-stream");
    response.end(readFileSync(join(FOLDER, normalize(name))));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await page.goto(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`);
  const output = page.locator(".output");
  await expect(output).not.toBeEmpty();
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  const countKept = () => page.evaluate(async () => (await (await caches.open((await caches.keys())[0]!)).keys()).filter(({ url }) => /models\/1/.test(url)).length);
  const { files } = (JSON.parse(readFileSync(join(FOLDER, "models.json"), "utf8")) as { models: { files: object }[] }).models[0]!;
  await plainExpect.poll(countKept).toBe(Object.keys(files).filter((name) => name !== "tokenizer.json").length);
  server.close();
  server.closeAllConnections();
  await context.setOffline(true);
  await page.reload();
  await expect(output).not.toBeEmpty();
});

test("heads are switched off, ablated, and tokens are sampled", async ({ page }) => {
  await open(page);
  const output = page.locator(".output");
  await page.getByRole("textbox").fill(LINES[0]!);
  await expect(output).toHaveText(TRANSLATIONS[0]!);
  await page.getByText("Switch heads off").click();
  const heads = page.getByRole("group", { name: /^Cross/ }).getByRole("button");
  const count = await heads.count();
  for (let head = 0; head < count; head++) await heads.nth(head).click();
  await expect(output).not.toHaveText(TRANSLATIONS[0]!);
  await page.getByRole("button", { name: "Switch all heads on" }).press("Enter");
  await expect(output).toHaveText(TRANSLATIONS[0]!);
  await page.locator(".sentence").click();
  await page.getByRole("tab", { name: "Explanations" }).click();
  await page.getByRole("button", { name: "Compute it now" }).click();
  await page.getByRole("button", { name: /^Show all/ }).or(page.getByTestId("ablation")).first().click();
  await expect(page.getByTestId("ablation").getByRole("listitem").first()).toBeVisible();
  await page.getByLabel("Temperature").fill("2");
  await expect(output).not.toHaveText(TRANSLATIONS[0]!);
  await expect(page.getByLabel("Beam size")).toBeDisabled();
});

test("another model is chosen by its pair of languages, and its name if two have the same", async ({ page }) => {
  await open(page);
  await expect(page.locator(".output")).not.toBeEmpty();
  const models = page.getByLabel("Model", { exact: true });
  await expect(models.getByRole("option").last()).toHaveText(/^Korean → English \(.*\(2\)\)$/);
  await models.selectOption({ index: 1 });
  await expect(page.locator(".output")).not.toBeEmpty();
  await expect(models).toHaveValue(/\(2\)$/);
});

test("a browser without SIMD gets an explanation", async ({ page }) => {
  await page.addInitScript(() => (WebAssembly.validate = () => false));
  await open(page);
  await expect(page.getByRole("alert")).toContainText("no WebAssembly with SIMD");
});

test("a file that is missing is named, with a hint", async ({ page }) => {
  await open(page);
  await page.context().route("**/models/1/decoder.onnx", (route) => route.fulfill({ status: 404 }));
  await page.reload();
  await expect(page.getByRole("alert")).toContainText("decoder.onnx: HTTP 404");
  await page.context().unroute("**/models/1/decoder.onnx");
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.locator(".output")).not.toBeEmpty();
});

for (const [locale, colorScheme] of [["en-US", "light"], ["ko-KR", "dark"]] as const) {
  test.describe(`${locale}, ${colorScheme}`, () => {
    test.use({ locale, colorScheme, viewport: { width: 360, height: 780 } });
    test("has nothing serious for axe to find, and fits a phone", async ({ page }) => {
      await open(page);
      await page.getByRole("textbox").fill(LINES[0]!);
      await page.locator(".sentence").click();
      await expect(page.getByRole("tab").first()).toBeVisible();
      await page.getByText(/^(The whole machine at work|움직이는 전체 구조)$/).click();
      await expect(page.getByTestId("machine-drawing")).toBeVisible();
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    });
  });
}
