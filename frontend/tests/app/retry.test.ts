import { describe, expect, it } from "vitest";

import { ApiError } from "../../src/app/api/errors";
import { LatestTask } from "../../src/app/requests/latest-task";
import { type RetryWait, sleep, withRetry } from "../../src/app/requests/retry";

/** A task that is ended by hand. */
function later<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: ApiError) => void;
  const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

const quiet = { onsuccess: () => undefined, onerror: () => undefined };

describe("only the latest task counts", () => {
  it("also when an older one ends later", async () => {
    const latest = new LatestTask();
    const [old, fresh] = [later<string>(), later<string>()];
    const received: string[] = [];
    const listener = { ...quiet, onsuccess: (value: string) => received.push(value) };
    const runs = [latest.run(() => old.promise, listener), latest.run(() => fresh.promise, listener)];
    fresh.resolve("new");
    old.resolve("old");
    await Promise.all(runs);
    expect(received).toEqual(["new"]);
  });

  it("and older ones are aborted", async () => {
    const latest = new LatestTask();
    const signals: AbortSignal[] = [];
    const task = (signal: AbortSignal) => Promise.resolve(signals.push(signal));
    void latest.run(task, quiet);
    await latest.run(task, quiet);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    latest.cancel();
    expect(signals[1].aborted).toBe(true);
  });

  it("even the failure of an older one is ignored", async () => {
    const latest = new LatestTask();
    const old = later<string>();
    const failures: ApiError[] = [];
    const run = latest.run(() => old.promise, { ...quiet, onerror: (error) => failures.push(error) });
    latest.cancel();
    old.reject(new ApiError("bad", ""));
    await run;
    expect(failures).toEqual([]);
  });

  it("an error of the page is not one of the server", async () => {
    await expect(new LatestTask().run(() => Promise.reject(new TypeError("a fault")), quiet)).rejects.toThrow("a fault");
  });
});

describe("a retry", () => {
  const signal = new AbortController().signal;

  it("waits as long as the server asks", async () => {
    const answers = [new ApiError("busy", "", 7), new ApiError("rate", "", 3), new ApiError("offline", "")];
    const waits: (RetryWait | null)[] = [];
    const slept: number[] = [];
    const found = await withRetry(
      () => {
        const next = answers.shift();
        return next ? Promise.reject(next) : Promise.resolve("there");
      },
      { signal, onwait: (one) => waits.push(one), sleep: (seconds) => Promise.resolve(void slept.push(seconds)) },
    );
    expect(found).toBe("there");
    expect(slept).toEqual([7, 3, 2]);
    expect(waits.map((one) => one?.error.kind ?? null)).toEqual(["busy", null, "rate", null, "offline", null]);
  });

  it("waits a second at least and a minute at most", async () => {
    const slept: number[] = [];
    const answers = [0, 9999].map((seconds) => new ApiError("busy", "", seconds));
    await withRetry(() => (answers.length ? Promise.reject(answers.shift()!) : Promise.resolve(1)), { signal, onwait: () => undefined, sleep: (seconds) => Promise.resolve(void slept.push(seconds)) });
    expect(slept).toEqual([1, 60]);
  });

  it.each(["bad", "timeout", "key", "internal"] as const)("is not made after %s", async (kind) => {
    await expect(withRetry(() => Promise.reject(new ApiError(kind, "")), { signal, onwait: () => undefined })).rejects.toMatchObject({ kind });
  });

  it("ends when it is aborted", async () => {
    const controller = new AbortController();
    const waiting = sleep(60, controller.signal);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    await expect(sleep(60, controller.signal)).rejects.toMatchObject({ name: "AbortError" });
  });
});
