/** Repeats a request while its failure is transient: the server is busy, limits the rate, or cannot be reached. */

import { ApiError } from "../api/errors";

const DEFAULT_WAIT_SECONDS = 2;
const MAX_WAIT_SECONDS = 60;

export interface RetryWait {
  error: ApiError;
  seconds: number;
}

export interface RetryOptions {
  signal: AbortSignal;
  /** Called before each wait, and with null when the wait is over. */
  onwait: (wait: RetryWait | null) => void;
  sleep?: (seconds: number, signal: AbortSignal) => Promise<void>;
}

/** Run a task; after a transient failure wait as long as the server asks, and run it again. */
export async function withRetry<T>(task: () => Promise<T>, { signal, onwait, sleep: pause = sleep }: RetryOptions): Promise<T> {
  for (;;) {
    try {
      return await task();
    } catch (error) {
      if (!(error instanceof ApiError) || !error.isTransient) throw error;
      const seconds = Math.min(MAX_WAIT_SECONDS, Math.max(1, error.retryAfter ?? DEFAULT_WAIT_SECONDS));
      onwait({ error, seconds });
      await pause(seconds, signal);
      onwait(null);
    }
  }
}

/** Wait for some seconds; throw an AbortError as soon as the signal is aborted. */
export function sleep(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("The wait was aborted", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
