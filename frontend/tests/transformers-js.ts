/** Translates lines by transformers.js: the arguments are a folder, the weights (fp32 or q8), and files of lines and of results. */

import { readFileSync, writeFileSync } from "node:fs";
import Module from "node:module";
import { basename, dirname } from "node:path";

// The native runtime of Node.js would download binaries: the library is given the one of the browser.
const resolver = Module as unknown as { _resolveFilename: (name: string, ...others: unknown[]) => string };
const resolve = resolver._resolveFilename.bind(Module);
resolver._resolveFilename = (name, ...others) => resolve(name === "onnxruntime-node" ? "onnxruntime-web" : name, ...others);
const { env, pipeline } = await import("@huggingface/transformers");

const [folder = "", dtype = "fp32", input = "", output = ""] = process.argv.slice(2);
env.allowRemoteModels = false;
env.useWasmCache = false;
Object.assign(env.backends.onnx.wasm!, { wasmPaths: undefined, numThreads: 1 });
env.localModelPath = dirname(folder);
const translate = await pipeline("translation", basename(folder), { dtype: dtype as "fp32" | "q8" });
const results = [];
for (const line of JSON.parse(readFileSync(input, "utf8")) as string[]) {
  const ids = translate.tokenizer(line).input_ids as { tolist: () => bigint[][] };
  const [found] = (await translate(line)) as { translation_text: string }[];
  results.push({ ids: ids.tolist()[0]!.map(Number), text: found!.translation_text });
}
writeFileSync(output, JSON.stringify(results));
