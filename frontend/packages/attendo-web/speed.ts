/** How fast a model translates greedily: the benchmark `benchmarks/web_speed.py` runs it in Chromium and in Node.js. */

import { createRuntime, Translator, type OnnxRuntime } from "./src";
import { greedySearch } from "./src/search/greedy";

export interface Speed {
  batchSize: number;
  /** Of all repeats together. */
  sentences: number;
}

/** Load a model from a function that returns its files. */
export async function load(read: (name: string) => Promise<Uint8Array>, runtime?: OnnxRuntime, relaxed = true): Promise<Translator> {
  return Translator.load(read, runtime ?? (await createRuntime({ relaxed })));
}

/** Translate batches of the same source ids into exactly `length` tokens each. */
export async function translate(translator: Translator, srcIds: readonly number[], batchSize: number, length: number, repeats: number): Promise<void> {
  const special = { ...translator.info, end_id: -1 };
  const options = { beamSize: 1, alpha: 0, nBest: 1, maxExtraTokens: 0, temperature: 0, seed: 0 };
  const sources = Array.from({ length: batchSize }, () => srcIds);
  const limits = sources.map(() => length);
  for (let repeat = 0; repeat < repeats; repeat++) await greedySearch(translator.session, sources, limits, special, options);
}
