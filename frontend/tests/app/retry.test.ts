import { describe, expect, it } from "vitest";

import { ApiError } from "../../src/app/api/errors";
import { Latest, wait, type Wait, withPatience } from "../../src/app/requests/retry";

/** A task that is ended by hand. */
function later<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: ApiError) => void;
  const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

const quiet = { ondone: () => undefined, onfail: () => undefined };

describe("only the newest is listened to", () => {
  it("also when an older one comes later", async () => {
    const latest = new Latest();
    const [old, fresh] = [later<string>(), later<string>()];
    const heard: string[] = [];
    const listener = { ...quiet, ondone: (value: string) => heard.push(value) };
    const runs = [latest.run(() => old.promise, listener), latest.run(() => fresh.promise, listener)];
    fresh.resolve("new");
    old.resolve("old");
    await Promise.all(runs);
    expect(heard).toEqual(["new"]);
  });

  it("and the older ones are told so", async () => {
    const latest = new Latest();
    const signals: AbortSignal[] = [];
    const task = (signal: AbortSignal) => Promise.resolve(signals.push(signal));
    void latest.run(task, quiet);
    await latest.run(task, quiet);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    latest.cancel();
    expect(signals[1].aborted).toBe(true);
  });

  it("even an old failure is not told", async () => {
    const latest = new Latest();
    const old = later<string>();
    const failures: ApiError[] = [];
    const run = latest.run(() => old.promise, { ...quiet, onfail: (error) => failures.push(error) });
    latest.cancel();
    old.reject(new ApiError("bad", ""));
    await run;
    expect(failures).toEqual([]);
  });

  it("a fault of the page is no trouble of the server's", async () => {
    await expect(new Latest().run(() => Promise.reject(new TypeError("a fault")), quiet)).rejects.toThrow("a fault");
  });
});

describe("patience", () => {
  const signal = new AbortController().signal;

  it("asks again after what the server said", async () => {
    const answers = [new ApiError("busy", "", 7), new ApiError("rate", "", 3), new ApiError("offline", "")];
    const waits: (Wait | null)[] = [];
    const slept: number[] = [];
    const found = await withPatience(
      () => {
        const next = answers.shift();
        return next ? Promise.reject(next) : Promise.resolve("there");
      },
      { signal, onwait: (one) => waits.push(one), sleep: (seconds) => Promise.resolve(void slept.push(seconds)) },
    );
    expect(found).toBe("there");
    expect(slept).toEqual([7, 3, 2]);
    expect(waits.map((one) => one?.error.trouble ?? null)).toEqual(["busy", null, "rate", null, "offline", null]);
  });

  it("waits a second at least and a minute at most", async () => {
    const slept: number[] = [];
    const answers = [0, 9999].map((seconds) => new ApiError("busy", "", seconds));
    await withPatience(() => (answers.length ? Promise.reject(answers.shift()!) : Promise.resolve(1)), { signal, onwait: () => undefined, sleep: (seconds) => Promise.resolve(void slept.push(seconds)) });
    expect(slept).toEqual([1, 60]);
  });

  it.each(["bad", "timeout", "key", "internal"] as const)("has none with %s", async (trouble) => {
    await expect(withPatience(() => Promise.reject(new ApiError(trouble, "")), { signal, onwait: () => undefined })).rejects.toMatchObject({ trouble });
  });

  it("ends when nobody wants the answer", async () => {
    const controller = new AbortController();
    const waiting = wait(60, controller.signal);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    await expect(wait(60, controller.signal)).rejects.toMatchObject({ name: "AbortError" });
  });
});
