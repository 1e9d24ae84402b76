/** Text in, text out: a model folder of `attendo export --to onnx` (or `--to web`) in a browser or in Node.js. */

import { Seq2SeqSession, type GraphInfo, type OnnxRuntime } from "./model/session";
import { createRuntime } from "./runtime/runtime";
import { beamSearch } from "./search/beam";
import { greedySearch } from "./search/greedy";
import type { SearchOptions, SearchResult, SpecialIds } from "./search/options";
import { joinTranslations, splitIntoSegments, type SegmentedText } from "./text/sentences";
import { TextTokenizer, type TokenizerInfo } from "./text/tokenizer";

/** The file `onnx.json` of a model folder. */
export interface ModelInfo extends GraphInfo, SpecialIds {
  format_version: number;
  /** The version of Attendo that exported the model. */
  attendo: string;
  /** Name and sizes, for the inspector. */
  model?: Record<string, unknown>;
  src_lang: string | null;
  tgt_lang: string | null;
  max_src_tokens: number | null;
  sentences_per_line?: number;
  decoding: { beam_size: number; alpha: number; max_extra_tokens: number };
  tokenizer: TokenizerInfo;
}

/** Returns the contents of a file of the model folder. */
export type ReadFile = (name: string) => Promise<Uint8Array>;

export interface Translation {
  text: string;
  /** The segments that were translated one by one, with their hypotheses. */
  segments: {
    source: string;
    text: string;
    /** Words that the vocabulary lacks: their translation is missing, or wrong. */
    unknown: string[];
    result: SearchResult;
  }[];
}

const FORMAT_VERSION = 1;
const MAX_SRC_TOKENS = 512;
/** Mean sentences per training line from which texts are not split into sentences. */
const MULTI_SENTENCE_THRESHOLD = 1.1;
const BATCH_SIZE = 8;

export class Translator {
  private constructor(
    readonly info: ModelInfo,
    readonly tokenizer: TextTokenizer,
    readonly session: Seq2SeqSession,
  ) {}

  /** Load a model folder from a URL, or by a function that returns its files; ONNX Runtime may run it instead of our runtime. */
  static async load(folder: string | ReadFile, runtime?: OnnxRuntime, sessionOptions?: object): Promise<Translator> {
    const read = typeof folder === "string" ? fetchFrom(folder) : folder;
    const info = JSON.parse(new TextDecoder().decode(await read("onnx.json"))) as ModelInfo;
    if (info.format_version > FORMAT_VERSION) throw new Error(`the model has format ${String(info.format_version)}: update attendo-web`);
    const [encoder, decoder, src, tgt] = await Promise.all([
      read("encoder.onnx"),
      read("decoder.onnx"),
      read(info.tokenizer.src),
      info.tokenizer.tgt === info.tokenizer.src ? null : read(info.tokenizer.tgt),
    ]);
    const tokenizer = new TextTokenizer(info.tokenizer, info.end_id, src, tgt ?? src);
    const session = await Seq2SeqSession.create(runtime ?? (await createRuntime()), encoder, decoder, info, sessionOptions);
    return new Translator(info, tokenizer, session);
  }

  /** Translate a text, sentence by sentence; line breaks are kept. `onProgress` gets finished and all segments. */
  async translate(
    text: string,
    options: Partial<SearchOptions> & { trace?: boolean; onProgress?: (done: number, all: number) => void } = {},
  ): Promise<Translation> {
    const document = this.split(text);
    const { trace = false, onProgress, ...search } = options;
    const segments: Translation["segments"] = [];
    for (let first = 0; first < document.segments.length; first += BATCH_SIZE) {
      const sources = document.segments.slice(first, first + BATCH_SIZE);
      const results = await this.search(sources, search, trace);
      results.forEach((result, index) => {
        const source = sources[index]!;
        segments.push({ source, text: this.textOf(result), unknown: this.tokenizer.unknownWords(source), result });
      });
      onProgress?.(segments.length, document.segments.length);
    }
    return { text: joinTranslations(document, segments.map((segment) => segment.text)), segments };
  }

  /** Return the best hypotheses of sentences that are not split any more. */
  async search(sources: readonly string[], options: Partial<SearchOptions> = {}, trace = false): Promise<SearchResult[]> {
    const { decoding, max_positions: maxPositions } = this.info;
    const chosen = { beamSize: decoding.beam_size, alpha: decoding.alpha, nBest: 1, maxExtraTokens: decoding.max_extra_tokens, temperature: 0, seed: 0, ...options };
    const rows = sources.map((source) => this.tokenizer.encode(source));
    const filled = rows.filter((row) => row.length > 0);
    const limits = filled.map((row) => Math.min(row.length + chosen.maxExtraTokens, maxPositions ?? Infinity));
    const hasOneHypothesis = chosen.temperature > 0 || (chosen.beamSize === 1 && !trace);
    const found =
      filled.length === 0
        ? []
        : hasOneHypothesis
          ? await greedySearch(this.session, filled, limits, this.info, chosen)
          : await beamSearch(this.session, filled, limits, this.info, chosen, trace);
    const results = found.values();
    return rows.map((row) => (row.length > 0 ? results.next().value! : { hypotheses: [], trace: null }));
  }

  /** Split a text into the segments that are translated one by one. */
  split(text: string): SegmentedText {
    const { max_src_tokens: longest, sentences_per_line: sentencesPerLine = 1 } = this.info;
    const maxTokens = longest ?? MAX_SRC_TOKENS;
    const fits = (part: string): boolean => 4 * part.length < maxTokens || this.tokenizer.encode(part).length <= maxTokens;
    return splitIntoSegments(text, fits, text.trim().includes("\n") || sentencesPerLine < MULTI_SENTENCE_THRESHOLD);
  }

  /** Free the memory of the model. */
  async close(): Promise<void> {
    await this.session.close();
  }

  private textOf({ hypotheses }: SearchResult): string {
    return hypotheses[0] ? this.tokenizer.decode(hypotheses[0].ids) : "";
  }
}

function fetchFrom(folder: string): ReadFile {
  return async (name) => {
    const response = await fetch(`${folder.replace(/\/$/, "")}/${name}`);
    if (!response.ok) throw new Error(`${name}: HTTP ${String(response.status)}`);
    return new Uint8Array(await response.arrayBuffer());
  };
}
