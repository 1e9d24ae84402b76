/** What `attendo serve` says under /v1. */

export const TASKS = ["translation", "classification", "language", "series"] as const;
export type Task = (typeof TASKS)[number];

/** What a series model reads and foretells. */
export interface SeriesInfo {
  columns: string[];
  /** The name of the column of times. */
  time: string | null;
  window: number;
  horizon: number;
  targets: string[];
  kind: "labels" | "numbers";
  labels: string[] | null;
}

export interface ModelInfo {
  name: string;
  task: Task;
  /** "auto" where the model does not tell. */
  source: string;
  target: string;
  kind: string;
  num_parameters: number | null;
  has_attention: boolean;
  default: boolean;
  max_characters: number | null;
  dev: Dev | null;
  series: SeriesInfo | null;
}

export interface Dev {
  loss: number | null;
  perplexity: number | null;
  bleu: number | null;
}

export interface TranslateWish {
  text: string | string[];
  model: string;
  beam_size: number;
  n_best?: number;
  confidence?: boolean;
  alignment?: boolean;
  glossary?: Record<string, string>;
  prefix?: string;
}

export interface WordConfidence {
  text: string;
  probability: number;
}

export interface Confidence {
  probability: number;
  mean: number;
  words: WordConfidence[];
}

/** How much each target word (row) looked at each source word (column). */
export interface Alignment {
  source_words: string[];
  target_words: string[];
  weights: number[][];
}

export interface Alternative {
  text: string;
  score: number | null;
  log_prob: number | null;
}

export interface Translated extends Alternative {
  is_finished: boolean;
  confidence: Confidence | null;
  alternatives: Alternative[];
  notes: string[];
  alignment: Alignment | null;
  words: string[];
}

export interface TranslateAnswer {
  model: string;
  seconds: number | null;
  translations: Translated[];
}

/** What has been said so far, while it is being said. */
export interface StreamStep {
  text: string;
  token: string;
  probability: number | null;
}

export interface NextWord {
  text: string;
  probability: number;
  /** The beginning with this word added, to go on from. */
  prefix: string | null;
}

export interface InspectWish {
  text: string;
  model: string;
  target_text?: string;
  beam_size?: number;
  ablation?: boolean;
  attribution?: boolean;
}

export interface ForecastWish {
  model: string;
  columns: Record<string, (number | null)[]>;
  times?: string[];
}

export interface ForecastStep {
  time: string;
  label: string | null;
  /** The chance of each label. */
  probabilities: Record<string, number> | null;
  values: Record<string, number> | null;
}

export interface ForecastAnswer {
  model: string;
  seconds: number | null;
  steps: ForecastStep[];
}

export interface SampleWish {
  model: string;
  beginning: string;
  count: number;
  max_tokens: number;
  temperature: number;
  top_p: number;
  seed: number;
}

export interface SampleAnswer {
  seconds: number | null;
  texts: string[];
}

export const RUN_STATES = ["running", "finished", "stopped"] as const;
export type RunState = (typeof RUN_STATES)[number];

export interface RunInfo {
  name: string;
  state: RunState;
  step: number | null;
  max_steps: number | null;
  dev: Dev | null;
  updated: string | null;
}

export interface RunEvent {
  event: string;
  step: number | null;
  time: string | null;
  loss: number | null;
  rate: number | null;
  tokens_per_second: number | null;
  perplexity: number | null;
  bleu: number | null;
  accuracy: number | null;
}

export interface Sample {
  src: string;
  output: string;
  ref: string | null;
}

/** The sample sentences as one validation found them. */
export interface SampleSet {
  step: number;
  samples: Sample[];
}

export interface RunDetail extends RunInfo {
  config: Record<string, unknown>;
  events: RunEvent[];
  /** The line of the log to ask on from. */
  next: number;
  samples: SampleSet[];
  report: { dev: Dev | null } | null;
}

export interface EventsAnswer {
  events: RunEvent[];
  next: number;
  state: RunState;
}
