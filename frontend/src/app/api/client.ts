/** The server, as the page talks to it. Every answer is checked; every failure is an ApiError. */

import { RecordError } from "../../inspector/record/errors";
import { readRecord } from "../../inspector/record/parse";
import type { Reader } from "../../inspector/record/schema";
import type { LookRecord } from "../../inspector/record/types";
import { ApiError, isAbort, readRetryAfter, troubleOf } from "./errors";
import { eventsAnswer, fileAnswer, forecastAnswer, models, nextWords, read, runDetail, runs, sampleAnswer, streamStep, translateAnswer, translated } from "./schemas";
import { serverEvents } from "./sse";
import type { EventsAnswer, ForecastAnswer, ForecastWish, InspectWish, ModelInfo, NextWord, RunDetail, RunInfo, SampleAnswer, SampleWish, StreamStep, TranslateAnswer, TranslateWish, Translated } from "./types";

export interface Look {
  record: LookRecord;
  /** As it came, to be kept as a file. */
  json: string;
}

export interface ClientOptions {
  /** Where the page stands: the API lies beside it, also behind a proxy that adds a path. */
  base: string;
  key?: () => string;
  fetcher?: typeof fetch;
}

export class Client {
  readonly #base: string;
  readonly #key: () => string;
  readonly #fetch: typeof fetch;

  constructor({ base, key = () => "", fetcher = fetch.bind(globalThis) }: ClientOptions) {
    this.#base = base;
    this.#key = key;
    this.#fetch = fetcher;
  }

  models(signal?: AbortSignal): Promise<ModelInfo[]> {
    return this.#get("v1/models", models, signal);
  }

  translate(wish: TranslateWish, signal?: AbortSignal): Promise<TranslateAnswer> {
    const numTexts = typeof wish.text === "string" ? 1 : wish.text.length;
    return this.#post("v1/translate", wish, translateAnswer(numTexts), signal);
  }

  /** Say each step as it comes; the last word is the whole translation. */
  async stream(wish: TranslateWish, onstep: (step: StreamStep) => void, signal?: AbortSignal): Promise<Translated> {
    const answer = await this.#ask("v1/stream", { ...posted(wish), signal: signal ?? null });
    if (!answer.body) throw new ApiError("shape", "an empty stream");
    for await (const { event, data } of listen(answer.body)) {
      if (event === "token") onstep(read(streamStep, data));
      if (event === "done") return read(translated, data);
      if (event === "error") throw new ApiError("bad", errorOf(data));
    }
    throw new ApiError("offline", "the stream ended early");
  }

  /** What could stand next after these words of a translation. */
  nextWords(wish: { text: string; model: string; prefix: string; top: number }, signal?: AbortSignal): Promise<NextWord[]> {
    return this.#post("v1/alternatives", wish, nextWords, signal);
  }

  inspect(wish: InspectWish, signal?: AbortSignal): Promise<Look> {
    return this.#look("v1/inspect", wish, signal);
  }

  /** What comes behind the rows of a series. */
  forecast(wish: ForecastWish, horizon: number, signal?: AbortSignal): Promise<ForecastAnswer> {
    return this.#post("v1/forecast", wish, forecastAnswer(horizon), signal);
  }

  explainForecast(wish: ForecastWish, signal?: AbortSignal): Promise<Look> {
    return this.#look("v1/forecast/explain", wish, signal);
  }

  /** Texts that go on with a beginning. */
  sample(wish: SampleWish, signal?: AbortSignal): Promise<SampleAnswer> {
    return this.#post("v1/sample", wish, sampleAnswer, signal);
  }

  async #look(path: string, wish: object, signal?: AbortSignal): Promise<Look> {
    const answer = await this.#ask(path, { ...posted(wish), signal: signal ?? null });
    const json = await bodyOf(answer);
    try {
      return { record: readRecord(parse(json)), json };
    } catch (error) {
      if (error instanceof RecordError) throw new ApiError("shape", error.message);
      throw error;
    }
  }

  runs(signal?: AbortSignal): Promise<RunInfo[]> {
    return this.#get("v1/runs", runs, signal);
  }

  run(name: string, signal?: AbortSignal): Promise<RunDetail> {
    return this.#get(`v1/runs/${encodeURIComponent(name)}`, runDetail, signal);
  }

  /** What the run has written since line `after`. */
  events(name: string, after: number, signal?: AbortSignal): Promise<EventsAnswer> {
    return this.#get(`v1/runs/${encodeURIComponent(name)}/events?after=${after}`, eventsAnswer, signal);
  }

  /** Have a file translated by the server as it is, markup and all. */
  async translateFile(file: File, languages: { source: string; target: string }, signal?: AbortSignal): Promise<Blob> {
    const body = new FormData();
    body.set("file", file);
    body.set("source", languages.source);
    body.set("target", languages.target);
    const answer = await this.#ask("translate_file", { method: "POST", body, signal: signal ?? null });
    const address = new URL(read(fileAnswer, parse(await bodyOf(answer))), this.#base);
    // The server may know itself by another name than the one it was reached by.
    return this.#ask(`download_file/${address.pathname.split("/").pop() ?? ""}`, { signal: signal ?? null }).then((found) => found.blob());
  }

  /** A file of the page itself. */
  async file(path: string): Promise<string> {
    return bodyOf(await this.#ask(path, {}));
  }

  async #get<T>(path: string, reader: Reader<T>, signal?: AbortSignal): Promise<T> {
    return read(reader, parse(await bodyOf(await this.#ask(path, { signal: signal ?? null }))));
  }

  async #post<T>(path: string, wish: object, reader: Reader<T>, signal?: AbortSignal): Promise<T> {
    return read(reader, parse(await bodyOf(await this.#ask(path, { ...posted(wish), signal: signal ?? null }))));
  }

  async #ask(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    const key = this.#key();
    if (key) headers.set("Authorization", `Bearer ${key}`);
    headers.set("Accept-Language", globalThis.document?.documentElement.lang || "en"); // refusals as the page speaks
    let answer: Response;
    try {
      answer = await this.#fetch(new URL(path, this.#base), { ...init, headers });
    } catch (error) {
      throw isAbort(error) ? error : new ApiError("offline", error instanceof Error ? error.message : String(error));
    }
    if (answer.ok) return answer;
    const said = errorOf(await answer.text().catch(() => ""));
    throw new ApiError(troubleOf(answer.status), said, readRetryAfter(answer.headers.get("Retry-After")));
  }
}

function posted(wish: object): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wish) };
}

async function bodyOf(answer: Response): Promise<string> {
  try {
    return await answer.text();
  } catch (error) {
    throw isAbort(error) ? error : new ApiError("offline", String(error));
  }
}

async function* listen(body: ReadableStream<Uint8Array>): AsyncGenerator<{ event: string; data: unknown }> {
  try {
    for await (const { event, data } of serverEvents(body)) yield { event, data: parse(data) };
  } catch (error) {
    throw isAbort(error) || error instanceof ApiError ? error : new ApiError("offline", String(error));
  }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new ApiError("shape", "no JSON");
  }
}

/** The server's words: `{"error": "..."}`; a proxy's page of HTML says nothing to the reader. */
function errorOf(found: unknown): string {
  let value = found;
  if (typeof found === "string") {
    try {
      value = JSON.parse(found);
    } catch {
      return "";
    }
  }
  const said = (value as { error?: unknown } | null)?.error;
  return typeof said === "string" ? said : "";
}
