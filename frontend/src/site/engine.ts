/** The worker of the page: its state, and requests to it as promises. */

import type { Ablation } from "../../packages/attendo-web/src";
import { cacheOf, type EmbeddedFiles } from "./files";
import type { Request, Response as Reply, SiteIndex, SiteModel, SiteOptions } from "./messages";
import type { Preference } from "./webgpu";
import workerUrl from "./translator.worker?worker&url";

type Answer<K extends Reply["kind"]> = Extract<Reply, { kind: K }>;
type Unsent = Request extends infer R ? (R extends Request ? Omit<R, "id"> : never) : never;

/** The path under which a page that is a single file contains the worker. */
const WORKER_PATH = "worker.js";

export class SupersededError extends Error {}

interface Pending {
  resolve: (reply: Reply) => void;
  reject: (error: Error) => void;
  onprogress: ((done: number, all: number) => void) | undefined;
}

export class Engine {
  private readonly worker: Worker;
  private readonly pending = new Map<number, Pending>();
  private lastId = 0;

  constructor(private readonly embedded: EmbeddedFiles) {
    const code = embedded[WORKER_PATH];
    const url = code ? URL.createObjectURL(new Blob([code], { type: "text/javascript" })) : new URL(workerUrl, document.baseURI);
    this.worker = new Worker(url);
    this.worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
      const pending = this.pending.get(data.id);
      if (!pending) return;
      if (data.kind === "progress") {
        pending.onprogress?.(data.done, data.all);
        return;
      }
      this.pending.delete(data.id);
      if (data.kind === "failed") pending.reject(new Error(data.reason));
      else if (data.kind === "superseded") pending.reject(new SupersededError());
      else pending.resolve(data);
    });
    this.worker.addEventListener("error", (event) => {
      for (const { reject } of this.pending.values()) reject(new Error(event.message || "the worker ended"));
      this.pending.clear();
    });
  }

  /** Load a model; return its heads. */
  async load(index: SiteIndex, model: SiteModel, onprogress: Pending["onprogress"]): Promise<Answer<"loaded">> {
    const { base, name: cache } = cacheOf(index);
    const request = { kind: "load" as const, base, cache, embedded: this.embedded, webgpu: index.webgpu, preference: preferenceOf(location.search), model };
    return (await this.ask(request, onprogress)) as Answer<"loaded">;
  }

  async translate(text: string, options: SiteOptions, onprogress: Pending["onprogress"]): Promise<Answer<"translated">> {
    return (await this.ask({ kind: "translate", text, options }, onprogress)) as Answer<"translated">;
  }

  /** Return the record of a sentence as JSON. */
  async capture(sentence: string, options: SiteOptions): Promise<string> {
    return ((await this.ask({ kind: "capture", sentence, options })) as Answer<"captured">).record;
  }

  /** Switch each head off, one at a time. */
  async ablate(sentence: string, options: SiteOptions, onprogress: Pending["onprogress"]): Promise<Ablation> {
    return ((await this.ask({ kind: "ablate", sentence, options }, onprogress)) as Answer<"ablated">).ablation;
  }

  private ask(request: Unsent, onprogress?: Pending["onprogress"]): Promise<Reply> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject, onprogress });
      this.worker.postMessage({ ...request, id });
    });
  }
}

/** What the visitor prefers: `?runtime=webgpu` or `?runtime=wasm`. */
function preferenceOf(query: string): Preference {
  const value = new URLSearchParams(query).get("runtime");
  return value === "webgpu" || value === "wasm" ? value : null;
}

/** Whether the browser has WebAssembly with SIMD: it accepts a module with one such instruction. */
export function supportsSimd(): boolean {
  const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
  return typeof WebAssembly === "object" && WebAssembly.validate(Uint8Array.from(bytes));
}
