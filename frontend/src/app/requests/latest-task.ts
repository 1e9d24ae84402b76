/** Runs one task at a time: starting another aborts the one before, so that a late response never replaces a newer one. */

import { ApiError, isAbort } from "../api/errors";

export interface TaskCallbacks<T> {
  onsuccess: (value: T) => void;
  onerror: (error: ApiError) => void;
}

export class LatestTask {
  #current: AbortController | null = null;

  async run<T>(task: (signal: AbortSignal) => Promise<T>, { onsuccess, onerror }: TaskCallbacks<T>): Promise<void> {
    this.cancel();
    const controller = (this.#current = new AbortController());
    try {
      const value = await task(controller.signal);
      if (this.#current === controller) onsuccess(value);
    } catch (error) {
      if (this.#current !== controller || isAbort(error)) return;
      if (!(error instanceof ApiError)) throw error;
      onerror(error);
    }
  }

  cancel(): void {
    this.#current?.abort();
    this.#current = null;
  }
}
