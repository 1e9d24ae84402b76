/**
 * Makes the pictures of the pages in docs/pictures/ anew, from a running server with the quickstart's model, its run and a
 * new memory, and from a web page of the model:
 *
 *     attendo serve runs/ko-en --runs runs --memory new.db &
 *     attendo export runs/ko-en --to web -o page && python -m http.server --directory page 8766 &
 *     npm run pictures -- http://127.0.0.1:8765 http://127.0.0.1:8766 [FONT] [NAME...]
 *
 * FONT is a font file with Korean letters, for machines that have none; NAME a picture, without any all are made.
 */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { chromium } from "@playwright/test";

const PICTURES_DIR = fileURLToPath(new URL("../docs/pictures/", import.meta.url));
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const HANGUL = "U+1100-11FF,U+3000-303F,U+3130-318F,U+AC00-D7A3";
const SHORT = "왕자는 공주를 구했다.";
const LONG = "주말에 날씨가 추우면 관광객들은 길에서 달리지 않을 것이다.";
const TWO = "왕자는 숲에서 공주를 구했다. 소녀는 학생이다.";

const PAGE = ["왕자는 숲에서 <b>공주</b>를 구했다.", "<a href='a.html'>소녀</a>는 학생이다.", "12345 🙂"];

const [server, site, font, ...names] = process.argv.slice(2);
if (!server || !site) throw new Error("usage: npm run pictures -- SERVER SITE [FONT] [NAME...]");
const [base, siteBase] = [server, site].map((address) => (address.endsWith("/") ? address : `${address}/`));

/** The offline inspector with a sentence, as `attendo look` writes it. */
async function lookPage(text, studies = {}) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(new URL("v1/inspect", base), { method: "POST", headers, body: JSON.stringify({ text, ...studies }) });
  if (!response.ok) throw new Error(await response.text());
  const record = (await response.text()).replaceAll("<", "\\u003c");
  const template = await (await fetch(new URL("app/look.html", base))).text();
  return template.replace("__ATTENDO_RECORD__", () => record);
}

const browser = await chromium.launch({ ...(existsSync(CHROMIUM) ? { executablePath: CHROMIUM } : {}), args: ["--no-sandbox"] });

const isWanted = (name) => !names.length || names.includes(name);

async function take(name, options) {
  if (isWanted(name)) await takePicture(name, options);
}

/** Take a picture of a page: at an address of the server, or of the offline inspector. */
async function takePicture(name, { width, height, lang = "en", theme = "light", path, html, act, element, from = base, ...options }) {
  // The policy of the pages would block the font.
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, locale: lang, bypassCSP: true, ...options });
  const page = await context.newPage();
  if (html) await page.route("**/look.html", (route) => route.fulfill({ body: html, contentType: "text/html; charset=utf-8" }));
  await page.goto(new URL(html ? "look.html" : path, from).href);
  if (font) {
    const url = `data:font/woff2;base64,${readFileSync(font).toString("base64")}`;
    await page.addStyleTag({ content: `@font-face{font-family:"Noto Sans KR";src:url(${url});unicode-range:${HANGUL}}` });
  }
  await page.waitForLoadState("networkidle");
  await act?.(page);
  await page.evaluate(() => document.fonts.ready);
  await (element?.(page) ?? page).screenshot({ path: `${PICTURES_DIR}${name}.png` });
  await context.close();
}

const tab = (name) => (page) => page.getByRole("tab", { name }).click();
const longPage = await lookPage(LONG, { attribution: true, ablation: true });
await take("look_attention", {
  width: 1100,
  height: 1000,
  html: await lookPage(SHORT),
  act: (page) => page.getByTestId("arcs").getByRole("button", { name: "princess" }).hover(),
});
await take("look_beam", { width: 1200, height: 640, html: longPage, act: tab("Beam search") });
await take("look_phone", { width: 400, height: 800, deviceScaleFactor: 1.5, isMobile: true, hasTouch: true, lang: "ko-KR", theme: "dark", html: longPage, act: tab("설명") });
await take("serve_translate", {
  width: 1280,
  height: 900,
  path: `#/translate?q=${encodeURIComponent(TWO)}`,
  act: (page) => page.getByTestId("translation").getByRole("button", { name: "princess" }).first().hover(),
});
await take("serve_document", {
  width: 1280,
  height: 900,
  path: "#/translate",
  act: async (page) => {
    const text = PAGE.map((one) => `<p>${one}</p>`).join("\n");
    await page.getByLabel("Open a file").setInputFiles({ name: "story.html", mimeType: "text/html", buffer: Buffer.from(text) });
    await page.getByRole("button", { name: "Download story.en.html" }).waitFor();
  },
  element: (page) => page.getByRole("region", { name: "story.html" }),
});
await take("serve_run", { width: 1280, height: 2068, path: "#/runs/ko-en", act: (page) => page.getByTestId("curve").first().waitFor() });

/** Save a correction, as the page does. */
async function correct(source_text, target_text, author) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ source_text, target_text, author, source: "ko", target: "en" });
  const response = await fetch(new URL("v1/corrections", base), { method: "POST", headers, body });
  if (!response.ok) throw new Error(await response.text());
}
if (isWanted("serve_corrections")) {
  await correct("왕자는 숲에서 공주를 만났다.", "The prince met the royal lady in the woods.", "Kim");
  await take("serve_corrections", {
    width: 1280,
    height: 760,
    path: `#/translate?q=${encodeURIComponent("소녀는 숲에서 공주를 만났다.")}`,
    act: (page) => page.getByTestId("memory-matches").waitFor(),
  });
}
await take("web_page", {
  width: 1280,
  height: 1080,
  path: "",
  from: siteBase,
  serviceWorkers: "block",
  act: async (page) => {
    await page.getByRole("textbox").fill(TWO);
    await page.locator(".sentence").nth(1).waitFor();
    await page.locator(".sentence").first().click();
    await page.getByTestId("arcs").waitFor();
  },
});
await take("web_page_machine", {
  width: 1280,
  height: 1000,
  path: "#machine",
  from: siteBase,
  serviceWorkers: "block",
  act: async (page) => {
    await page.getByTestId("machine").locator("[data-stage=cross]").click();
    await page.getByTestId("dot-product").waitFor();
  },
});
await browser.close();
