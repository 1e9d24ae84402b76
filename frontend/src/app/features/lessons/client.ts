/** The lessons of the server. Failures are the ApiErrors of the whole page. */

import type { Lang } from "../../../i18n";
import type { Reader } from "../../../inspector/record/schema";
import { stored } from "../../../inspector/state/storage";
import { Client } from "../../api/client";
import { ApiError } from "../../api/errors";
import { read } from "../../api/schemas";
import type { Values } from "./inputs";
import { checked, lesson, lessonTitles, ownPart } from "./schemas";
import type { Checked, Lesson, LessonTitle, OwnPart } from "./types";

export interface LessonsClientOptions {
  base: string;
  key?: () => string;
  fetcher?: typeof fetch;
}

export class LessonsClient {
  readonly #base: string;
  readonly #key: () => string;
  readonly #fetch: typeof fetch;

  constructor({ base, key = () => stored("attendo.key") ?? "", fetcher = fetch.bind(globalThis) }: LessonsClientOptions) {
    this.#base = base;
    this.#key = key;
    this.#fetch = fetcher;
  }

  list(lang: Lang, signal: AbortSignal): Promise<LessonTitle[]> {
    return this.#ask(`v1/lessons?lang=${lang}`, lessonTitles, { signal });
  }

  /** A lesson, computed for what was changed. */
  lesson(number: number, wish: { lang: Lang; inputs: Values }, signal: AbortSignal): Promise<Lesson> {
    return this.#ask(`v1/lessons/${number}`, lesson, { ...posted(wish), signal });
  }

  /** Questions are counted from 1. */
  answer(number: number, wish: { lang: Lang; question: number; answer: string }, signal: AbortSignal): Promise<Checked> {
    return this.#ask(`v1/lessons/${number}/answer`, checked, { ...posted(wish), signal });
  }

  own(number: number, wish: { lang: Lang; text?: string; model?: string }, signal: AbortSignal): Promise<OwnPart> {
    return this.#ask(`v1/lessons/${number}/own`, ownPart, { ...posted(wish), signal });
  }

  /** The page's client does the asking, and knows what each failure is; only the body is added on its way. */
  async #ask<T>(path: string, reader: Reader<T>, init: RequestInit): Promise<T> {
    const headers = (given: RequestInit) => new Headers([...new Headers(given.headers), ...new Headers(init.headers)]);
    const fetcher: typeof fetch = (url, given = {}) => this.#fetch(url, { ...given, ...init, headers: headers(given) });
    const text = await new Client({ base: this.#base, key: this.#key, fetcher }).file(path);
    return read(reader, parse(text));
  }
}

function posted(wish: object): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wish) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError("shape", "no JSON");
  }
}
