/**
 * Greedy translations per second of CPU time, one thread, in headless Chromium: batches of a sentence of 20 tokens into 20 tokens.
 *
 * Run: node web-speed.mjs FOLDER [SECONDS] in frontend/; FOLDER is that of `attendo export --to onnx` or a model's in a web page. It prints JSON:
 * sentences per second by runtime and batch size. `python -m benchmarks.web_speed` compares them with CTranslate2.
 */

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { chromium } from "@playwright/test";
import { build } from "esbuild";

const ADDRESS = "http://speed.test/";
const BATCH_SIZES = [1, 8, 32];
const LENGTH = 20;
const [folder, seconds = "1.5", runtimes = "relaxed SIMD,SIMD,ONNX Runtime"] = process.argv.slice(2);

const entry = new URL("packages/attendo-web/speed.ts", import.meta.url).pathname;
const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "iife", globalName: "speed", write: false });
const ort = dirname(createRequire(import.meta.url).resolve("onnxruntime-web/wasm"));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.route("**", (route) => {
  const name = new URL(route.request().url()).pathname.slice(1);
  if (!name) return route.fulfill({ contentType: "text/html", body: `<script>${outputFiles[0].text}</script>` });
  const parent = readdirSync(ort).includes(name) ? ort : folder;
  const contentType = name.endsWith("mjs") ? "text/javascript" : "application/octet-stream";
  return route.fulfill({ contentType, body: readFileSync(join(parent, name)) });
});
await page.goto(ADDRESS);
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
/** CPU time of the page's thread, in seconds. */
const readClock = async () => (await devtools.send("Performance.getMetrics")).metrics.find(({ name }) => name === "ThreadTime").value;

const results = {};
for (const runtime of runtimes.split(",")) {
  await page.evaluate((name) => globalThis.speed.open(name), runtime);
  results[runtime] = {};
  for (const batchSize of BATCH_SIZES) {
    const translate = (repeats) => page.evaluate((given) => globalThis.speed.translate(...given), [batchSize, LENGTH, repeats]);
    await translate(3);
    const time = async (repeats) => {
      const start = await readClock();
      await translate(repeats);
      return (await readClock()) - start;
    };
    const repeats = Math.max(1, Math.round(Number(seconds) / (await time(1))));
    results[runtime][batchSize] = (repeats * batchSize) / (await time(repeats));
  }
}
process.stdout.write(`${JSON.stringify(results)}\n`);
await browser.close();
