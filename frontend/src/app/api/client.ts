/** The client of the server's API. Every response is checked against its schema; every failure is an ApiError. */

import { RecordError } from "../../inspector/record/errors";
import { type InspectionRecord, readRecord } from "../../inspector/record/record";
import type { Schema } from "../../inspector/record/schema";
import { ApiError, errorKindOf, isAbort, parseRetryAfter } from "./errors";
import {
  type Build,
  buildsResponse,
  checkpointView,
  type CheckpointView,
  type CorrectionRequest,
  deletedCorrection,
  type DetectedLanguage,
  detectResponse,
  eventsResponse,
  type EventsResponse,
  fileProgress,
  type FileProgress,
  fileResponse,
  type ForecastRequest,
  type ForecastResponse,
  forecastResponse,
  type GenerateRequest,
  type GenerateResponse,
  generateResponse,
  type InspectRequest,
  modelsResponse,
  type ModelsResponse,
  type NextWord,
  type NextWordsRequest,
  nextWordsResponse,
  readResponse,
  runDetail,
  type RunDetail,
  type RunInfo,
  runsResponse,
  savedCorrection,
  type StreamStep,
  streamStep,
  type TranslateRequest,
  type TranslateResponse,
  translateResponse,
  type Translation,
  translation,
} from "./schemas";
import { serverEvents } from "./sse";

export interface Inspection {
  record: InspectionRecord;
  /** The record as the server sent it, to be saved as a file. */
  json: string;
}

export interface ClientOptions {
  /** The URL of the page: the API is below the same path, also behind a proxy that adds one. */
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

  models(signal?: AbortSignal): Promise<ModelsResponse> {
    return this.get("v1/models", modelsResponse, signal);
  }

  translate(request: TranslateRequest, signal?: AbortSignal): Promise<TranslateResponse> {
    const numTexts = typeof request.text === "string" ? 1 : request.text.length;
    return this.post("v1/translate", request, translateResponse(numTexts), signal);
  }

  /** Report each step as it arrives; return the whole translation at the end. */
  async stream(request: TranslateRequest, onstep: (step: StreamStep) => void, signal?: AbortSignal): Promise<Translation> {
    const { body } = await this.#request("v1/stream", postOptions(request, signal));
    if (!body) throw new ApiError("shape", "an empty stream");
    for await (const { event, data } of jsonEvents(body)) {
      if (event === "token") onstep(readResponse(streamStep, data));
      if (event === "done") return readResponse(translation, data);
      if (event === "error") throw new ApiError("bad", errorMessage(data));
    }
    throw new ApiError("offline", "the stream ended early");
  }

  /** The languages that a text may be in, the most probable first. */
  detect(text: string, signal?: AbortSignal): Promise<DetectedLanguage[]> {
    return this.post("detect", { q: text }, detectResponse, signal);
  }

  /** The most probable next words after a prefix of a translation. */
  async nextWords(request: NextWordsRequest, signal?: AbortSignal): Promise<NextWord[]> {
    return (await this.post("v1/alternatives", request, nextWordsResponse, signal)).words;
  }

  /** Store a translation in the memory of the server. */
  saveCorrection(request: CorrectionRequest, signal?: AbortSignal): Promise<{ id: number }> {
    return this.post("v1/corrections", request, savedCorrection, signal);
  }

  async deleteCorrection(id: number, signal?: AbortSignal): Promise<{ deleted: number }> {
    const response = await this.#request(`v1/corrections/${id}`, { method: "DELETE", signal: signal ?? null });
    return readResponse(deletedCorrection, parseJson(await readText(response)));
  }

  inspect(request: InspectRequest, signal?: AbortSignal): Promise<Inspection> {
    return this.#inspection("v1/inspect", request, signal);
  }

  forecast(request: ForecastRequest, horizon: number, signal?: AbortSignal): Promise<ForecastResponse> {
    return this.post("v1/forecast", request, forecastResponse(horizon), signal);
  }

  inspectForecast(request: ForecastRequest, signal?: AbortSignal): Promise<Inspection> {
    return this.#inspection("v1/forecast/explain", request, signal);
  }

  /** Continue a text with a language model. */
  generate(request: GenerateRequest, signal?: AbortSignal): Promise<GenerateResponse> {
    return this.post("v1/generate", request, generateResponse, signal);
  }

  async runs(signal?: AbortSignal): Promise<RunInfo[]> {
    return (await this.get("v1/runs", runsResponse, signal)).runs;
  }

  async builds(signal?: AbortSignal): Promise<Build[]> {
    return (await this.get("v1/builds", buildsResponse, signal)).builds;
  }

  run(name: string, signal?: AbortSignal): Promise<RunDetail> {
    return this.get(`v1/runs/${encodeURIComponent(name)}`, runDetail, signal);
  }

  /** A sentence, translated by a checkpoint that the run has kept. */
  checkpoint(name: string, request: { step: number; text: string }, signal?: AbortSignal): Promise<CheckpointView> {
    return this.post(`v1/runs/${encodeURIComponent(name)}/checkpoint`, request, checkpointView, signal);
  }

  /** The events of a run after line `after` of its log. */
  events(name: string, after: number, signal?: AbortSignal): Promise<EventsResponse> {
    return this.get(`v1/runs/${encodeURIComponent(name)}/events?after=${after}`, eventsResponse, signal);
  }

  /** Let the server translate a document as a whole; report how many of its texts are done. */
  async translateFile(
    file: File,
    languages: { source: string; target: string },
    onprogress: (progress: FileProgress) => void,
    signal?: AbortSignal,
  ): Promise<{ content: Blob; notes: string[] }> {
    const body = new FormData();
    body.set("file", file);
    body.set("source", languages.source);
    body.set("target", languages.target);
    const headers = { Accept: "text/event-stream" };
    const response = await this.#request("translate_file", { method: "POST", headers, body, signal: signal ?? null });
    const isStream = response.headers.get("Content-Type")?.startsWith("text/event-stream") && response.body;
    const found = isStream ? await readFileEvents(response.body!, onprogress) : parseJson(await readText(response));
    const { translatedFileUrl, notes } = readResponse(fileResponse, found);
    // The server may know itself by another host name than the page does: only the file name of its URL is used.
    const name = new URL(translatedFileUrl, this.#base).pathname.split("/").pop() ?? "";
    const download = await this.#request(`download_file/${name}`, { signal: signal ?? null });
    return { content: await download.blob(), notes };
  }

  /** The text of a static file of the page. */
  async file(path: string): Promise<string> {
    return readText(await this.#request(path, {}));
  }

  async get<T>(path: string, schema: Schema<T>, signal?: AbortSignal): Promise<T> {
    return readResponse(schema, parseJson(await readText(await this.#request(path, { signal: signal ?? null }))));
  }

  async post<T>(path: string, request: object, schema: Schema<T>, signal?: AbortSignal): Promise<T> {
    return readResponse(schema, parseJson(await readText(await this.#request(path, postOptions(request, signal)))));
  }

  async #inspection(path: string, request: object, signal?: AbortSignal): Promise<Inspection> {
    const json = await readText(await this.#request(path, postOptions(request, signal)));
    try {
      return { record: readRecord(parseJson(json)), json };
    } catch (error) {
      if (error instanceof RecordError) throw new ApiError("shape", error.message);
      throw error;
    }
  }

  async #request(path: string, options: RequestInit): Promise<Response> {
    const headers = new Headers(options.headers);
    const key = this.#key();
    if (key) headers.set("Authorization", `Bearer ${key}`);
    // The server writes its error messages in the language of the page.
    headers.set("Accept-Language", globalThis.document?.documentElement.lang || "en");
    let response: Response;
    try {
      response = await this.#fetch(new URL(path, this.#base), { ...options, headers });
    } catch (error) {
      throw isAbort(error) ? error : new ApiError("offline", error instanceof Error ? error.message : String(error));
    }
    if (response.ok) return response;
    const message = errorMessage(await response.text().catch(() => ""));
    throw new ApiError(errorKindOf(response.status), message, parseRetryAfter(response.headers.get("Retry-After")));
  }
}

function postOptions(request: object, signal?: AbortSignal): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request), signal: signal ?? null };
}

async function readText(response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw isAbort(error) ? error : new ApiError("offline", String(error));
  }
}

async function* jsonEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<{ event: string | undefined; data: unknown }> {
  try {
    for await (const { event, data } of serverEvents(body)) yield { event, data: parseJson(data) };
  } catch (error) {
    throw isAbort(error) || error instanceof ApiError ? error : new ApiError("offline", String(error));
  }
}

/** Report the progress of a file; return the response at the end. */
async function readFileEvents(body: ReadableStream<Uint8Array>, onprogress: (progress: FileProgress) => void): Promise<unknown> {
  for await (const { event, data } of jsonEvents(body)) {
    if (event === "progress") onprogress(readResponse(fileProgress, data));
    if (event === "done") return data;
    if (event === "error") throw new ApiError("bad", errorMessage(data));
  }
  throw new ApiError("offline", "the stream ended early");
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new ApiError("shape", "not JSON");
  }
}

/** The server's message, from `{"error": "...", "hint": "..."}`; empty for anything else, such as the HTML page of a proxy. */
function errorMessage(body: unknown): string {
  let value = body;
  if (typeof body === "string") {
    try {
      value = JSON.parse(body);
    } catch {
      return "";
    }
  }
  const { error, hint } = (value ?? {}) as { error?: unknown; hint?: unknown };
  return [error, hint].filter((text) => typeof text === "string" && text !== "").join("; ");
}
