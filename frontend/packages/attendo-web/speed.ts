/** What `web-speed.mjs` runs in the browser: a model whose files are next to the page. */

import { createRuntime, type ModelInfo, type OnnxRuntime, Seq2SeqSession } from "./src";
import { greedySearch } from "./src/search/greedy";

const OPTIONS = { beamSize: 1, alpha: 0, nBest: 1, maxExtraTokens: 0, temperature: 0, seed: 0 };
let info: ModelInfo;
let session: Seq2SeqSession;

/** Load the model for a runtime: "relaxed SIMD" or "SIMD" is ours. */
export async function open(runtime: string): Promise<void> {
  const chosen = runtime === "ONNX Runtime" ? await loadOnnxRuntime() : await createRuntime({ relaxed: runtime === "relaxed SIMD" });
  info = (await (await fetch("onnx.json")).json()) as ModelInfo;
  const [encoder, decoder] = await Promise.all(["encoder.onnx", "decoder.onnx"].map(async (name) => new Uint8Array(await (await fetch(name)).arrayBuffer())));
  session = await Seq2SeqSession.create(chosen, encoder!, decoder!, info);
}

async function loadOnnxRuntime(): Promise<OnnxRuntime> {
  const url = new URL("ort.wasm.min.mjs", location.href).href;
  const ort = (await import(url)) as OnnxRuntime & { env: { wasm: { numThreads: number } } };
  ort.env.wasm.numThreads = 1;
  return ort;
}

/** Translate a batch of the same sentence greedily into exactly `length` tokens each. */
export async function translate(batchSize: number, length: number, repeats: number): Promise<void> {
  const special = { ...info, end_id: -1 };
  const srcIds = Array.from({ length }, (_, index) => 100 + 37 * index);
  const sources = Array.from({ length: batchSize }, () => srcIds);
  const limits = sources.map(() => length);
  for (let repeat = 0; repeat < repeats; repeat++) await greedySearch(session, sources, limits, special, OPTIONS);
}
