/** One question to the server at a time: the newest answer counts, and passing trouble is waited out. */

import type { ApiError } from "../api/errors";
import { Latest, type Wait, withPatience } from "./retry";

export class Asking<Wish, Answer> {
  answer = $state.raw<Answer | null>(null);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<Wait | null>(null);
  isAsking = $state(false);
  #wish: Wish | null = null;
  readonly #ask: (wish: Wish, signal: AbortSignal) => Promise<Answer>;
  readonly #latest = new Latest();

  constructor(ask: (wish: Wish, signal: AbortSignal) => Promise<Answer>) {
    this.#ask = ask;
  }

  /** Ask for this; null: there is nothing to ask for. */
  ask(wish: Wish | null): void {
    this.#wish = wish;
    this.error = this.wait = null;
    this.isAsking = wish !== null;
    if (wish === null) {
      this.#latest.cancel();
      this.answer = null;
      return;
    }
    const task = (signal: AbortSignal) => withPatience(() => this.#ask(wish, signal), { signal, onwait: (one) => (this.wait = one) });
    void this.#latest.run(task, {
      ondone: (answer) => {
        this.answer = answer;
        this.isAsking = false;
      },
      onfail: (error) => {
        this.error = error;
        this.answer = null;
        this.isAsking = false;
      },
    });
  }

  again(): void {
    this.ask(this.#wish);
  }

  stop(): void {
    this.#latest.cancel();
  }
}
