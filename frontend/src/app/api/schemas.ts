/** The requests and responses of `attendo serve` under /v1. The types of responses are inferred from their schemas. */

import { RecordError } from "../../inspector/record/errors";
import { array, boolean, count, type Infer, nullable, number, object, oneOf, record, type Schema, string, withDefault } from "../../inspector/record/schema";
import { ApiError } from "./errors";

export const TASKS = ["translation", "classification", "language", "series"] as const;
export type Task = (typeof TASKS)[number];

const devScores = object({ loss: nullable(number), perplexity: nullable(number), bleu: nullable(number) });

/** How good a translation is expected to be, from the best to the worst. */
export const BANDS = ["high", "check", "low"] as const;
export type Band = (typeof BANDS)[number];

const bandCounts = object({ count, num_right: count });
/** What the bands meant on the dev set. */
const quality = object({ bands: object({ high: bandCounts, check: bandCounts, low: bandCounts }) });
export type Quality = Infer<typeof quality>;

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
  quality: nullable(quality),
  series: nullable(seriesInfo),
  /** The kinds of translations that it can be asked for, e.g. polite and plain. */
  labels: withDefault(array(string), []),
  /** Tokens of the source and of the target. */
  vocab_sizes: nullable(array(count, 2)),
  /** The number of examples that it was trained on, and the names of their files. */
  training: nullable(object({ num_examples: count, corpora: array(string) })),
});
export type ModelInfo = Infer<typeof modelInfo>;

/** Two languages that two models connect: the text is translated to `via` first. */
const pivot = object({ source: string, target: string, via: string });
export type Pivot = Infer<typeof pivot>;
/** `has_memory`: whether the server keeps corrections. */
export const modelsResponse = object({ models: array(modelInfo), pivots: withDefault(array(pivot), []), has_memory: withDefault(boolean, false) });
export type ModelsResponse = Infer<typeof modelsResponse>;

export interface TranslateRequest {
  text: string | string[];
  model?: string;
  /** Instead of a model: the languages of a translation in two steps. */
  source?: string;
  target?: string;
  beam_size: number;
  n_best?: number;
  confidence?: boolean;
  alignment?: boolean;
  glossary?: Record<string, string>;
  prefix?: string;
  /** One of the labels of the model. */
  label?: string;
}

/** `weights`: how much each target word (row) attends to each source word (column). */
const alignment = (value: unknown, path: string) => {
  const words = object({ source_words: array(string), target_words: array(string) })(value, path);
  const { weights } = object({ weights: array(array(number, words.source_words.length), words.target_words.length) })(value, path);
  return { ...words, weights };
};
export type Alignment = ReturnType<typeof alignment>;
const hypothesis = { text: string, score: nullable(number), log_prob: nullable(number) };

/** `quality`: the share of similar dev sentences that were right; null if the model is not calibrated. */
const confidence = object({
  probability: number,
  mean_token_probability: number,
  quality: nullable(number),
  band: nullable(oneOf(...BANDS)),
  unfamiliar: nullable(object({ num_tokens: count, num_unseen: count, bits_per_character: nullable(number) })),
  words: array(object({ text: string, probability: number })),
});
export type Confidence = Infer<typeof confidence>;

/** A part that was translated by itself; offsets count code points. */
const sentence = object({ source_start: count, source_end: count, start: count, end: count, alignment: nullable(alignment) });

/** A note with a code, and the words or the number that it is about. */
const noteDetail = object({ code: string, text: string, words: array(string), count: nullable(count) });

/** A unit of the translation memory whose source is the text, or like it. */
const memoryMatch = object({ kind: oneOf("exact", "fuzzy"), score: number, source_text: string, target_text: string, repaired_text: withDefault(nullable(string), null), id: count, author: nullable(string), time: nullable(string) });
export type MemoryMatch = Infer<typeof memoryMatch>;

/** The languages are those of the model, or given. */
export interface CorrectionRequest {
  source_text: string;
  target_text: string;
  model?: string;
  source?: string;
  target?: string;
  output?: string;
  author?: string;
}
export const savedCorrection = object({ id: count });
export const deletedCorrection = object({ deleted: count });

export const translation = object({
  ...hypothesis,
  is_finished: withDefault(boolean, true),
  confidence: nullable(confidence),
  alternatives: withDefault(array(object(hypothesis)), []),
  notes: withDefault(array(string), []),
  /** Those of the notes that have a code. */
  note_details: withDefault(array(noteDetail), []),
  alignment: nullable(alignment),
  sentences: withDefault(array(sentence), []),
  words: withDefault(array(string), []),
  /** An exact match is the translation. */
  memory: withDefault(array(memoryMatch), []),
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

/** `confidence` is in percent; it is low for a language that no model has. */
export const detectResponse = array(object({ language: string, confidence: number }));
export type DetectedLanguage = Infer<typeof detectResponse>[number];

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

/** `diverged`: the last training loss is not a number. */
const runSummary = { name: string, state: runState, step: nullable(count), max_steps: nullable(count), dev: nullable(devScores), updated: nullable(string), diverged: withDefault(boolean, false) };
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
  /** Why a run stopped. */
  reason: nullable(string),
});
export type RunEvent = Infer<typeof runEvent>;

/** The translations of the sample sentences at one validation. */
const sampleSet = object({ step: count, samples: array(object({ src: string, output: string, ref: nullable(string) })) });
export type SampleSet = Infer<typeof sampleSet>;

const calibration = object({
  temperature: number,
  ece_before: number,
  ece_after: number,
  bins_after: withDefault(array(object({ count, confidence: number, accuracy: number })), []),
  quality: nullable(object({ bands: object({ high: bandCounts, check: bandCounts, low: bandCounts }) })),
});
export type Calibration = Infer<typeof calibration>;
/** The scores of the finished model: of the average of its checkpoints, if several were averaged. */
const report = object({ dev: nullable(devScores), calibration: nullable(calibration), averaged_steps: withDefault(array(count), []) });
export type RunReport = Infer<typeof report>;

export const runDetail = object({
  ...runSummary,
  config: withDefault(record((value) => value), {}),
  events: array(runEvent),
  /** The line of the log from which later events are requested. */
  next: count,
  samples: withDefault(array(sampleSet), []),
  /** The steps whose checkpoints are kept. */
  checkpoints: withDefault(array(count), []),
  report: nullable(report),
  /** The served model that this run has trained. */
  model: nullable(string),
});
export type RunDetail = Infer<typeof runDetail>;

/** A sentence, seen by a checkpoint: cross-attention has a row per token of the translation. */
export const checkpointView = object({ step: count, translation: string, src: array(string), tgt: array(string), attention: nullable(array(array(number))) });
export type CheckpointView = Infer<typeof checkpointView>;

export const eventsResponse = object({ events: array(runEvent), next: count, state: runState });
export type EventsResponse = Infer<typeof eventsResponse>;

export const BUILD_STEP_STATES = ["done", "running", "stale", "failed", "interrupted", "to do"] as const;
export type BuildStepState = (typeof BUILD_STEP_STATES)[number];
/** A step of `attendo build`; `estimate`: how many seconds it will take. */
const buildStep = object({ name: string, state: oneOf(...BUILD_STEP_STATES), seconds: nullable(number), estimate: nullable(number) });
export type BuildStep = Infer<typeof buildStep>;

/** `progress`: how much of the running step is done; its total is 0 where it is not known. */
const build = object({ name: string, state: runState, steps: array(buildStep), progress: nullable(object({ done: count, total: count })), updated: nullable(string) });
export type Build = Infer<typeof build>;
export const buildsResponse = object({ builds: array(build) });

/** `notes` say what was not translated, or could not be kept. */
export const fileResponse = object({ translatedFileUrl: string, notes: withDefault(array(string), []) });

/** How many texts of a file are translated. */
export const fileProgress = object({ done: number, total: number });
export type FileProgress = Infer<typeof fileProgress>;

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
