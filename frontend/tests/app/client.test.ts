import { describe, expect, it } from "vitest";

import { Client } from "../../src/app/api/client";
import { ApiError, errorKindOf, parseRetryAfter } from "../../src/app/api/errors";
import { makeRecord } from "../fixtures/make-record";

interface Asked {
  url: string;
  init: RequestInit;
}

/** A server that always answers the same, and what it was asked. */
function server(body: BodyInit | null, init: ResponseInit = {}, key = "") {
  const asked: Asked[] = [];
  const fetcher: typeof fetch = (url, options = {}) => {
    asked.push({ url: String(url instanceof Request ? url.url : url), init: options });
    return Promise.resolve(new Response(body, init));
  };
  return { asked, client: new Client({ base: "http://host/below/", fetcher, key: () => key }) };
}

const json = (value: unknown, init: ResponseInit = {}, key = "") => server(JSON.stringify(value), init, key);
const request = { text: "나는", model: "ko-en", beam_size: 4 };
const translation = { text: "I", score: -1, log_prob: -1, is_finished: true, confidence: null, alternatives: [], notes: [], alignment: null, words: ["I"], source_text: "나는" };

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(() => null, (one: unknown) => one);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe("asking", () => {
  it("goes next to the page, wherever that is, and sends what is requested", async () => {
    const { client, asked } = json({ model: "ko-en", seconds: 0.1, translations: [translation], source: "ko", target: "en" });
    const answer = await client.translate(request);
    expect(answer.translations[0].text).toBe("I");
    expect(asked[0].url).toBe("http://host/below/v1/translate");
    expect(asked[0].init.method).toBe("POST");
    expect(JSON.parse(asked[0].init.body as string)).toEqual(request);
    expect(new Headers(asked[0].init.headers).get("Authorization")).toBeNull();
  });

  it("shows the key where there is one", async () => {
    const { client, asked } = json({ models: [] }, {}, "secret");
    await client.models();
    expect(new Headers(asked[0].init.headers).get("Authorization")).toBe("Bearer secret");
  });

  it("spells names of runs so that they stay names", async () => {
    const { client, asked } = json({ events: [], next: 7, state: "running" });
    await client.events("../a b?#", 7);
    expect(asked[0].url).toBe("http://host/below/v1/runs/..%2Fa%20b%3F%23/events?after=7");
  });
});

describe("answers", () => {
  it("grow without harm", async () => {
    const { client } = json({ models: [{ name: "m", source: "ko", target: "en", kind: "transformer", num_parameters: 9, has_attention: false, default: true, max_characters: 5, dev: { bleu: 1, loss: null, other: "x" }, more: 1 }] });
    expect((await client.models()).models[0]).toEqual({ name: "m", task: "translation", source: "ko", target: "en", kind: "transformer", num_parameters: 9, has_attention: false, default: true, max_characters: 5, dev: { bleu: 1, loss: null, perplexity: null }, quality: null, series: null, labels: [], vocab_sizes: null, training: null });
  });

  it("tell how sure a translation is, and on what grounds", async () => {
    const answer = (confidence: object) => ({ model: "m", seconds: 1, translations: [{ text: "x", score: 0, log_prob: 0, confidence: { probability: 0.1, mean_token_probability: 0.9, words: [], ...confidence } }] });
    const request = { text: "y", model: "m", beam_size: 1 };
    const confidence = { quality: 0.4, band: "low", is_calibrated: true, unfamiliar: { num_tokens: 9, num_unseen: 3, bits_per_character: null, max_bits_per_character: null, reasons: [] } };
    const { translations } = await json(answer(confidence)).client.translate(request);
    expect(translations[0].confidence).toMatchObject({ quality: 0.4, band: "low", unfamiliar: { num_tokens: 9, num_unseen: 3 } });
    const untold = await json(answer({})).client.translate(request);
    expect(untold.translations[0].confidence).toMatchObject({ quality: null, band: null, unfamiliar: null });
    await expect(json(answer({ band: "great" })).client.translate(request)).rejects.toThrow();
  });

  it("tell what a series model reads; it has no languages", async () => {
    const series = { columns: ["heat"], time: null, window: 3, horizon: 2, targets: ["storm"], kind: "labels", labels: ["no", "yes"] };
    const { client } = json({ models: [{ name: "sea", task: "series", source: null, target: null, max_characters: null, series: { ...series, max_rows: 9 } }] });
    expect((await client.models()).models[0]).toMatchObject({ task: "series", source: "auto", series });
  });

  it("of a forecast have as many steps as the horizon, and numbers for probabilities", async () => {
    const step = { time: "+1", label: "no", probabilities: { no: 0.9, yes: 0.1 }, values: null };
    const { client, asked } = json({ model: "sea", seconds: 0.1, window: {}, steps: [step] });
    const request = { model: "sea", columns: { heat: [1, null] } };
    expect((await client.forecast(request, 1)).steps).toEqual([step]);
    expect(asked[0].url).toBe("http://host/below/v1/forecast");
    await expect(client.forecast(request, 2)).rejects.toMatchObject({ kind: "shape" });
    const broken = json({ model: "sea", seconds: null, steps: [{ ...step, probabilities: { no: "much" } }] }).client;
    await expect(broken.forecast(request, 1)).rejects.toMatchObject({ kind: "shape" });
  });

  it.each([
    ["too few translations", { model: "m", seconds: 1, translations: [] }, "translations: 1 entries, not 0"],
    ["a text that is none", { model: "m", seconds: 1, translations: [{ ...translation, text: 3 }] }, "translations[0].text: a string"],
    ["weights that do not fit", { model: "m", seconds: 1, translations: [{ ...translation, alignment: { source_words: ["a"], target_words: ["b"], weights: [[1, 2]] } }] }, "translations[0].alignment.weights[0]: 1 entries, not 2"],
  ])("with %s are refused, and the part is named", async (_, value, detail) => {
    expect(await failure(json(value).client.translate(request))).toMatchObject({ kind: "shape", detail });
  });

  it("that are no JSON are refused", async () => expect(await failure(server("<html>").client.models())).toMatchObject({ kind: "shape" }));

  it("hold a record, and its JSON as it came", async () => {
    const { client } = json(makeRecord());
    const { record, json: text } = await client.inspect({ text: "나는 학생이다.", model: "m" });
    expect(record.tgt.text).toBe("I am a student.");
    expect(JSON.parse(text)).toMatchObject({ format: "attendo.record" });
    expect(await failure(json({ format: "attendo.record", version: 99 }).client.inspect({ text: "x", model: "m" }))).toMatchObject({ kind: "shape" });
  });
});

describe("trouble", () => {
  it.each([
    [400, "bad"],
    [401, "key"],
    [403, "key"],
    [404, "missing"],
    [413, "large"],
    [422, "bad"],
    [429, "rate"],
    [500, "internal"],
    [502, "offline"],
    [503, "busy"],
    [504, "timeout"],
  ])("%d is %s", (status, trouble) => expect(errorKindOf(status)).toBe(trouble));

  it("has the server's message and when to retry", async () => {
    const { client } = json({ error: "the queue is full; wait a little" }, { status: 503, headers: { "Retry-After": "7" } });
    const error = await failure(client.translate(request));
    expect(error).toMatchObject({ kind: "busy", detail: "the queue is full; wait a little", retryAfter: 7, isTransient: true });
  });

  it("includes the hint of the server where it is a field of its own", async () => {
    const { client } = json({ error: "the queue is full", hint: "wait a little" }, { status: 503 });
    expect(await failure(client.models())).toMatchObject({ kind: "busy", detail: "the queue is full; wait a little" });
  });

  it("generates texts at /v1/generate", async () => {
    const { client, asked } = json({ seconds: 0.1, texts: ["a b"] });
    await client.generate({ model: "m", prompt: "a", count: 1, max_tokens: 5, temperature: 1, top_p: 1, seed: 1 });
    expect(asked[0].url).toBe("http://host/below/v1/generate");
  });

  it("of a proxy says nothing in HTML", async () => {
    const { client } = server("<h1>502</h1>", { status: 502 });
    expect(await failure(client.models())).toMatchObject({ kind: "offline", detail: "" });
  });

  it("is offline where nobody answers, and an abort stays an abort", async () => {
    const broken = (error: Error) => new Client({ base: "http://host/", fetcher: () => Promise.reject(error) });
    expect(await failure(broken(new TypeError("failed to fetch")).models())).toMatchObject({ kind: "offline", isTransient: true });
    await expect(broken(new DOMException("x", "AbortError")).models()).rejects.toMatchObject({ name: "AbortError" });
  });

  it.each([
    ["7", 7],
    [" 1.5 ", 1.5],
    ["Thu, 01 Jan 1970 00:01:00 GMT", 50],
    ["Thu, 01 Jan 1970 00:00:05 GMT", 0],
    ["soon", null],
    [null, null],
  ])("waits as Retry-After says: %j", (header, seconds) => expect(parseRetryAfter(header, 10_000)).toBe(seconds));
});

describe("a stream", () => {
  const step = (text: string) => `event: token\ndata: ${JSON.stringify({ text, token: text, probability: 0.5 })}\n\n`;
  const done = `event: done\ndata: ${JSON.stringify(translation)}\n\n`;

  it("tells each step, then the whole", async () => {
    const seen: string[] = [];
    const { client } = server(`: hello\n\n${step("나")}${step("나는")}${done}`);
    const found = await client.stream(request, ({ text }) => seen.push(text));
    expect(seen).toEqual(["나", "나는"]);
    expect(found.text).toBe("I");
  });

  it("may come in pieces that cut letters", async () => {
    const bytes = new TextEncoder().encode((step("나는 학생이다") + done).replaceAll("\n", "\r\n"));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.slice(at, at + 7));
        controller.close();
      },
    });
    const seen: string[] = [];
    await server(body).client.stream(request, ({ text }) => seen.push(text));
    expect(seen).toEqual(["나는 학생이다"]);
  });

  it("may end in an error, or too early", async () => {
    expect(await failure(server(`event: error\ndata: {"error": "no"}\n\n`).client.stream(request, () => undefined))).toMatchObject({ kind: "bad", detail: "no" });
    expect(await failure(server(step("a")).client.stream(request, () => undefined))).toMatchObject({ kind: "offline" });
  });
});

describe("a document", () => {
  const file = new File(["x"], "a.docx");
  const languages = { source: "ko", target: "en" };
  const progress = (done: number) => `event: progress\ndata: ${JSON.stringify({ done, total: 3 })}\n\n`;
  const done = `event: done\ndata: ${JSON.stringify({ translatedFileUrl: "http://inner/download_file/key", notes: ["no pictures"] })}\n\n`;
  const stream = { headers: { "Content-Type": "text/event-stream; charset=utf-8" } };

  it("tells its progress, what was not kept, and is downloaded next to the page", async () => {
    const seen: number[] = [];
    const { client, asked } = server(progress(0) + progress(3) + done, stream);
    const found = await client.translateFile(file, languages, (one) => seen.push(one.done));
    expect(seen).toEqual([0, 3]);
    expect(found.notes).toEqual(["no pictures"]);
    expect(asked.map((one) => one.url)).toEqual(["http://host/below/translate_file", "http://host/below/download_file/key"]);
    expect(new Headers(asked[0].init.headers).get("Accept")).toBe("text/event-stream");
    expect((asked[0].init.body as FormData).get("target")).toBe("en");
  });

  it("also comes from a server without events", async () => {
    const { client } = json({ translatedFileUrl: "http://inner/download_file/key" });
    expect((await client.translateFile(file, languages, () => undefined)).notes).toEqual([]);
  });

  it("may end in an error, or too early", async () => {
    const ask = (body: string) => server(body, stream).client.translateFile(file, languages, () => undefined);
    expect(await failure(ask(`${progress(1)}event: error\ndata: {"error": "no"}\n\n`))).toMatchObject({ kind: "bad", detail: "no" });
    expect(await failure(ask(progress(1)))).toMatchObject({ kind: "offline" });
  });
});
