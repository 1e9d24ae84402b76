/** The two ONNX graphs of a Transformer: the encoder runs once, the decoder once per token. */

import { DAMAGED, indexOfHighest, logSoftmax } from "../search/top";

/** What runs the graphs: `createRuntime`, or the part of `onnxruntime-web` and `onnxruntime-node` that is used. */
export interface OnnxRuntime {
  Tensor: new (type: never, data: never, dims: readonly number[]) => OnnxTensor;
  InferenceSession: { create: (model: Uint8Array, options?: never) => Promise<OnnxSession> };
}

export interface OnnxTensor {
  readonly dims: readonly number[];
  readonly data: unknown;
  dispose: () => void;
  /** Return a tensor whose row i is row `rows[i]`; ONNX Runtime has no such function. */
  takeRows?: (rows: readonly number[]) => OnnxTensor;
  /** Turn logits into log-probabilities along the last axis, and return these. */
  logSoftmax?: () => Float32Array;
  /** Return the most probable ids of rows of logits except `excluded`, and their log-probabilities. */
  best?: (excluded: readonly number[]) => Best;
}

/** The most probable token of each row. */
export interface Best {
  ids: number[];
  logProbs: number[];
}

export interface OnnxSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  run: (feeds: Record<string, never>, fetches?: readonly string[]) => Promise<Record<string, unknown>>;
  release: () => Promise<void>;
}

/** What `onnx.json` says of the graphs, as far as a search needs it. */
export interface GraphInfo {
  pad_id: number;
  start_id: number;
  /** The longest sequence, if positions are learned. */
  max_positions: number | null;
  graphs: Record<"encoder.onnx" | "decoder.onnx", { inputs: Record<string, string>; outputs: Record<string, string> }>;
}

/** Numbers with their shape, row-major. */
export interface Values {
  data: Float32Array;
  shape: readonly number[];
}

/** The memory of the encoder and the keys and values of the decoder so far; a row is a hypothesis. */
interface State {
  rows: number;
  length: number;
  tensors: Record<string, OnnxTensor>;
}

type Kind = "float32" | "int64" | "bool";

export const KINDS = ["encoder_self", "decoder_self", "cross"] as const;

/** An attention head; layers and heads are counted from 0. */
export interface Head {
  kind: (typeof KINDS)[number];
  layer: number;
  head: number;
}

/** Runs a batch of sentences; one search at a time. */
export class Seq2SeqSession {
  private state: State | null = null;
  /** Which heads take part, by the input that has one number per layer and head. */
  private headMasks: Record<string, { data: Float32Array; shape: [number, number] }> = {};

  private constructor(
    private readonly runtime: OnnxRuntime,
    private readonly encoder: OnnxSession,
    private readonly decoder: OnnxSession,
    readonly info: GraphInfo,
  ) {
    this.switchOff([]);
  }

  static async create(runtime: OnnxRuntime, encoder: Uint8Array, decoder: Uint8Array, info: GraphInfo, options?: object): Promise<Seq2SeqSession> {
    const open = (model: Uint8Array): Promise<OnnxSession> => runtime.InferenceSession.create(model, options as never);
    return new Seq2SeqSession(runtime, await open(encoder), await open(decoder), info);
  }

  /** Every head that can be switched off: none in a model that was exported without attention. */
  get heads(): Head[] {
    return KINDS.flatMap((kind) => {
      const [layers, heads] = this.headMasks[`${kind}_heads`]?.shape ?? [0, 0];
      return Array.from({ length: layers * heads }, (_, index) => ({ kind, layer: Math.floor(index / heads), head: index % heads }));
    });
  }

  /** Switch these heads off and all others on. */
  switchOff(heads: readonly Head[]): void {
    const inputs = Object.entries({ ...this.info.graphs["encoder.onnx"].inputs, ...this.info.graphs["decoder.onnx"].inputs });
    this.headMasks = Object.fromEntries(
      inputs
        .filter(([name]) => name.endsWith("_heads"))
        .map(([name, described]) => {
          const shape = shapeOf(described).map(Number) as [number, number];
          return [name, { data: new Float32Array(shape[0] * shape[1]).fill(1), shape }];
        }),
    );
    for (const { kind, layer, head } of heads) {
      const mask = this.headMasks[`${kind}_heads`];
      if (!mask || layer >= mask.shape[0] || head >= mask.shape[1]) throw new RangeError(`no head ${String(head)} in layer ${String(layer)} of ${kind}`);
      mask.data[layer * mask.shape[1] + head] = 0;
    }
  }

  /** The names of the attention weights that the graphs return, lowest layer first. */
  get attentionNames(): { encoder: string[]; decoder: string[] } {
    const select = (session: OnnxSession): string[] => session.outputNames.filter((name) => name.startsWith("attention/"));
    return { encoder: select(this.encoder), decoder: select(this.decoder) };
  }

  /** Encode sources, one row each; return the attention weights that are asked for. */
  async start(sources: readonly (readonly number[])[], fetches: readonly string[] = []): Promise<Record<string, Values>> {
    const longest = Math.max(...sources.map((row) => row.length));
    this.checkLength(longest);
    const ids = new BigInt64Array(sources.length * longest).fill(BigInt(this.info.pad_id));
    sources.forEach((row, index) => row.forEach((id, position) => (ids[index * longest + position] = BigInt(id))));
    const names = this.encoder.outputNames.filter((name) => !name.startsWith("attention/"));
    const outputs = await this.run(this.encoder, { src_ids: this.tensor("int64", ids, [sources.length, longest]) }, [...names, ...fetches]);
    this.release();
    const tensors = Object.fromEntries(names.map((name) => [name, outputs[name]!]));
    for (const name of this.decoder.inputNames.filter((one) => one.startsWith("past_"))) {
      const [heads, , size] = this.sizesOf(name);
      tensors[name] = this.tensor("float32", new Float32Array(), [sources.length, heads!, 0, size!]);
    }
    this.state = { rows: sources.length, length: 0, tensors };
    return takeValues(outputs, fetches);
  }

  /** Feed one token per row; return the log-probabilities (rows, vocabulary) and the attention weights that are asked for. */
  async step(ids: readonly number[], fetches: readonly string[] = []): Promise<{ logProbs: Values; attention: Record<string, Values> }> {
    const { logits, outputs } = await this.feed(ids, fetches);
    const logProbs = logits.logSoftmax?.() ?? logSoftmaxRows(logits.data as Float32Array, ids.length);
    logits.dispose();
    const size = logProbs.length / ids.length;
    checkNumbers(ids.map((_, row) => logProbs[row * size]!));
    return { logProbs: { data: logProbs, shape: [ids.length, size] }, attention: takeValues(outputs, fetches) };
  }

  /** Feed one token per row; return the most probable token of each row, without those that are `excluded`. */
  async stepToBest(ids: readonly number[], excluded: readonly number[]): Promise<Best> {
    const { logits } = await this.feed(ids, []);
    const best = logits.best?.(excluded) ?? bestOf(logSoftmaxRows(logits.data as Float32Array, ids.length), ids.length, excluded);
    logits.dispose();
    checkNumbers(best.logProbs);
    return best;
  }

  /** Feed a whole target after the encoded sources, one row each; return the logits (rows, length, vocabulary). */
  async forward(target: readonly number[], fetches: readonly string[] = []): Promise<{ logits: Values; attention: Record<string, Values> }> {
    this.checkLength(target.length);
    const feeds = { ...this.current.tensors, ids: this.tensor("int64", BigInt64Array.from(target, BigInt), [1, target.length]) };
    const outputs = await this.run(this.decoder, feeds, ["logits", ...fetches]);
    return { logits: takeValues(outputs, ["logits"]).logits!, attention: takeValues(outputs, fetches) };
  }

  /** Let row i become what row `rows[i]` is. */
  reorder(rows: readonly number[]): void {
    const state = this.current;
    if (rows.length === state.rows && rows.every((row, index) => row === index)) return;
    for (const [name, tensor] of Object.entries(state.tensors)) {
      state.tensors[name] = tensor.takeRows?.(rows) ?? this.takeRows(tensor, rows, name === "src_mask" ? "bool" : "float32");
      tensor.dispose();
    }
    state.rows = rows.length;
  }

  /** Free the memory of the last search. */
  release(): void {
    for (const tensor of Object.values(this.state?.tensors ?? {})) tensor.dispose();
    this.state = null;
  }

  /** Free everything. */
  async close(): Promise<void> {
    this.release();
    await Promise.all([this.encoder.release(), this.decoder.release()]);
  }

  private async feed(ids: readonly number[], fetches: readonly string[]): Promise<{ logits: OnnxTensor; outputs: Record<string, OnnxTensor> }> {
    const state = this.current;
    this.checkLength(state.length + 1);
    const names = this.decoder.outputNames.filter((name) => !name.startsWith("attention/"));
    const feeds = { ...state.tensors, ids: this.tensor("int64", BigInt64Array.from(ids, BigInt), [ids.length, 1]) };
    const outputs = await this.run(this.decoder, feeds, [...names, ...fetches]);
    for (const name of names) {
      if (name === "logits") continue;
      state.tensors[`past_${name}`]!.dispose();
      state.tensors[`past_${name}`] = outputs[name]!;
    }
    state.length++;
    return { logits: outputs.logits!, outputs };
  }

  private get current(): State {
    if (!this.state) throw new Error("no source has been encoded");
    return this.state;
  }

  private takeRows(tensor: OnnxTensor, rows: readonly number[], kind: Kind): OnnxTensor {
    const [, ...shape] = tensor.dims;
    const size = shape.reduce((product, length) => product * length, 1);
    const source = tensor.data as Float32Array | Uint8Array;
    const target = new (source.constructor as new (length: number) => typeof source)(rows.length * size);
    rows.forEach((row, index) => target.set(source.subarray(row * size, (row + 1) * size), index * size));
    return this.tensor(kind, target, [rows.length, ...shape]);
  }

  private async run(session: OnnxSession, feeds: Record<string, OnnxTensor>, fetches: readonly string[]): Promise<Record<string, OnnxTensor>> {
    const all = { ...feeds };
    for (const [name, { data, shape }] of Object.entries(this.headMasks)) if (session.inputNames.includes(name)) all[name] = this.tensor("float32", data, shape);
    return (await session.run(all as Record<string, never>, fetches)) as Record<string, OnnxTensor>;
  }

  private tensor(kind: Kind, data: Float32Array | BigInt64Array | Uint8Array, shape: readonly number[]): OnnxTensor {
    return new this.runtime.Tensor(kind as never, data as never, shape);
  }

  /** Return the whole numbers in the shape of an input, e.g. of "float32 (rows, 4, past_length, 32)". */
  private sizesOf(input: string): [number, number, number] {
    const shape = shapeOf(this.info.graphs["decoder.onnx"].inputs[input]!);
    return [Number(shape[1]), 0, Number(shape[3])];
  }

  private checkLength(length: number): void {
    const { max_positions: limit } = this.info;
    if (limit !== null && length > limit) throw new RangeError(`the model has ${String(limit)} positions: split the text`);
  }
}

/** Return the sizes in e.g. "float32 (rows, 4, past_length, 32)". */
function shapeOf(described: string): string[] {
  return described.replace(/^.*\(|\)$/g, "").split(", ");
}

function logSoftmaxRows(logits: Float32Array, rows: number): Float32Array {
  const size = logits.length / rows;
  for (let row = 0; row < rows; row++) logits.set(logSoftmax(logits.subarray(row * size, (row + 1) * size)), row * size);
  return logits;
}

function bestOf(logProbs: Float32Array, rows: number, excluded: readonly number[]): Best {
  const size = logProbs.length / rows;
  const ids = Array.from({ length: rows }, (_, index) => {
    const row = logProbs.subarray(index * size, (index + 1) * size);
    for (const id of excluded) row[id] = -Infinity;
    return indexOfHighest(row);
  });
  return { ids, logProbs: ids.map((id, row) => logProbs[row * size + id]!) };
}

function checkNumbers(logProbs: Iterable<number>): void {
  for (const logProb of logProbs) if (Number.isNaN(logProb)) throw new Error(DAMAGED);
}

/** Return the numbers of outputs, and free these. */
function takeValues(outputs: Record<string, OnnxTensor>, names: readonly string[]): Record<string, Values> {
  const taken = Object.fromEntries(names.map((name) => [name, { data: outputs[name]!.data as Float32Array, shape: outputs[name]!.dims }]));
  for (const name of names) outputs[name]!.dispose();
  return taken;
}
