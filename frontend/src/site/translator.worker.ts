/** Loads the model and translates, away from the page, which stays responsive. */

import { ablateAllHeads, capture, Translator } from "../../packages/attendo-web/src";
import { openFile } from "./files";
import type { Request, Response } from "./messages";

let translator: Translator | null = null;
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
      else reply({ kind: "failed", id: data.id, reason: error instanceof Error ? error.message : String(error) });
    }
  });
}

addEventListener("message", receive);

async function handle(request: Request): Promise<void> {
  const { id } = request;
  if (request.kind === "load") {
    translator = await load(request);
    reply({ kind: "loaded", id, heads: translator.session.heads });
    return;
  }
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
  reply({ kind: "translated", id, text, sentences, seconds: (performance.now() - start) / 1000 });
}

async function load({ id, base, cache, embedded, model }: Extract<Request, { kind: "load" }>): Promise<Translator> {
  await translator?.close();
  translator = null;
  const all = Object.values(model.files).reduce((sum, bytes) => sum + bytes, 0);
  let done = 0;
  const read = async (path: string): Promise<Uint8Array<ArrayBuffer>> => {
    const response = await openFile(path, embedded, { name: cache, base });
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        done += chunk.length;
        reply({ kind: "progress", id, done: Math.min(done, all), all });
        controller.enqueue(chunk);
      },
    });
    return new Uint8Array(await new globalThis.Response(response.body!.pipeThrough(counter)).arrayBuffer());
  };
  return Translator.load((name) => read(`${model.folder}/${name}`));
}
