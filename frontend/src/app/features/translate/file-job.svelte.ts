/** A file on its way through the server, piece by piece. */

import type { Client } from "../../api/client";
import type { ApiError } from "../../api/errors";
import type { ModelInfo, TranslateWish } from "../../api/types";
import { cutPieces, linesOf, tooLong, translatedName } from "./file-chunks";
import { Latest, type Wait, withPatience } from "../../requests/retry";

/** Small enough to see it move, large enough to fill the server's batches. */
const LINES = 32;
const CHARACTERS = 4000;
const MOST_BYTES = 20_000_000;

export interface FileResult {
  name: string;
  content: Blob;
  preview: string[];
}

export type FileProblem = { why: "long"; line: number; limit: number } | { why: "size" } | { why: "text" };

export class FileJob {
  readonly file: File;
  readonly model: ModelInfo;
  /** Lines that say something, and how many of them are done; null: the server has it as a whole. */
  total = $state<number | null>(null);
  done = $state(0);
  result = $state.raw<FileResult | null>(null);
  problem = $state.raw<FileProblem | null>(null);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<Wait | null>(null);
  readonly #client: Client;
  readonly #latest = new Latest();
  readonly #wish: Omit<TranslateWish, "text">;

  constructor(client: Client, file: File, model: ModelInfo, wish: Omit<TranslateWish, "text">) {
    this.#client = client;
    this.file = file;
    this.model = model;
    this.#wish = wish;
  }

  async run(): Promise<void> {
    this.error = this.problem = this.result = null;
    const isMarkup = /\.html?$/i.test(this.file.name);
    await this.#latest.run((signal) => (isMarkup ? this.#asWhole(signal) : this.#byLines(signal)), {
      ondone: (result) => (this.result = result),
      onfail: (error) => (this.error = error),
    });
  }

  stop(): void {
    this.#latest.cancel();
  }

  async #asWhole(signal: AbortSignal): Promise<FileResult> {
    const languages = { source: this.model.source, target: this.model.target };
    const content = await this.#patiently(() => this.#client.translateFile(this.file, languages, signal), signal);
    return { name: this.#name, content, preview: [] };
  }

  async #byLines(signal: AbortSignal): Promise<FileResult | null> {
    const lines = await this.#read();
    if (!lines) return null;
    const pieces = cutPieces(lines, { lines: LINES, characters: CHARACTERS });
    this.total = pieces.reduce((sum, piece) => sum + piece.length, 0);
    this.done = 0;
    const found = lines.map((line) => (line.trim() ? "" : line));
    for (const piece of pieces) {
      const wish = { ...this.#wish, text: piece.map((place) => lines[place]) };
      const { translations } = await this.#patiently(() => this.#client.translate(wish, signal), signal);
      // A line stays a line, whatever was said in it.
      translations.forEach(({ text }, place) => (found[piece[place]] = text.replace(/\s*\n\s*/g, " ")));
      this.done += piece.length;
    }
    return { name: this.#name, content: new Blob([`${found.join("\n")}\n`], { type: "text/plain;charset=utf-8" }), preview: found.slice(0, 5) };
  }

  async #read(): Promise<string[] | null> {
    if (this.file.size > MOST_BYTES) return this.#refuse({ why: "size" });
    const text = await this.file.text();
    if (text.includes("\u0000")) return this.#refuse({ why: "text" });
    const lines = linesOf(text);
    const limit = this.model.max_characters ?? Infinity;
    const long = tooLong(lines, limit);
    return long === null ? lines : this.#refuse({ why: "long", line: long, limit });
  }

  #refuse(problem: FileProblem): null {
    this.problem = problem;
    return null;
  }

  #patiently<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return withPatience(task, { signal, onwait: (wait) => (this.wait = wait) });
  }

  get #name(): string {
    return translatedName(this.file.name, this.model.target);
  }
}
