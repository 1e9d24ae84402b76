/** The requests of the lessons, sent by the client of the whole application. */

import type { Lang } from "../../../i18n";
import type { Client } from "../../api/client";
import type { Values } from "./inputs";
import { type MachineValues, machineValues } from "./machine/machine-values";
import { type CheckedAnswer, checkedAnswer, type Lesson, lesson, type LessonsResponse, lessonsResponse, type ModelPart, modelPart } from "./schemas";

export class LessonsClient {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  list(lang: Lang, signal: AbortSignal): Promise<LessonsResponse> {
    return this.#client.get(`v1/lessons?lang=${lang}`, lessonsResponse, signal);
  }

  /** A lesson computed with changed inputs. */
  lesson(number: number, request: { lang: Lang; inputs: Values }, signal: AbortSignal): Promise<Lesson> {
    return this.#client.post(`v1/lessons/${number}`, request, lesson, signal);
  }

  /** Questions are counted from 1. */
  answer(number: number, request: { lang: Lang; question: number; answer: string; reveal?: boolean }, signal: AbortSignal): Promise<CheckedAnswer> {
    return this.#client.post(`v1/lessons/${number}/answer`, request, checkedAnswer, signal);
  }

  machine(request: { text?: string; model?: string; layer?: number; example?: boolean }, signal: AbortSignal): Promise<MachineValues> {
    return this.#client.post("v1/lessons/machine", request, machineValues, signal);
  }

  modelPart(number: number, request: { lang: Lang; text?: string; model?: string }, signal: AbortSignal): Promise<ModelPart> {
    return this.#client.post(`v1/lessons/${number}/own`, request, modelPart, signal);
  }
}
