/** Ask again by oneself while the trouble is one that passes; and never let an old answer come last. */

import { ApiError, isAbort } from "../api/errors";

const DEFAULT_WAIT = 2;
const LONGEST_WAIT = 60;

export interface Wait {
  error: ApiError;
  seconds: number;
}

export interface Patience {
  signal: AbortSignal;
  /** Called before each wait, and with null when it is over. */
  onwait: (wait: Wait | null) => void;
  sleep?: (seconds: number, signal: AbortSignal) => Promise<void>;
}

/** Do a task, waiting and asking again as long as the server only asks for time. */
export async function withPatience<T>(task: () => Promise<T>, { signal, onwait, sleep = wait }: Patience): Promise<T> {
  for (;;) {
    try {
      return await task();
    } catch (error) {
      if (!(error instanceof ApiError) || !error.passes) throw error;
      const seconds = Math.min(LONGEST_WAIT, Math.max(1, error.retryAfter ?? DEFAULT_WAIT));
      onwait({ error, seconds });
      await sleep(seconds, signal);
      onwait(null);
    }
  }
}

/** Sleep, or throw an AbortError as soon as nobody wants the answer any more. */
export function wait(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("not wanted any more", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

export interface Listener<T> {
  ondone: (value: T) => void;
  onfail: (error: ApiError) => void;
}

/** Only the newest task is listened to; the ones before it are called off. */
export class Latest {
  #current: AbortController | null = null;

  async run<T>(task: (signal: AbortSignal) => Promise<T>, { ondone, onfail }: Listener<T>): Promise<void> {
    this.cancel();
    const mine = (this.#current = new AbortController());
    try {
      const value = await task(mine.signal);
      if (this.#current === mine) ondone(value);
    } catch (error) {
      if (this.#current !== mine || isAbort(error)) return;
      if (!(error instanceof ApiError)) throw error;
      onfail(error);
    }
  }

  cancel(): void {
    this.#current?.abort();
    this.#current = null;
  }
}
