/** The requests and responses of `attendo serve` under /v1. The types of responses are inferred from their schemas. */

import { RecordError } from "../../inspector/record/errors";
import { array, boolean, count, type Infer, nullable, number, object, oneOf, record, type Schema, string, withDefault } from "../../inspector/record/schema";
import { ApiError } from "./errors";

export const TASKS = ["translation", "classification", "language", "series"] as const;
export type Task = (typeof TASKS)[number];

const devScores = object({ loss: nullable(number), perplexity: nullable(number), bleu: nullable(number) });

/** What a series model reads and forecasts. */
const seriesInfo = object({
  columns: array(string),
  /** The name of the time column. */
  time: nullable(string),
  window: count,
  horizon: count,
  targets: array(string),
  kind: oneOf("labels", "numbers"),
  labels: nullable(array(string)),
});
export type SeriesInfo = Infer<typeof seriesInfo>;

const modelInfo = object({
  name: string,
  task: withDefault(oneOf(...TASKS), "translation"),
  /** "auto" where the model has no fixed language. */
  source: withDefault(string, "auto"),
  target: withDefault(string, "auto"),
  kind: withDefault(string, ""),
  num_parameters: nullable(count),
  has_attention: withDefault(boolean, true),
  default: withDefault(boolean, false),
  max_characters: nullable(count),
  dev: nullable(devScores),
  series: nullable(seriesInfo),
});
export type ModelInfo = Infer<typeof modelInfo>;
export const modelsResponse = object({ models: array(modelInfo) });

export interface TranslateRequest {
  text: string | string[];
  model: string;
  beam_size: number;
  n_best?: number;
  confidence?: boolean;
  alignment?: boolean;
  glossary?: Record<string, string>;
  prefix?: string;
}

/** `weights`: how much each target word (row) attends to each source word (column). */
const alignment = (value: unknown, path: string) => {
  const words = object({ source_words: array(string), target_words: array(string) })(value, path);
  const { weights } = object({ weights: array(array(number, words.source_words.length), words.target_words.length) })(value, path);
  return { ...words, weights };
};
const hypothesis = { text: string, score: nullable(number), log_prob: nullable(number) };

export const translation = object({
  ...hypothesis,
  is_finished: withDefault(boolean, true),
  confidence: nullable(object({ probability: number, mean: number, words: array(object({ text: string, probability: number })) })),
  alternatives: withDefault(array(object(hypothesis)), []),
  notes: withDefault(array(string), []),
  alignment: nullable(alignment),
  words: withDefault(array(string), []),
});
export type Translation = Infer<typeof translation>;

/** A response has one translation per text. */
export function translateResponse(numTexts: number) {
  return object({ model: string, seconds: nullable(number), translations: array(translation, numTexts) });
}
export type TranslateResponse = Infer<ReturnType<typeof translateResponse>>;

/** The translation so far, while it is being generated. */
export const streamStep = object({ text: string, token: withDefault(string, ""), probability: nullable(number) });
export type StreamStep = Infer<typeof streamStep>;

export interface NextWordsRequest {
  text: string;
  model: string;
  prefix: string;
  top: number;
}

/** `prefix`: the given prefix with this word appended. */
const nextWord = object({ text: string, probability: number, prefix: nullable(string) });
export type NextWord = Infer<typeof nextWord>;
export const nextWordsResponse = object({ words: array(nextWord) });

export interface InspectRequest {
  text: string;
  model: string;
  target_text?: string;
  beam_size?: number;
  ablation?: boolean;
  attribution?: boolean;
}

export interface ForecastRequest {
  model: string;
  columns: Record<string, (number | null)[]>;
  times?: string[];
}

/** A response has one step per step of the model's horizon. */
export function forecastResponse(horizon: number) {
  const step = object({ time: string, label: nullable(string), probabilities: nullable(record(number)), values: nullable(record(number)) });
  return object({ model: string, seconds: nullable(number), steps: array(step, horizon) });
}
export type ForecastResponse = Infer<ReturnType<typeof forecastResponse>>;

export interface GenerateRequest {
  model: string;
  prompt: string;
  count: number;
  max_tokens: number;
  temperature: number;
  top_p: number;
  seed: number;
}

export const generateResponse = object({ seconds: nullable(number), texts: array(string) });
export type GenerateResponse = Infer<typeof generateResponse>;

const runState = oneOf("running", "finished", "stopped");
export type RunState = Infer<typeof runState>;

const runSummary = { name: string, state: runState, step: nullable(count), max_steps: nullable(count), dev: nullable(devScores), updated: nullable(string) };
const runInfo = object(runSummary);
export type RunInfo = Infer<typeof runInfo>;
export const runsResponse = object({ runs: array(runInfo) });

const runEvent = object({
  event: withDefault(string, ""),
  step: nullable(count),
  time: nullable(string),
  loss: nullable(number),
  rate: nullable(number),
  tokens_per_second: nullable(number),
  perplexity: nullable(number),
  bleu: nullable(number),
  accuracy: nullable(number),
});
export type RunEvent = Infer<typeof runEvent>;

/** The translations of the sample sentences at one validation. */
const sampleSet = object({ step: count, samples: array(object({ src: string, output: string, ref: nullable(string) })) });
export type SampleSet = Infer<typeof sampleSet>;

export const runDetail = object({
  ...runSummary,
  config: withDefault(record((value) => value), {}),
  events: array(runEvent),
  /** The line of the log from which later events are requested. */
  next: count,
  samples: withDefault(array(sampleSet), []),
  report: nullable(object({ dev: nullable(devScores) })),
});
export type RunDetail = Infer<typeof runDetail>;

export const eventsResponse = object({ events: array(runEvent), next: count, state: runState });
export type EventsResponse = Infer<typeof eventsResponse>;

export const fileResponse = object({ translatedFileUrl: string });

/** Check a response; report an invalid one as an ApiError that names the invalid part. */
export function readResponse<T>(schema: Schema<T>, value: unknown): T {
  try {
    return schema(value, "");
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    const { path = "", expected = error.problem } = error.details;
    throw new ApiError("shape", `${path}: ${expected}`);
  }
}
