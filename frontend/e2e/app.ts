/** The built application with a server that is made up: every answer is the test's own. */

import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

import { expect, type Request, test as base } from "@playwright/test";

import { makeRecord } from "../tests/fixtures/make-record";

const STATIC = fileURLToPath(new URL("../../src/attendo/serving/static/", import.meta.url));
const ORIGIN = "http://attendo.test";
const TYPES: Record<string, string> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".webmanifest": "application/manifest+json" };
/** As the server sets it: what does not keep to it does not run here either. */
const POLICY = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  /** Written as JSON, unless it is a text. */
  body: unknown;
  /** Milliseconds. */
  after?: number;
}

export type Handler = (request: Request) => Answer | Promise<Answer>;

export const model = (name = "ko-en", source = "ko", target = "en", more: object = {}) => ({
  name,
  source,
  target,
  kind: "transformer",
  num_parameters: 918528,
  has_attention: true,
  default: name === "ko-en",
  max_characters: 100,
  dev: { loss: 0.08, perplexity: 1.08, bleu: 96.5 },
  ...more,
});

/** Says the words of the text backwards, in English letters; sure of all but the last. */
export function translation(text: string, prefix = "") {
  const KNOWN: Record<string, string> = { "나는": "I", "학생이다.": "am a student.", "왕자는": "The prince", "공주를": "the princess", "구했다.": "saved." };
  const translated = prefix || text.split(/\s+/).map((word) => KNOWN[word] ?? word.toUpperCase()).join(" ");
  const words = (prefix ? `${prefix} indeed` : translated).split(" ");
  const source_words = text.split(/\s+/);
  return {
    text: words.join(" "),
    source_text: text,
    score: -0.2,
    log_prob: -0.3,
    is_finished: true,
    confidence: { probability: 0.5, mean_token_probability: 0.81, quality: 0.96, band: "high", unfamiliar: null, words: words.map((word, index) => ({ text: word, probability: [0.99, 0.8, 0.55, 0.2][index] ?? 0.95 })) },
    alternatives: prefix ? [] : [{ text: `${words.slice(0, -1).join(" ")} teacher.`, score: -1.5, log_prob: -2, is_finished: true, confidence: null }],
    notes: [],
    alignment: { source_words, target_words: words, weights: words.map((_, index) => source_words.map((_, at) => (at === index % source_words.length ? 0.9 : 0.1 / source_words.length))) },
    words,
  };
}

export interface Asked {
  text: string | string[];
  prefix?: string;
  label?: string;
  repair?: boolean;
  model: string;
  beam_size?: number;
  glossary?: Record<string, string>;
  target_text?: string;
  ablation?: boolean;
}

export const asked = (request: Request): Asked => request.postDataJSON() as Asked;

const HANDLERS: Record<string, Handler> = {
  "GET /v1/models": () => ({ body: { models: [model()] } }),
  "POST /v1/translate": (request) => {
    const { text, prefix } = asked(request);
    return { body: { model: "ko-en", source: "ko", target: "en", seconds: 0.05, translations: [text].flat().map((one) => translation(one, prefix)) } };
  },
  "POST /detect": () => ({ body: [] }),
  "POST /v1/alternatives": () => ({
    body: {
      words: [
        { text: "am", probability: 0.9, prefix: "I am" },
        { text: "was", probability: 0.08, prefix: "I was" },
      ],
    },
  }),
  "POST /v1/inspect": (request) => {
    const record = makeRecord();
    return { body: { ...record, attribution: null, ablation: asked(request).ablation ? record.ablation : null } };
  },
  "GET /v1/runs": () => ({ body: { runs: [] } }),
  "GET /v1/builds": () => ({ body: { builds: [] } }),
  "GET /v1/lessons": () => ({ body: { lessons: [{ number: 1, title: "From RNN to attention", summary: "Why one vector is too little." }] } }),
};

interface Fixtures {
  /** Open the application at an address; the given answers replace the usual ones. */
  open: (hash: string, handlers?: Record<string, Handler>) => Promise<void>;
  /** Errors of the console that this test brings about on purpose. */
  expected: RegExp | null;
}

export const test = base.extend<Fixtures>({
  expected: [null, { option: true }],
  open: async ({ page, expected }, use) => {
    const errors: string[] = [];
    const handlers = { ...HANDLERS };
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.route(`${ORIGIN}/**`, async (route, request) => {
      const { pathname } = new URL(request.url());
      const handler = handlers[`${request.method()} ${pathname}`];
      if (!handler) return route.fulfill(file(pathname));
      const { status = 200, headers = {}, body, after = 0 } = await handler(request);
      if (after) await new Promise((resolve) => setTimeout(resolve, after));
      const text = typeof body === "string" ? body : JSON.stringify(body);
      // The page may have called it off by now.
      await route.fulfill({ status, headers: { "Content-Type": "application/json", ...headers }, body: text }).catch(() => undefined);
    });
    await use(async (hash, own = {}) => {
      Object.assign(handlers, own);
      await page.goto(`${ORIGIN}/${hash}`);
    });
    expect(errors.filter((error) => !expected?.test(error))).toEqual([]);
  },
});

function file(pathname: string): { status: number; body: Buffer | string; headers: Record<string, string> } {
  const path = pathname === "/" ? "index.html" : pathname.slice(1);
  try {
    const headers = { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream", "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff" };
    return { status: 200, body: readFileSync(STATIC + path), headers };
  } catch {
    return { status: 404, body: '{"error": "not found"}', headers: {} };
  }
}

export { expect };
