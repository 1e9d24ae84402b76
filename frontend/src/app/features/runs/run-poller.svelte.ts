/** Training runs, polled: loaded once, and then every few seconds what is new. */

import { untrack } from "svelte";

import type { Client } from "../../api/client";
import { ApiError, isAbort } from "../../api/errors";
import type { Build, RunDetail, RunEvent, RunInfo, RunState } from "../../api/schemas";
import { sleep } from "../../requests/retry";

const RUNNING_SECONDS = 2;
/** A run that has ended may be resumed. */
const ENDED_SECONDS = 15;
const LIST_SECONDS = 5;
const HIDDEN_SECONDS = 1;

abstract class Poller {
  /** The error of the last request; what was loaded before stays. */
  error = $state.raw<ApiError | null>(null);
  #controller: AbortController | null = null;

  /** Start polling; return a function that stops it. */
  start(): () => void {
    this.#controller?.abort();
    const controller = (this.#controller = new AbortController());
    // What is loaded here must not restart the effect that calls this.
    untrack(() => void this.#repeat(controller.signal));
    return () => controller.abort();
  }

  /** Load what is new; return the seconds until the next request. */
  protected abstract poll(signal: AbortSignal): Promise<number>;

  async #repeat(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) await sleep(document.hidden ? HIDDEN_SECONDS : await this.#pollOnce(signal), signal);
    } catch (error) {
      if (!isAbort(error)) throw error;
    }
  }

  async #pollOnce(signal: AbortSignal): Promise<number> {
    try {
      const seconds = await this.poll(signal);
      this.error = null;
      return seconds;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.error = error;
      return Math.max(LIST_SECONDS, error.retryAfter ?? 0);
    }
  }
}

export class RunsPoller extends Poller {
  runs = $state.raw<RunInfo[] | null>(null);
  readonly #client: Client;

  constructor(client: Client) {
    super();
    this.#client = client;
  }

  protected async poll(signal: AbortSignal): Promise<number> {
    this.runs = await this.#client.runs(signal);
    return LIST_SECONDS;
  }
}

export class BuildsPoller extends Poller {
  builds = $state.raw<Build[]>([]);
  readonly #client: Client;

  constructor(client: Client) {
    super();
    this.#client = client;
  }

  protected async poll(signal: AbortSignal): Promise<number> {
    this.builds = await this.#client.builds(signal);
    return LIST_SECONDS;
  }
}

export class RunPoller extends Poller {
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

  protected async poll(signal: AbortSignal): Promise<number> {
    if (this.detail) await this.#loadNew(signal);
    else await this.#load(signal);
    return this.state === "running" ? RUNNING_SECONDS : ENDED_SECONDS;
  }

  async #load(signal: AbortSignal): Promise<void> {
    const detail = await this.#client.run(this.#name, signal);
    this.events = detail.events;
    this.#next = detail.next;
    this.state = detail.state;
    this.detail = detail;
  }

  /** Append new events. After a validation, or at the end, the details have changed as well. */
  async #loadNew(signal: AbortSignal): Promise<void> {
    const { events, next, state } = await this.#client.events(this.#name, this.#next, signal);
    const isChanged = state !== this.state || events.some(({ event }) => event !== "train");
    if (events.length) this.events = [...this.events, ...events];
    this.#next = next;
    this.state = state;
    if (isChanged) this.detail = await this.#client.run(this.#name, signal);
  }
}
