/**
 * Size of an exported page, and how soon it has translated its example in headless Chromium, with an empty cache.
 *
 * Run: node site-speed.mjs FOLDER [REPEATS], in frontend/; FOLDER is that of `attendo export --to web --example TEXT`.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

import { chromium } from "@playwright/test";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml" };
const [folder, repeats = "5"] = process.argv.slice(2);

const files = readdirSync(folder, { recursive: true }).map((name) => join(folder, name));
const bytes = files.filter((name) => statSync(name).isFile()).reduce((sum, name) => sum + statSync(name).size, 0);
process.stdout.write(`size: ${(bytes / 1e6).toFixed(2)} MB\n`);

const server = createServer((request, response) => {
  const name = request.url === "/" ? "/index.html" : request.url;
  try {
    const content = readFileSync(join(folder, name));
    response.setHeader("content-type", TYPES[extname(name)] ?? "application/octet-stream").end(content);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const seconds = [];
for (let run = 0; run < Number(repeats); run++) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "commit" });
  const first = await page.waitForFunction(() => document.querySelector(".output")?.textContent && performance.now() / 1000);
  seconds.push(await first.jsonValue());
  await context.close();
}
seconds.sort((one, other) => one - other);
process.stdout.write(`first translation: median ${seconds[seconds.length >> 1].toFixed(1)} s, from ${seconds[0].toFixed(1)} to ${seconds.at(-1).toFixed(1)} s\n`);
await browser.close();
server.close();
