/** One lesson, computed again as its inputs change. The last lesson and its errors stay visible meanwhile. */

import type { Lang } from "../../../i18n";
import { LatestRequest } from "../../requests/latest-request.svelte";
import type { LessonsClient } from "./client";
import { changedValues, decodeValues, type EncodedInputs } from "./inputs";
import type { Lesson } from "./schemas";

/** While a slider moves or a number is typed, no request is sent. */
const DELAY_SECONDS = 0.15;

interface LessonRequest {
  lang: Lang;
  inputs: EncodedInputs;
}

export class LessonSession extends LatestRequest<LessonRequest, Lesson> {
  #lang: Lang | null = null;

  constructor(
    readonly client: LessonsClient,
    readonly number: number,
  ) {
    super((request, signal) => this.#compute(request, signal), { keepsResponse: true, keepsError: true });
  }

  override send(request: LessonRequest): void {
    const isImmediate = this.response === null || this.error !== null || request.lang !== this.#lang;
    super.send(request, { delaySeconds: isImmediate ? 0 : DELAY_SECONDS });
  }

  /** The inputs of a lesson must be known before those in the URL can be decoded. */
  async #compute({ lang, inputs: encoded }: LessonRequest, signal: AbortSignal): Promise<Lesson> {
    const known = this.response ?? (await this.client.lesson(this.number, { lang, inputs: {} }, signal));
    const inputs = changedValues(known.inputs, decodeValues(known.inputs, encoded));
    const isDone = known !== this.response && !Object.keys(inputs).length;
    const lesson = isDone ? known : await this.client.lesson(this.number, { lang, inputs }, signal);
    this.#lang = lang;
    return lesson;
  }
}
