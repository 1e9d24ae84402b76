/** The translation of a file, chunk by chunk. */

import type { Client } from "../../api/client";
import type { ApiError } from "../../api/errors";
import type { FileProgress, ModelInfo, TranslateRequest } from "../../api/schemas";
import { LatestTask } from "../../requests/latest-task";
import { type RetryWait, withRetry } from "../../requests/retry";
import { chunkLines, DOCUMENT_NAME, findLongLine, splitLines, translatedName } from "./file-chunks";

/** Small enough to show progress, large enough to fill the server's batches. */
const CHUNK_LINES = 32;
const CHUNK_CHARACTERS = 4000;
const MAX_BYTES = 20_000_000;

export interface FileResult {
  name: string;
  content: Blob;
  preview: string[];
  /** What was not translated, or could not be kept. */
  notes: string[];
}

export type FileProblem = { problem: "long"; line: number; limit: number } | { problem: "size" } | { problem: "text" };

export class FileJob {
  readonly file: File;
  readonly model: ModelInfo;
  /** The number of lines that are not blank, or of texts of a document; null until it is known. */
  total = $state<number | null>(null);
  done = $state(0);
  result = $state.raw<FileResult | null>(null);
  problem = $state.raw<FileProblem | null>(null);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<RetryWait | null>(null);
  readonly #client: Client;
  readonly #task = new LatestTask();
  readonly #options: Omit<TranslateRequest, "text">;

  constructor(client: Client, file: File, model: ModelInfo, options: Omit<TranslateRequest, "text">) {
    this.#client = client;
    this.file = file;
    this.model = model;
    this.#options = options;
  }

  /** Whether the server reads the file; lines of text are sent one by one. */
  get isDocument(): boolean {
    return DOCUMENT_NAME.test(this.file.name);
  }

  async run(): Promise<void> {
    this.error = this.problem = this.result = null;
    await this.#task.run((signal) => (this.isDocument ? this.#translateWhole(signal) : this.#translateLines(signal)), {
      onsuccess: (result) => (this.result = result),
      onerror: (error) => (this.error = error),
    });
  }

  cancel(): void {
    this.#task.cancel();
  }

  async #translateWhole(signal: AbortSignal): Promise<FileResult> {
    const languages = { source: this.model.source, target: this.model.target };
    const onprogress = ({ done, total }: FileProgress): void => {
      this.done = done;
      this.total = total;
    };
    this.total = null;
    const { content, notes } = await this.#withRetry(() => this.#client.translateFile(this.file, languages, onprogress, signal), signal);
    return { name: this.#resultName, content, preview: [], notes };
  }

  async #translateLines(signal: AbortSignal): Promise<FileResult | null> {
    const lines = await this.#readLines();
    if (!lines) return null;
    const chunks = chunkLines(lines, { lines: CHUNK_LINES, characters: CHUNK_CHARACTERS });
    this.total = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    this.done = 0;
    const translated = lines.map((line) => (line.trim() ? "" : line));
    for (const chunk of chunks) {
      const request = { ...this.#options, text: chunk.map((index) => lines[index]) };
      const { translations } = await this.#withRetry(() => this.#client.translate(request, signal), signal);
      // A translation with line breaks in it stays on one line.
      translations.forEach(({ text }, at) => (translated[chunk[at]] = text.replace(/\s*\n\s*/g, " ")));
      this.done += chunk.length;
    }
    return { name: this.#resultName, content: new Blob([`${translated.join("\n")}\n`], { type: "text/plain;charset=utf-8" }), preview: translated.slice(0, 5), notes: [] };
  }

  async #readLines(): Promise<string[] | null> {
    if (this.file.size > MAX_BYTES) return this.#reject({ problem: "size" });
    const text = await this.file.text();
    if (text.includes("\u0000")) return this.#reject({ problem: "text" });
    const lines = splitLines(text);
    const limit = this.model.max_characters ?? Infinity;
    const line = findLongLine(lines, limit);
    return line === null ? lines : this.#reject({ problem: "long", line, limit });
  }

  #reject(problem: FileProblem): null {
    this.problem = problem;
    return null;
  }

  #withRetry<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return withRetry(task, { signal, onwait: (wait) => (this.wait = wait) });
  }

  get #resultName(): string {
    return translatedName(this.file.name, this.model.target);
  }
}
