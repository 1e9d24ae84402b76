/** A request to the server as reactive state: its response, its error, and whether it is pending. Only the newest one counts. */

import type { ApiError } from "../api/errors";
import { LatestTask } from "./latest-task";
import { type RetryWait, sleep, withRetry } from "./retry";

export interface SendOptions {
  /** Wait this long first, so that quick changes (typing, a slider) send one request only. */
  delaySeconds?: number;
}

export interface RequestOptions {
  /** Keep the last response when a later request fails. */
  keepsResponse?: boolean;
  /** Keep the last error until a later request succeeds. */
  keepsError?: boolean;
}

export class LatestRequest<Request, Response> {
  response = $state.raw<Response | null>(null);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<RetryWait | null>(null);
  isPending = $state(false);
  #request: Request | null = null;
  readonly #send: (request: Request, signal: AbortSignal) => Promise<Response>;
  readonly #options: RequestOptions;
  readonly #task = new LatestTask();

  constructor(send: (request: Request, signal: AbortSignal) => Promise<Response>, options: RequestOptions = {}) {
    this.#send = send;
    this.#options = options;
  }

  /** Send a request; null cancels the pending one and clears the response. */
  send(request: Request | null, { delaySeconds = 0 }: SendOptions = {}): void {
    this.#request = request;
    this.wait = null;
    this.isPending = request !== null;
    if (!this.#options.keepsError || request === null) this.error = null;
    if (request === null) {
      this.#task.cancel();
      this.response = null;
      return;
    }
    void this.#task.run((signal) => this.#run(request, delaySeconds, signal), {
      onsuccess: (response) => this.#finish(response, null),
      onerror: (error) => this.#finish(this.#options.keepsResponse ? this.response : null, error),
    });
  }

  retry(): void {
    this.send(this.#request);
  }

  cancel(): void {
    this.#task.cancel();
  }

  async #run(request: Request, delaySeconds: number, signal: AbortSignal): Promise<Response> {
    if (delaySeconds) await sleep(delaySeconds, signal);
    return withRetry(() => this.#send(request, signal), { signal, onwait: (wait) => (this.wait = wait) });
  }

  #finish(response: Response | null, error: ApiError | null): void {
    this.response = response;
    this.error = error;
    this.wait = null;
    this.isPending = false;
  }
}
