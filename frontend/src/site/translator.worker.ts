/** Loads the model and translates, away from the page, which stays responsive. */

import { ablateAllHeads, capture, Translator } from "../../packages/attendo-web/src";
import { openFile } from "./files";
import type { Request, Response, RuntimeInUse } from "./messages";
import { loadOnnxRuntime, usesWebGpu } from "./webgpu";

type LoadRequest = Extract<Request, { kind: "load" }>;

let translator: Translator | null = null;
let runtime: RuntimeInUse = { name: "WebAssembly", failure: null };
/** How the model was loaded. */
let loaded: LoadRequest | null = null;
/** The last request to translate: an older one is given up between sentences. */
let latest = 0;
/** Searches run one after the other. */
let queue: Promise<void> = Promise.resolve();

class SupersededError extends Error {}

function reply(response: Response): void {
  postMessage(response);
}

function receive({ data }: MessageEvent<Request>): void {
  if (data.kind === "translate") latest = data.id;
  queue = queue.then(async () => {
    try {
      await handle(data);
    } catch (error) {
      if (error instanceof SupersededError) reply({ kind: "superseded", id: data.id });
      else reply({ kind: "failed", id: data.id, reason: reasonOf(error) });
    }
  });
}

addEventListener("message", receive);

async function handle(request: Request): Promise<void> {
  if (request.kind === "load") {
    await load(request);
    reply({ kind: "loaded", id: request.id, heads: translator!.session.heads });
    return;
  }
  try {
    await answer(request);
  } catch (error) {
    if (runtime.name !== "WebGPU" || !loaded || error instanceof SupersededError) throw error;
    await load({ ...loaded, preference: "wasm" });
    runtime = { name: "WebAssembly", failure: reasonOf(error) };
    await answer(request);
  }
}

async function answer(request: Exclude<Request, LoadRequest>): Promise<void> {
  const { id } = request;
  if (!translator) throw new Error("no model is loaded");
  const { headsOff, ...options } = request.options;
  translator.session.switchOff(headsOff);
  if (request.kind === "capture") {
    const record = await capture(translator, request.sentence, options);
    reply({ kind: "captured", id, record: JSON.stringify(record) });
    return;
  }
  if (request.kind === "ablate") {
    const ablation = await ablateAllHeads(translator, request.sentence, options, (done, all) => reply({ kind: "progress", id, done, all }));
    reply({ kind: "ablated", id, ablation });
    return;
  }
  const start = performance.now();
  const onProgress = (done: number, all: number): void => {
    if (latest !== id) throw new SupersededError();
    reply({ kind: "progress", id, done, all });
  };
  if (latest !== id) throw new SupersededError();
  const { text, segments } = await translator.translate(request.text, { ...options, onProgress });
  const sentences = segments.map(({ source, text: translated, unknown }) => ({ source, text: translated, unknown }));
  reply({ kind: "translated", id, text, sentences, seconds: (performance.now() - start) / 1000, runtime });
}

/** Load a model: on the graphics processor if that is faster and works, else by the runtime of the page. */
async function load(request: LoadRequest): Promise<void> {
  await translator?.close().catch(() => undefined);
  [translator, loaded] = [null, request];
  const { embedded, webgpu, model, preference, cache: name, base } = request;
  let failure: string | null = null;
  const read = readerOf(request);
  if (webgpu && (await usesWebGpu(webgpu, model, preference))) {
    try {
      const onnxRuntime = await loadOnnxRuntime(webgpu, embedded, { name, base });
      translator = await Translator.load(read, onnxRuntime, { executionProviders: ["webgpu"] });
      await translator.search(["."], { beamSize: 1, maxExtraTokens: 1 }); // compiles the programs
      runtime = { name: "WebGPU", failure };
      return;
    } catch (error) {
      failure = reasonOf(error);
    }
  }
  translator = await Translator.load(read);
  runtime = { name: "WebAssembly", failure };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Return a function that reads files of the model, and reports the progress. */
function readerOf({ id, base, cache, embedded, model }: LoadRequest): (name: string) => Promise<Uint8Array<ArrayBuffer>> {
  const all = Object.values(model.files).reduce((sum, bytes) => sum + bytes, 0);
  let done = 0;
  return async (name) => {
    const response = await openFile(`${model.folder}/${name}`, embedded, { name: cache, base });
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        done += chunk.length;
        reply({ kind: "progress", id, done: Math.min(done, all), all });
        controller.enqueue(chunk);
      },
    });
    return new Uint8Array(await new globalThis.Response(response.body!.pipeThrough(counter)).arrayBuffer());
  };
}
