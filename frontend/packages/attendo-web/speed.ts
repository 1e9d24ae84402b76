/** What `web-speed.mjs` runs in the browser. */

import { createRuntime, Translator, type OnnxRuntime } from "./src";
import { greedySearch } from "./src/search/greedy";

let translator: Translator;

/** Load the model in the folder of the page. */
export async function open(runtime: string): Promise<void> {
  translator = await Translator.load("", runtime === "ONNX Runtime" ? await loadOnnxRuntime() : await createRuntime({ relaxed: runtime === "relaxed SIMD" }));
}

async function loadOnnxRuntime(): Promise<OnnxRuntime> {
  const url = new URL("ort.wasm.min.mjs", location.href).href;
  const ort = (await import(url)) as OnnxRuntime & { env: { wasm: { numThreads: number } } };
  ort.env.wasm.numThreads = 1;
  return ort;
}

/** Translate a batch of the same sentence greedily into exactly `length` tokens each. */
export async function translate(batchSize: number, length: number, repeats: number): Promise<void> {
  const special = { ...translator.info, end_id: -1 };
  const options = { beamSize: 1, alpha: 0, nBest: 1, maxExtraTokens: 0, temperature: 0, seed: 0 };
  const srcIds = Array.from({ length }, (_, index) => 100 + 37 * index);
  const sources = Array.from({ length: batchSize }, () => srcIds);
  const limits = sources.map(() => length);
  for (let repeat = 0; repeat < repeats; repeat++) await greedySearch(translator.session, sources, limits, special, options);
}
