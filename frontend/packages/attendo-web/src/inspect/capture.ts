/** One sentence through the model, as the JSON that `attendo.inspection` writes: attention, steps and the beam. */

import { KINDS, type Values } from "../model/session";
import type { Hypothesis, SearchOptions, Trace } from "../search/options";
import { logSoftmax, topIndices } from "../search/top";
import type { ModelInfo, Translator } from "../translator";

import { buildSide } from "./surfaces";

const U16_MAX = 65_535;
const TOP = 10;

/** Return the record of a sentence; its search has at most `options.beamSize` hypotheses, a sampled translation has no beam. */
export async function capture(translator: Translator, source: string, options: Partial<SearchOptions> = {}): Promise<Record<string, unknown>> {
  const { info, session, tokenizer } = translator;
  const [result] = await translator.search([source], options, true);
  const best = result!.hypotheses[0];
  if (!best) throw new Error("the sentence is empty");
  const srcIds = tokenizer.encode(source);
  const tgtIds = best.isFinished ? [...best.ids, info.end_id] : best.ids;
  const names = session.attentionNames;
  const encoderWeights = await session.start([srcIds], names.encoder);
  const { logits, attention } = await session.forward([info.start_id, ...tgtIds.slice(0, -1)], names.decoder);
  session.release();
  const unescape = (text: string): string => tokenizer.unescape(text);
  return {
    format: "attendo.record",
    version: 1,
    attendo: info.attendo,
    model: info.model ?? describeModel(info),
    search: describeSearch(best, info, options),
    src: buildSide(tokenizer.normalize(source), srcIds, tokenizer.src, unescape, tokenizer.unknownsOf(source)),
    tgt: buildSide(tokenizer.decode(best.ids), tgtIds, tokenizer.tgt, unescape),
    attention: Object.fromEntries(KINDS.map((kind) => [kind, encodeWeights({ ...encoderWeights, ...attention }, kind)])),
    steps: tgtIds.map((id, position) => describeStep(rowOf(logits, position), id, (piece) => tokenizer.tgt.pieceOf(piece))),
    beam: result!.trace && describeTrace(result!.trace, result!.hypotheses, srcIds.length, info, options, (piece) => tokenizer.tgt.pieceOf(piece)),
    measures: {},
    notes: [],
  };
}

function rowOf({ data, shape }: Values, position: number): Float32Array {
  const size = shape.at(-1)!;
  return data.subarray(position * size, (position + 1) * size);
}

function describeStep(logits: Float32Array, id: number, pieceOf: (id: number) => string): Record<string, unknown> {
  const logProbs = logSoftmax(logits);
  const top = topIndices(logProbs, TOP);
  if (!top.includes(id)) top.push(id);
  let entropy = 0;
  for (const logProb of logProbs) if (logProb > -Infinity) entropy -= logProb * Math.exp(logProb);
  return {
    probability: Math.exp(logProbs[id]!),
    log_prob: logProbs[id],
    entropy,
    top: top.map((one) => ({ id: one, piece: pieceOf(one), probability: Math.exp(logProbs[one]!) })),
  };
}

function describeSearch(best: Hypothesis, info: ModelInfo, options: Partial<SearchOptions>): Record<string, unknown> {
  return {
    method: options.temperature ? "sampling" : "beam",
    beam_size: options.beamSize ?? info.decoding.beam_size,
    alpha: options.alpha ?? info.decoding.alpha,
    score: best.score,
    log_prob: best.logProb,
    is_finished: best.isFinished,
  };
}

function describeTrace(
  trace: Trace,
  hypotheses: readonly Hypothesis[],
  srcLength: number,
  info: ModelInfo,
  options: Partial<SearchOptions>,
  pieceOf: (id: number) => string,
): Record<string, unknown> {
  return {
    format: "attendo.trace",
    version: 2,
    method: "beam",
    beam_size: options.beamSize ?? info.decoding.beam_size,
    alpha: options.alpha ?? info.decoding.alpha,
    length_norm: "paper",
    n_best: options.nBest ?? 1,
    limit: srcLength + (options.maxExtraTokens ?? info.decoding.max_extra_tokens),
    end_id: info.end_id,
    steps: trace.steps.map((candidates, position) => ({
      group: 0,
      position,
      candidates: candidates.map(({ logProb, ...one }) => ({ token: pieceOf(one.id), ...one, log_prob: logProb, met: 0 })),
    })),
    stopped: trace.stopped,
    hypotheses: hypotheses.map(({ ids, logProb, score, isFinished }) => ({ ids, total: logProb, score, is_finished: isFinished })),
  };
}

function describeModel(info: ModelInfo): Record<string, unknown> {
  const sizes = { num_layers: null, num_decoder_layers: null, num_heads: null, d_model: null, num_parameters: null };
  const languages = [info.src_lang, info.tgt_lang];
  return { name: languages.filter(Boolean).join("-") || "transformer", kind: "transformer", ...sizes, src_lang: languages[0], tgt_lang: languages[1] };
}

/** Return the weights of one kind, 16 bits each; the sums are rounded, so that every row sums to one. */
function encodeWeights(weights: Record<string, Values>, kind: string): Record<string, unknown> | null {
  const layers = Object.keys(weights)
    .filter((name) => name.startsWith(`attention/${kind}_`))
    .map((_, layer) => weights[`attention/${kind}_${String(layer)}`]!);
  if (layers.length === 0) return null;
  const [, heads, rows, columns] = layers[0]!.shape as [number, number, number, number];
  const codes = new Uint8Array(2 * layers.length * heads * rows * columns);
  const view = new DataView(codes.buffer);
  let offset = 0;
  for (const { data } of layers) {
    for (let row = 0; row < heads * rows; row++) {
      let sum = 0;
      let before = 0;
      for (let column = 0; column < columns; column++) {
        sum += data[row * columns + column]!;
        const rounded = Math.round(sum * U16_MAX);
        view.setUint16(offset, Math.min(Math.max(rounded - before, 0), U16_MAX), true);
        before = rounded;
        offset += 2;
      }
    }
  }
  return { layers: layers.length, heads, rows, columns, encoding: "u16", data: toBase64(codes) };
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 0x8000) binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(binary);
}
