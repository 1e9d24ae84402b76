/** The translation on the screen: asks while the reader types, and shows only the newest answer. */

import type { Client } from "../../api/client";
import type { ApiError } from "../../api/errors";
import type { StreamStep, TranslateWish, Translated } from "../../api/types";
import { Latest, type Wait, wait, withPatience } from "../../requests/retry";

/** Long enough not to ask at each letter, short enough not to be felt. */
const TYPING_MS = 350;

export interface Answer {
  /** Of which text it is. */
  text: string;
  translation: Translated;
  seconds: number | null;
}

export class TranslateSession {
  answer = $state.raw<Answer | null>(null);
  /** The words so far of an answer that comes word by word. */
  soFar = $state.raw<StreamStep | null>(null);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<Wait | null>(null);
  isAsking = $state(false);
  /** undefined: nothing was asked for yet, so that nobody can be typing. */
  #asked: TranslateWish | null | undefined;
  readonly #client: Client;
  readonly #latest = new Latest();

  constructor(client: Client) {
    this.#client = client;
  }

  /** Ask for this; null: there is nothing to ask for. */
  ask(wish: TranslateWish | null): void {
    const before = this.#asked;
    this.#asked = wish;
    this.error = this.wait = this.soFar = null;
    if (!wish) return this.#clear();
    const isTyping = before !== undefined && before?.text !== wish.text;
    this.isAsking = true;
    void this.#latest.run(
      async (signal) => {
        if (isTyping) await wait(TYPING_MS / 1000, signal);
        return withPatience(() => this.#translate(wish, signal), { signal, onwait: (one) => (this.wait = one) });
      },
      {
        ondone: (answer) => {
          this.answer = answer;
          this.isAsking = false;
          this.soFar = this.wait = null;
        },
        onfail: (error) => {
          this.error = error;
          this.isAsking = false;
          this.soFar = this.wait = null;
        },
      },
    );
  }

  /** Ask for the same once more. */
  again(): void {
    this.ask(this.#asked ?? null);
  }

  stop(): void {
    this.#latest.cancel();
  }

  async #translate(wish: TranslateWish, signal: AbortSignal): Promise<Answer> {
    const text = String(wish.text);
    if (wish.beam_size === 1) {
      const begun = performance.now();
      const translation = await this.#client.stream(wish, (step) => (this.soFar = signal.aborted ? null : step), signal);
      return { text, translation, seconds: (performance.now() - begun) / 1000 };
    }
    const { translations, seconds } = await this.#client.translate(wish, signal);
    return { text, translation: translations[0], seconds };
  }

  #clear(): void {
    this.#latest.cancel();
    this.answer = null;
    this.isAsking = false;
  }
}
