/** The record as `attendo.inspection` writes it: one sentence through one model. Version 1. */

export const KINDS = ["cross", "encoder_self", "decoder_self"] as const;
export type Kind = (typeof KINDS)[number];

export interface Token {
  id: number;
  piece: string;
  /** What the piece says; empty for symbols, lone spaces and the first bytes of a character. */
  text: string;
  /** The word it belongs to; null for symbols and lone spaces. */
  word: number | null;
}

export interface Side {
  text: string;
  tokens: Token[];
  words: string[];
}

export interface Model {
  name: string;
  kind: string;
  /** null: the model does not tell. */
  num_layers: number | null;
  num_decoder_layers: number | null;
  num_heads: number | null;
  d_model: number | null;
  num_parameters: number | null;
  src_lang: string | null;
  tgt_lang: string | null;
}

export interface Search {
  method: string;
  beam_size: number;
  alpha: number;
  score: number | null;
  log_prob: number | null;
  is_finished: boolean;
}

/** Weights of one kind, unpacked: order layer, head, row, column. */
export interface Weights {
  layers: number;
  heads: number;
  rows: number;
  columns: number;
  data: Float32Array;
}

export interface Guess {
  id: number;
  piece: string;
  probability: number;
}

export interface DecoderStep {
  probability: number;
  log_prob: number;
  /** Nats, of the model's whole distribution at this step. */
  entropy: number;
  /** The likeliest, best first; the chosen token is the last one if it is not among them. */
  top: Guess[];
}

export const MEASURES = [
  "focus",
  "entropy",
  "distance",
  "agreement",
  "alignment",
  "previous",
  "same",
  "next",
  "first",
  "end",
] as const;
export type MeasureName = (typeof MEASURES)[number];
export type Measure = Partial<Record<MeasureName, number | null>>;

export interface LensCell {
  top: Guess[];
  /** Of the token that was said: 0 is the best. */
  rank: number;
  probability: number;
}

export interface Attribution {
  method: string;
  num_steps: number;
  tokens: number[][];
  words: number[][];
  completeness: number[];
}

export interface AblatedHead {
  kind: Kind;
  layer: number;
  head: number;
  log_prob: number;
  change: number;
  /** What the translation became; null where it was not translated anew. */
  text: string | null;
}

export interface Ablation {
  heads: AblatedHead[];
  log_prob: number;
}

/** What takes longer and is only worked out when it is asked for. */
export type Study = "attribution" | "ablation";

export type Layout = "interleaved" | "halves";

export interface Positions {
  layout: Layout;
  kind: string;
  d_model: number;
  num_positions: number;
  /** Order position, dimension. */
  data: Float32Array;
}

export interface Neighbour {
  id: number;
  piece: string;
  similarity: number;
}

/** Numbers over time: what the model read, and what it makes of the days to come. */
export interface Series {
  features: string[];
  times: string[];
  /** By feature, then by time step; null: missing. */
  values: (number | null)[][];
  kind: "labels" | "numbers";
  targets: string[];
  tgt_times: string[];
  /** Every label that the model knows; null where it forecasts numbers. */
  labels: string[] | null;
  /** By step, then by label: its chance whatever the steps before it bring. */
  probabilities: number[][] | null;
  /** By target, then by step. */
  numbers: number[][] | null;
  /** What came in truth, where the file tells: labels by step. */
  observed_labels: (string | null)[] | null;
  /** The same of numbers: by target, then by step. */
  observed_numbers: (number | null)[][] | null;
}

export type Fate = "kept" | "finished" | "pruned";

export interface Candidate {
  id: number;
  token: string;
  parent: number;
  slot: number | null;
  log_prob: number;
  total: number;
  score: number;
  fate: Fate;
  why: string;
  met: number;
}

export interface BeamStep {
  group: number;
  position: number;
  candidates: Candidate[];
}

export interface Hypothesis {
  ids: number[];
  total: number;
  score: number;
  is_finished: boolean;
}

export interface Trace {
  method: string;
  beam_size: number;
  alpha: number;
  n_best: number;
  limit: number;
  end_id: number;
  steps: BeamStep[];
  stopped: string;
  hypotheses: Hypothesis[];
}

export interface LookRecord {
  version: number;
  attendo: string;
  model: Model;
  search: Search;
  src: Side;
  tgt: Side;
  attention: Record<Kind, Weights | null>;
  /** Empty where numbers are forecast: they have no probabilities. */
  steps: DecoderStep[];
  beam: Trace | null;
  measures: Record<Kind, Measure[][]>;
  logit_lens: { layers: LensCell[][] } | null;
  attribution: Attribution | null;
  ablation: Ablation | null;
  positions: Positions | null;
  embeddings: { src: Neighbour[][]; tgt: Neighbour[][] } | null;
  series: Series | null;
  notes: string[];
}
