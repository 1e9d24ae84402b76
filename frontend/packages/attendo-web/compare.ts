/** Reads a request as JSON from a file and writes what the package returns: the tests compare it with Python. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import * as ort from "onnxruntime-web/wasm";

import { ablateAllHeads, capture, normalize, SentencePiece, splitIntoSegments, Translator, type OnnxRuntime } from "./src";

interface ComparisonRequest {
  tokenizers: { model: string; texts: string[] }[];
  /** Texts to split into segments of at most this many characters. */
  segments: { texts: string[]; limits: number[] };
  model: string | null;
  /** Run the model by ONNX Runtime instead of our runtime. */
  usesOnnxRuntime?: boolean;
  /** Switch heads off, sample and capture too: by default. */
  inspects?: boolean;
  sentences: string[];
  beamSizes: number[];
}

const [input = "", output = ""] = process.argv.slice(2);
const request = JSON.parse(readFileSync(input, "utf8")) as ComparisonRequest;

const tokenizers = request.tokenizers.map(({ model, texts }) => {
  const tokenizer = new SentencePiece(new Uint8Array(readFileSync(model)));
  const ids = texts.map((text) => tokenizer.encode(text));
  return { ids, texts: ids.map((one) => tokenizer.decode(one)) };
});
const segments = request.segments.texts.map((text) =>
  request.segments.limits.map((limit) => splitIntoSegments(text, (part) => Array.from(part).length <= limit, limit % 2 === 0)),
);

const searches: unknown[] = [];
const samples: unknown[] = [];
let record: unknown = null;
let ablation: unknown = null;
if (request.model !== null) {
  const folder = request.model;
  const read = (name: string): Promise<Uint8Array> => Promise.resolve(new Uint8Array(readFileSync(join(folder, name))));
  ort.env.wasm.numThreads = 1;
  const translator = await Translator.load(read, request.usesOnnxRuntime ? (ort as unknown as OnnxRuntime) : undefined);
  for (const beamSize of request.beamSizes) searches.push(await translator.search(request.sentences, { beamSize, nBest: beamSize }));
  if (request.inspects !== false) await inspect(translator);
}
writeFileSync(output, JSON.stringify({ tokenizers, normalized: request.segments.texts.map(normalize), segments, searches, samples, ablation, record }));

async function inspect(translator: Translator): Promise<void> {
  const sampled = { temperature: 1, seed: 1 };
  for (const sources of [request.sentences, request.sentences, request.sentences.slice(-1)]) samples.push((await translator.search(sources, sampled)).map(({ hypotheses }) => hypotheses[0]!.ids));
  if (translator.session.heads.length > 0) ablation = await ablateAllHeads(translator, request.sentences[0]!, { beamSize: 4 });
  record = await capture(translator, request.sentences[0]!, { beamSize: 4 });
}
