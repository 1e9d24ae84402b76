/** ONNX Runtime on the graphics processor: loaded only where it may be faster than the runtime of the page. */

import type { OnnxRuntime } from "../../packages/attendo-web/src";
import type { EmbeddedFiles, FileCache } from "./files";
import { openFile } from "./files";
import type { SiteIndex, SiteModel } from "./messages";

/** From here on a step on the graphics processor takes less time than starting its programs and copying its results. */
const MIN_PARAMETERS = 50_000_000;

/** What the visitor may choose by `?runtime=` in the address. */
export type Preference = "webgpu" | "wasm" | null;

interface Adapter {
  info?: { isFallbackAdapter?: boolean };
}

interface OnnxRuntimeWeb extends OnnxRuntime {
  env: { logLevel?: string; wasm: { wasmBinary?: ArrayBuffer; numThreads?: number; wasmPaths?: unknown } };
}

/** Whether a model is run on the graphics processor: a large one, whose weights are floats, where there is one. */
export async function usesWebGpu(files: SiteIndex["webgpu"], model: SiteModel, preference: Preference): Promise<boolean> {
  const isChosen = preference === "webgpu";
  if (!files || preference === "wasm" || !(isChosen || isLarge(model)) || !("Suspending" in WebAssembly)) return false;
  const { gpu } = navigator as unknown as { gpu?: { requestAdapter: () => Promise<Adapter | null> } };
  const adapter = await gpu?.requestAdapter().catch(() => null);
  return !!adapter && (isChosen || !adapter.info?.isFallbackAdapter);
}

function isLarge(model: SiteModel): boolean {
  return model.num_parameters >= MIN_PARAMETERS && model.precision !== "int8";
}

/** Load ONNX Runtime; it is not part of the page. */
export async function loadOnnxRuntime(files: NonNullable<SiteIndex["webgpu"]>, embedded: EmbeddedFiles, cache: FileCache): Promise<OnnxRuntime> {
  const script = await (await openFile(files.script, embedded, cache)).blob();
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const runtime = (await import(/* @vite-ignore */ url)) as OnnxRuntimeWeb;
  URL.revokeObjectURL(url);
  const compressed = (await openFile(files.wasm, embedded, cache)).body!;
  runtime.env.logLevel = "error";
  runtime.env.wasm.numThreads = 1;
  runtime.env.wasm.wasmBinary = await new Response(compressed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  return runtime;
}
