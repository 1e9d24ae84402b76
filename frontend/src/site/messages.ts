/** What the page and its worker send each other. */

import type { Ablation, Head } from "../../packages/attendo-web/src";
import type { EmbeddedFiles } from "./files";
import type { Preference } from "./webgpu";

/** What computes: the runtime of the page, or ONNX Runtime on the graphics processor. */
export type RuntimeName = "WebAssembly" | "WebGPU";

export interface RuntimeInUse {
  name: RuntimeName;
  /** Why the graphics processor is not used although it was tried. */
  failure: string | null;
}

export interface SiteModel {
  name: string;
  folder: string;
  src_lang: string | null;
  tgt_lang: string | null;
  /** The files to load with their sizes in bytes. */
  files: Record<string, number>;
  /** Sentences to try, and what the model card says. */
  examples: string[];
  about: Record<string, string>;
  num_parameters: number;
  precision: "int8" | "float16" | "float32";
  /** The file with the drawing of the whole machine, if there is one. */
  drawing: string | null;
}

/** The file `models.json` of a site. */
export interface SiteIndex {
  attendo: string;
  /** A hash of all files; another one is another site. */
  version: string;
  /** ONNX Runtime for the graphics processor, if the page was exported with it. */
  webgpu: { script: string; wasm: string } | null;
  models: SiteModel[];
}

export interface TranslatedSentence {
  source: string;
  text: string;
  /** Words that the vocabulary lacks. */
  unknown: string[];
}

/** How to translate, as the visitor has set it. */
export interface SiteOptions {
  beamSize: number;
  /** 0 searches; above it every token is sampled. */
  temperature: number;
  seed: number;
  headsOff: readonly Head[];
}

export type Request =
  | { kind: "load"; id: number; base: string; cache: string; embedded: EmbeddedFiles; webgpu: SiteIndex["webgpu"]; preference: Preference; model: SiteModel }
  | { kind: "translate"; id: number; text: string; options: SiteOptions }
  | { kind: "capture"; id: number; sentence: string; options: SiteOptions }
  | { kind: "ablate"; id: number; sentence: string; options: SiteOptions };

export type Response =
  | { kind: "progress"; id: number; done: number; all: number }
  | { kind: "loaded"; id: number; heads: Head[] }
  | { kind: "translated"; id: number; text: string; sentences: TranslatedSentence[]; seconds: number; runtime: RuntimeInUse }
  | { kind: "captured"; id: number; record: string }
  | { kind: "ablated"; id: number; ablation: Ablation }
  | { kind: "superseded"; id: number }
  | { kind: "failed"; id: number; reason: string };
