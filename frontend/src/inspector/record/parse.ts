/** Read a record: refuse what is not one, what is newer and what is broken; unpack the rest. */

import { broken, RecordError } from "./errors";
import { ENCODINGS } from "./packed";
import { count, fields, flag, list, number, oneOf, orNull, type Reader, text, withDefault } from "./schema";
import { KINDS, type Kind, type LookRecord, type Positions, type Series, type Side, type Trace, type Weights } from "./types";

export const VERSION = 1;

const guess = fields({ id: count, piece: text, probability: number });
const neighbour = fields({ id: count, piece: text, similarity: number });
const share = orNull(number);
const measure = fields({
  focus: share,
  entropy: share,
  distance: share,
  agreement: share,
  alignment: share,
  previous: share,
  same: share,
  next: share,
  first: share,
  end: share,
});
const candidate = fields({
  id: count,
  token: withDefault(text, ""),
  parent: count,
  slot: orNull(count),
  log_prob: number,
  total: number,
  score: number,
  fate: oneOf("kept", "finished", "pruned"),
  why: withDefault(text, ""),
  met: withDefault(count, 0),
});
const trace: Reader<Trace> = fields({
  method: text,
  beam_size: count,
  alpha: number,
  n_best: count,
  limit: count,
  end_id: count,
  steps: list(fields({ group: count, position: count, candidates: list(candidate) })),
  stopped: withDefault(text, ""),
  hypotheses: list(fields({ ids: list(count), total: number, score: number, is_finished: flag })),
});
const model = fields({
  name: text,
  kind: text,
  num_layers: orNull(count),
  num_decoder_layers: orNull(count),
  num_heads: orNull(count),
  d_model: orNull(count),
  num_parameters: orNull(count),
  src_lang: orNull(text),
  tgt_lang: orNull(text),
});
const search = fields({
  method: text,
  beam_size: withDefault(count, 1),
  alpha: withDefault(number, 0),
  score: orNull(number),
  log_prob: orNull(number),
  is_finished: withDefault(flag, true),
});

/** Read a record from the text of a file. */
export function parseRecord(json: string): LookRecord {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new RecordError("not_json", { reason: error instanceof Error ? error.message : String(error) });
  }
  return readRecord(value);
}

/** Read a record from what JSON.parse gives. */
export function readRecord(value: unknown): LookRecord {
  const version = checkVersion(value);
  const head = fields({ src: side, tgt: side })(value, "");
  const lengths = { S: head.src.tokens.length, T: head.tgt.tokens.length };
  const { series } = fields({ series: orNull(seriesOf(lengths)) })(value, "");
  const rest = fields({
    attendo: withDefault(text, ""),
    model,
    search,
    attention: attention(lengths),
    steps: list(
      fields({ probability: number, log_prob: number, entropy: number, top: list(guess) }),
      series?.kind === "numbers" ? 0 : lengths.T,
    ),
    beam: orNull(trace),
    measures: kinds(() => withDefault(list(list(measure)), [])),
    notes: withDefault(list(text), []),
    ...studies(lengths, head),
  })(value, "");
  return { version, ...head, ...rest, series };
}

function checkVersion(value: unknown): number {
  const found = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  if (found.format !== "attendo.record") throw new RecordError("not_record");
  const version = count(found.version, "version");
  if (version > VERSION) {
    throw new RecordError("newer", { version, known: VERSION, attendo: String(found.attendo ?? "?") });
  }
  return version;
}

const side: Reader<Side> = (value, part) => {
  const token = fields({ id: count, piece: text, text, word: orNull(count) });
  const found = fields({ text, tokens: list(token), words: list(text) })(value, part);
  found.tokens.forEach((one, place) => {
    if (one.word !== null && one.word >= found.words.length) throw broken(`${part}.tokens[${place}].word`, "a word that is there");
  });
  return found;
};

interface Lengths {
  S: number;
  T: number;
}

/** What is only in the record when it was asked for. */
function studies({ S, T }: Lengths, { src, tgt }: { src: Side; tgt: Side }) {
  return {
    logit_lens: orNull(fields({ layers: list(list(fields({ top: list(guess), rank: count, probability: number }), T)) })),
    attribution: orNull(
      fields({
        method: text,
        num_steps: withDefault(count, 0),
        tokens: list(list(number, S), T),
        words: list(list(number, src.words.length), tgt.words.length),
        completeness: withDefault(list(number), []),
      }),
    ),
    ablation: orNull(
      fields({
        heads: list(
          fields({ kind: oneOf(...KINDS), layer: count, head: count, log_prob: number, change: number, text: orNull(text) }),
        ),
        log_prob: number,
      }),
    ),
    positions: orNull(positions),
    embeddings: orNull(fields({ src: list(list(neighbour), S), tgt: list(list(neighbour), T) })),
  };
}

function seriesOf({ S, T }: Lengths): Reader<Series> {
  return (value, part) => {
    const names = fields({ features: list(text), targets: list(text), labels: orNull(list(text)) })(value, part);
    const rest = fields({
      kind: oneOf("labels", "numbers"),
      times: list(text, S),
      values: list(list(orNull(number), S), names.features.length),
      tgt_times: list(text, T),
      probabilities: orNull(list(list(number, names.labels?.length), T)),
      numbers: orNull(list(list(number, T), names.targets.length)),
      observed_labels: orNull(list(orNull(text), T)),
      observed_numbers: orNull(list(list(orNull(number), T), names.targets.length)),
    })(value, part);
    return { ...names, ...rest };
  };
}

function kinds<T>(reader: (kind: Kind) => Reader<T>): Reader<Record<Kind, T>> {
  const [cross, encoder, decoder] = KINDS;
  return fields({ [cross]: reader(cross), [encoder]: reader(encoder), [decoder]: reader(decoder) } as Record<Kind, Reader<T>>);
}

function attention({ S, T }: Lengths): Reader<LookRecord["attention"]> {
  const sizes: Record<Kind, [number, number]> = { cross: [T, S], encoder_self: [S, S], decoder_self: [T, T] };
  return kinds((kind) => orNull(weights(...sizes[kind])));
}

function weights(rows: number, columns: number): Reader<Weights> {
  return (value, part) => {
    const head = fields({ layers: count, heads: count, rows: count, columns: count })(value, part);
    if (head.rows !== rows || head.columns !== columns) {
      throw broken(part, `${rows} x ${columns} weights, not ${head.rows} x ${head.columns}`);
    }
    return { ...head, data: unpack(value, part, head.layers * head.heads * rows * columns) };
  };
}

const positions: Reader<Positions> = (value, part) => {
  const head = fields({
    layout: withDefault(oneOf("interleaved", "halves"), "interleaved"),
    kind: text,
    d_model: count,
    num_positions: count,
  })(value, part);
  return { ...head, data: unpack(value, part, head.d_model * head.num_positions) };
};

function unpack(value: unknown, part: string, size: number): Float32Array {
  const { encoding, data } = fields({ encoding: oneOf("u16", "f16"), data: text })(value, part);
  let values: Float32Array;
  try {
    values = ENCODINGS[encoding](data);
  } catch {
    throw broken(`${part}.data`, "base64");
  }
  if (values.length !== size) throw broken(`${part}.data`, `${size} values, not ${values.length}`);
  return values;
}
