/** One lesson as it is being changed: what was told last, and what is being asked for. */

import type { Lang } from "../../../i18n";
import type { ApiError } from "../../api/errors";
import { Latest, type Wait, wait as sleep, withPatience } from "../../requests/retry";
import type { LessonsClient } from "./client";
import { changedValues, readValues, type Spelt } from "./inputs";
import type { Lesson } from "./types";

/** While a slider moves or a number is typed, nobody is asked. */
const PAUSE_SECONDS = 0.15;

export class LessonSession {
  /** The last lesson that could be computed; it stays while the next one is. */
  lesson = $state.raw<Lesson | null>(null);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<Wait | null>(null);
  isAsking = $state(false);
  #lang: Lang | null = null;
  readonly #latest = new Latest();

  constructor(
    readonly client: LessonsClient,
    readonly number: number,
  ) {}

  /** Ask for the lesson in a language, with what an address has changed; an older answer never comes after. */
  ask(lang: Lang, spelt: Spelt): void {
    this.isAsking = true;
    this.wait = null;
    const isAnew = this.lesson === null || this.error !== null || lang !== this.#lang;
    void this.#latest.run(
      async (signal) => {
        if (!isAnew) await sleep(PAUSE_SECONDS, signal);
        return withPatience(() => this.#compute(lang, spelt, signal), { signal, onwait: (one) => (this.wait = one) });
      },
      {
        ondone: (lesson) => {
          this.lesson = lesson;
          this.#lang = lang;
          this.error = null;
          this.isAsking = false;
        },
        onfail: (error) => {
          this.error = error;
          this.isAsking = false;
        },
      },
    );
  }

  stop(): void {
    this.#latest.cancel();
  }

  /** What can be changed must be known before an address can be understood. */
  async #compute(lang: Lang, spelt: Spelt, signal: AbortSignal): Promise<Lesson> {
    const plain = this.lesson ?? (await this.client.lesson(this.number, { lang, inputs: {} }, signal));
    const inputs = changedValues(plain.inputs, readValues(plain.inputs, spelt));
    if (plain !== this.lesson && !Object.keys(inputs).length) return plain;
    return this.client.lesson(this.number, { lang, inputs }, signal);
  }
}
