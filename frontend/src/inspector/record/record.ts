/** The record that `attendo.inspection` writes: one sentence (or one window of a series) through one model. Version 1. */

import { invalid, RecordError } from "./errors";
import { ENCODINGS } from "./packed";
import { array, boolean, count, type Infer, nullable, number, object, oneOf, type Schema, string, withDefault } from "./schema";

export const VERSION = 1;

export const KINDS = ["cross", "encoder_self", "decoder_self"] as const;
export type Kind = (typeof KINDS)[number];

export const METRICS = ["focus", "entropy", "distance", "agreement", "alignment", "previous", "same", "next", "first", "end"] as const;
export type MetricName = (typeof METRICS)[number];
export type Metrics = Partial<Record<MetricName, number | null>>;

/** Studies that take longer and are only computed on request. */
export type Study = "attribution" | "ablation";

const token = object({
  id: count,
  piece: string,
  /** The text of the piece; empty for symbols, lone spaces and the first bytes of a character. */
  text: string,
  /** The index of its word; null for symbols and lone spaces. */
  word: nullable(count),
});
const side = checked(object({ text: string, tokens: array(token), words: array(string) }), ({ tokens, words }, path) => {
  const index = tokens.findIndex(({ word }) => word !== null && word >= words.length);
  if (index >= 0) throw invalid(`${path}.tokens[${index}].word`, "the index of a word");
});
const guess = object({ id: count, piece: string, probability: number });
const neighbor = object({ id: count, piece: string, similarity: number });
const metrics = object(Object.fromEntries(METRICS.map((name) => [name, nullable(number)])) as Record<MetricName, Schema<number | null>>);
const step = object({
  probability: number,
  log_prob: number,
  /** In nats, of the whole distribution at this step. */
  entropy: number,
  /** The most probable tokens, best first; the chosen token comes last if it is not among them. */
  top: array(guess),
});
const candidate = object({
  id: count,
  token: withDefault(string, ""),
  parent: count,
  slot: nullable(count),
  log_prob: number,
  total: number,
  score: number,
  outcome: oneOf("kept", "finished", "pruned"),
  why: withDefault(string, ""),
  met: withDefault(count, 0),
});
const trace = object({
  method: string,
  beam_size: count,
  alpha: number,
  n_best: count,
  limit: count,
  end_id: count,
  steps: array(object({ group: count, position: count, candidates: array(candidate) })),
  stopped: withDefault(string, ""),
  hypotheses: array(object({ ids: array(count), total: number, score: number, is_finished: boolean })),
});
/** Sizes are null where the model does not provide them. */
const model = object({
  name: string,
  kind: string,
  num_layers: nullable(count),
  num_decoder_layers: nullable(count),
  num_heads: nullable(count),
  d_model: nullable(count),
  num_parameters: nullable(count),
  src_lang: nullable(string),
  tgt_lang: nullable(string),
});
const search = object({
  method: string,
  beam_size: withDefault(count, 1),
  alpha: withDefault(number, 0),
  score: nullable(number),
  log_prob: nullable(number),
  is_finished: withDefault(boolean, true),
});
const ablation = object({
  heads: array(
    object({
      kind: oneOf(...KINDS),
      layer: count,
      head: count,
      log_prob: number,
      change: number,
      /** The translation without the head; null where the sentence was not translated again. */
      text: nullable(string),
    }),
  ),
  log_prob: number,
});
/** Values are in the order position, dimension. */
const positions = (value: unknown, path: string) => {
  const sizes = object({ layout: withDefault(oneOf("interleaved", "halves", "tensor2tensor", "fairseq"), "interleaved"), kind: string, d_model: count, num_positions: count })(value, path);
  return { ...sizes, data: unpack(value, path, sizes.d_model * sizes.num_positions) };
};

interface Lengths {
  S: number;
  T: number;
}

/** Numbers over time: the window that the model read, and its forecast. */
const series = ({ S, T }: Lengths) => (value: unknown, path: string) => {
  const names = object({
    features: array(string),
    targets: array(string),
    /** Every label that the model knows; null where it forecasts numbers. */
    labels: nullable(array(string)),
  })(value, path);
  const values = object({
    kind: oneOf("labels", "numbers"),
    times: array(string, S),
    /** By feature, then by time step; null: missing. */
    values: array(array(nullable(number), S), names.features.length),
    tgt_times: array(string, T),
    /** By step, then by label: the marginal probability, over all labels of the earlier steps. */
    probabilities: nullable(array(array(number, names.labels?.length), T)),
    /** By target, then by step. */
    numbers: nullable(array(array(number, T), names.targets.length)),
    /** The actual labels by step, where the file has them. */
    observed_labels: nullable(array(nullable(string), T)),
    /** The actual numbers: by target, then by step. */
    observed_numbers: nullable(array(array(nullable(number), T), names.targets.length)),
  })(value, path);
  return { ...names, ...values };
};

/** Weights of one kind, unpacked: in the order layer, head, row, column. */
const weights = (rows: number, columns: number) => (value: unknown, path: string) => {
  const sizes = object({ layers: count, heads: count, rows: count, columns: count })(value, path);
  if (sizes.rows !== rows || sizes.columns !== columns) throw invalid(path, `${rows} x ${columns} weights, not ${sizes.rows} x ${sizes.columns}`);
  return { ...sizes, data: unpack(value, path, sizes.layers * sizes.heads * rows * columns) };
};

export type Token = Infer<typeof token>;
export type Side = Infer<typeof side>;
export type Candidate = Infer<typeof candidate>;
export type CandidateOutcome = Candidate["outcome"];
export type Trace = Infer<typeof trace>;
export type Positions = Infer<typeof positions>;
export type Layout = Positions["layout"];
export type Series = Infer<ReturnType<typeof series>>;
export type Weights = Infer<ReturnType<typeof weights>>;
export type InspectionRecord = ReturnType<typeof readRecord>;

/** Parse a record from the text of a file. */
export function parseRecord(json: string): InspectionRecord {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new RecordError("not_json", { reason: error instanceof Error ? error.message : String(error) });
  }
  return readRecord(value);
}

/** Check and unpack a parsed JSON value; throw a RecordError for anything but a valid record of a known version. */
export function readRecord(value: unknown) {
  const version = checkVersion(value);
  const sides = object({ src: side, tgt: side })(value, "");
  const { src, tgt } = sides;
  const [S, T] = [src.tokens.length, tgt.tokens.length];
  const found = object({ series: nullable(series({ S, T })) })(value, "");
  const rest = object({
    attendo: withDefault(string, ""),
    model,
    search,
    attention: object({ cross: nullable(weights(T, S)), encoder_self: nullable(weights(S, S)), decoder_self: nullable(weights(T, T)) }),
    /** Empty where numbers are forecast: they have no probabilities. */
    steps: array(step, found.series?.kind === "numbers" ? 0 : T),
    beam: nullable(trace),
    measures: byKind(withDefault(array(array(metrics)), [])),
    notes: withDefault(array(string), []),
    /** By layer, then by token; `rank` is that of the token that was chosen in the end, 0 for the best. */
    logit_lens: nullable(object({ layers: array(array(object({ top: array(guess), rank: count, probability: number }), T)) })),
    attribution: nullable(
      object({
        method: string,
        num_steps: withDefault(count, 0),
        tokens: array(array(number, S), T),
        words: array(array(number, src.words.length), tgt.words.length),
        completeness: withDefault(array(number), []),
      }),
    ),
    ablation: nullable(ablation),
    positions: nullable(positions),
    embeddings: nullable(object({ src: array(array(neighbor), S), tgt: array(array(neighbor), T) })),
  })(value, "");
  return { version, ...sides, ...found, ...rest };
}

function checkVersion(value: unknown): number {
  const found = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  if (found.format !== "attendo.record") throw new RecordError("not_record");
  const version = count(found.version, "version");
  if (version > VERSION) throw new RecordError("newer", { version, known: VERSION, attendo: String(found.attendo ?? "?") });
  return version;
}

function byKind<T>(schema: Schema<T>): Schema<Record<Kind, T>> {
  return object({ cross: schema, encoder_self: schema, decoder_self: schema });
}

/** Add a check that concerns several fields of an object. */
function checked<T>(schema: Schema<T>, check: (value: T, path: string) => void): Schema<T> {
  return (value, path) => {
    const found = schema(value, path);
    check(found, path);
    return found;
  };
}

function unpack(value: unknown, path: string, size: number): Float32Array {
  const { encoding, data } = object({ encoding: oneOf("u16", "f16"), data: string })(value, path);
  let values: Float32Array;
  try {
    values = ENCODINGS[encoding](data);
  } catch {
    throw invalid(`${path}.data`, "base64");
  }
  if (values.length !== size) throw invalid(`${path}.data`, `${size} values, not ${values.length}`);
  return values;
}
