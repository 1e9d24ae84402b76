/** Training runs, watched: what was, and every two seconds what is new. */

import { untrack } from "svelte";

import type { Client } from "../../api/client";
import { ApiError, isAbort } from "../../api/errors";
import type { RunDetail, RunEvent, RunInfo, RunState } from "../../api/types";
import { wait } from "../../requests/retry";

const LIVE_SECONDS = 2;
/** One that has ended may still be gone on with. */
const QUIET_SECONDS = 15;
const LIST_SECONDS = 5;

/** Do something now and again until nobody wants it; not while nobody looks. */
async function repeat(task: (signal: AbortSignal) => Promise<number>, signal: AbortSignal): Promise<void> {
  try {
    while (!signal.aborted) {
      const seconds = document.hidden ? 1 : await task(signal);
      await wait(seconds, signal);
    }
  } catch (error) {
    if (!isAbort(error)) throw error;
  }
}

abstract class Watch {
  /** What is wrong just now; what was known before stays. */
  error = $state.raw<ApiError | null>(null);
  #controller: AbortController | null = null;

  /** Begin to watch; gives the way to stop. */
  start(): () => void {
    this.#controller?.abort();
    const mine = (this.#controller = new AbortController());
    // What is looked at is no reason to begin anew.
    untrack(() => void repeat((signal) => this.#once(signal), mine.signal));
    return () => mine.abort();
  }

  /** Look; gives how long to wait before the next look. */
  protected abstract look(signal: AbortSignal): Promise<number>;

  async #once(signal: AbortSignal): Promise<number> {
    try {
      const seconds = await this.look(signal);
      this.error = null;
      return seconds;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.error = error;
      return Math.max(LIST_SECONDS, error.retryAfter ?? 0);
    }
  }
}

export class RunsWatch extends Watch {
  runs = $state.raw<RunInfo[] | null>(null);
  readonly #client: Client;

  constructor(client: Client) {
    super();
    this.#client = client;
  }

  protected async look(signal: AbortSignal): Promise<number> {
    this.runs = await this.#client.runs(signal);
    return LIST_SECONDS;
  }
}

export class RunWatch extends Watch {
  detail = $state.raw<RunDetail | null>(null);
  state = $state.raw<RunState | null>(null);
  events = $state.raw<RunEvent[]>([]);
  readonly #name: string;
  readonly #client: Client;
  #next = 0;

  constructor(client: Client, name: string) {
    super();
    this.#client = client;
    this.#name = name;
  }

  protected async look(signal: AbortSignal): Promise<number> {
    if (this.detail) await this.#goOn(signal);
    else await this.#begin(signal);
    return this.state === "running" ? LIVE_SECONDS : QUIET_SECONDS;
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const detail = await this.#client.run(this.#name, signal);
    this.events = detail.events;
    this.#next = detail.next;
    this.state = detail.state;
    this.detail = detail;
  }

  /** Take what is new. A validation, or the end, has more to tell than its line in the log. */
  async #goOn(signal: AbortSignal): Promise<void> {
    const { events, next, state } = await this.#client.events(this.#name, this.#next, signal);
    const isMore = state !== this.state || events.some(({ event }) => event !== "train");
    if (events.length) this.events = [...this.events, ...events];
    this.#next = next;
    this.state = state;
    if (isMore) this.detail = await this.#client.run(this.#name, signal);
  }
}
