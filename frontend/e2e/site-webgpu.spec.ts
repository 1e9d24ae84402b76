/** The page of `attendo export --to web --webgpu`, on a graphics processor that the browser emulates. */

import { readFileSync } from "node:fs";
import { extname, join } from "node:path";

import { expect, type Page, test } from "@playwright/test";

const FOLDER = process.env.SITE_WEBGPU_FOLDER ?? "";
const LINES = (process.env.SITE_LINES ?? "").split("|");
const TRANSLATIONS = (process.env.SITE_TRANSLATIONS ?? "").split("|");
/** WebGPU needs https, or this name. */
const ADDRESS = "http://localhost/";
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json" };

test.use({
  serviceWorkers: "block",
  launchOptions: async ({ launchOptions }, use) => {
    const args = [...(launchOptions.args ?? []), "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"];
    await use({ ...launchOptions, args });
  },
});
test.setTimeout(120_000);
test.skip(!FOLDER, "needs an exported page: SITE_WEBGPU_FOLDER");

async function open(page: Page, query: string, broken: RegExp | null = null): Promise<string[]> {
  const paths: string[] = [];
  await page.route("**", async (route) => {
    const path = new URL(route.request().url()).pathname.replace(/^\/$/, "/index.html");
    paths.push(path);
    if (broken?.test(path)) return route.fulfill({ status: 404 });
    return route.fulfill({ body: readFileSync(join(FOLDER, path)), contentType: TYPES[extname(path)] ?? "application/octet-stream" });
  });
  await page.goto(ADDRESS + query);
  return paths;
}

async function hasAdapter(page: Page): Promise<boolean> {
  return page.evaluate(async () => {
    const { gpu } = navigator as unknown as { gpu?: { requestAdapter: () => Promise<unknown> } };
    return "Suspending" in WebAssembly && !!(await gpu?.requestAdapter());
  });
}

test("with ?runtime=webgpu it translates as Python does, and names what computes", async ({ page }) => {
  await open(page, "?runtime=webgpu");
  test.skip(!(await hasAdapter(page)), "this browser emulates no graphics processor");
  const output = page.locator(".output");
  await expect(output).toHaveText(TRANSLATIONS[0]!, { timeout: 60_000 });
  await expect(page.getByRole("status").first()).toContainText("(WebGPU)");
  await page.getByRole("textbox").fill(LINES.slice(0, 8).join("\n"));
  await expect(output).toHaveText(TRANSLATIONS.slice(0, 8).join("\n"), { useInnerText: true, timeout: 60_000 });
  await page.locator(".sentence").first().click();
  await expect(page.getByRole("tab").first()).toBeVisible();
  await page.getByText("About this model").click();
  await expect(page.getByRole("definition").last()).toHaveText("WebGPU");
});

test("a small model does not load ONNX Runtime", async ({ page }) => {
  const paths = await open(page, "");
  await expect(page.locator(".output")).toHaveText(TRANSLATIONS[0]!);
  await expect(page.getByRole("status").first()).toContainText("(WebAssembly)");
  expect(paths.filter((path) => path.startsWith("/webgpu"))).toEqual([]);
});

test("WebAssembly is used if WebGPU fails, and the page gives the reason", async ({ page }) => {
  await open(page, "?runtime=webgpu", /webgpu/);
  test.skip(!(await hasAdapter(page)), "this browser emulates no graphics processor");
  await expect(page.locator(".output")).toHaveText(TRANSLATIONS[0]!);
  await page.getByText("About this model").click();
  await expect(page.getByRole("definition").last()).toHaveText("WebAssembly, since WebGPU failed: webgpu/ort.mjs: HTTP 404");
});
