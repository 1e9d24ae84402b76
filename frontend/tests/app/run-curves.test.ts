import { describe, expect, it } from "vitest";

import type { RunEvent } from "../../src/app/api/schemas";
import { type CurvePoint, divergedSince, downsample, eventsCsv, lossEnd, nearestPoint, runCurves, secondsLeft, smooth, valueAt } from "../../src/app/features/runs/run-curves";
import { formatDuration } from "../../src/app/features/runs/duration";
import { diffSettings, flattenSettings } from "../../src/app/features/runs/settings-diff";
import { axisTicks, yScale } from "../../src/inspector/display/axes";
import { formatNumber } from "../../src/inspector/display/format";

const BLANK = { time: null, loss: null, rate: null, tokens_per_second: null, perplexity: null, bleu: null, accuracy: null, reason: null };
const train = (step: number, loss: number | null, more: Partial<RunEvent> = {}): RunEvent => ({ ...BLANK, event: "train", step, loss, ...more });
const validation = (step: number, loss: number, bleu: number | null): RunEvent => ({ ...BLANK, event: "validation", step, loss, bleu });
const points = (...all: [number, number][]): CurvePoint[] => all.map(([x, y]) => ({ x, y }));

describe("curves from events", () => {
  it("are separated by metric", () => {
    const curves = runCurves([
      { ...BLANK, event: "started", step: 0 },
      train(20, 7, { rate: 0.1, tokens_per_second: 100 }),
      validation(20, 6, 1.5),
      train(40, 5, { rate: 0.2, tokens_per_second: 200 }),
      validation(40, 4, null),
    ]);
    expect(curves).toEqual({
      loss: points([20, 7], [40, 5]),
      devLoss: points([20, 6], [40, 4]),
      bleu: points([20, 1.5]),
      learningRate: points([20, 0.1], [40, 0.2]),
      speed: points([20, 100], [40, 200]),
    });
  });

  it("take the later values where a run was resumed from a checkpoint", () => {
    const { loss, devLoss } = runCurves([train(20, 7), train(40, 5), validation(40, 9, 1), train(60, 4), train(40, 5.5), validation(40, 8, 2), train(60, 4.5)]);
    expect(loss).toEqual(points([20, 7], [40, 5.5], [60, 4.5]));
    expect(devLoss).toEqual(points([40, 8]));
  });

  it("leave out a loss that is not a number", () => expect(runCurves([train(1, 3), train(2, null), train(3, 2)]).loss).toEqual(points([1, 3], [3, 2])));
});

describe("a line of a comparison", () => {
  const line = { points: points([10, 3], [20, 2]), end: 25 };
  it("has its last value where there is no cursor", () => expect(valueAt(line, null)).toEqual({ x: 20, y: 2 }));
  it("has the nearest value up to the end of its run, and none after it", () => {
    expect(valueAt(line, 24)).toEqual({ x: 20, y: 2 });
    expect(valueAt(line, 26)).toBeNull();
    expect(valueAt({ points: line.points }, 26)).toEqual({ x: 20, y: 2 });
  });
});

describe("a duration", () => {
  it("is in seconds, minutes or hours, in the language of the page", () => {
    expect([42.4, 600, 9000].map((seconds) => formatDuration(seconds, "en"))).toEqual(["42 sec", "10 min", "2.5 hr"]);
    expect([42.4, 600, 9000].map((seconds) => formatDuration(seconds, "ko"))).toEqual(["42초", "10분", "2.5시간"]);
  });
});

describe("a run", () => {
  it("that diverged says since when", () => {
    expect(divergedSince([train(1, 3), train(2, null), train(3, 2)])).toBeNull();
    expect(divergedSince([train(10, 3), train(20, null), validation(20, 1, 1), train(30, null)])).toBe(20);
    expect(divergedSince([train(10, null)])).toBe(10);
    expect(divergedSince([])).toBeNull();
  });
  it("that diverged has a training loss up to there", () => {
    const end = (events: RunEvent[]) => lossEnd(runCurves(events), events);
    expect(end([train(10, 3), train(20, null), validation(20, 1, 1), train(30, null)])).toBe(10);
    expect(end([train(10, 3), train(20, null), train(30, 2)])).toBe(Infinity);
    expect(end([train(10, null)])).toBe(0);
  });
  it("is drawn over minutes since its start", () => {
    const at = (minute: number) => ({ time: `2026-01-01T00:${String(minute).padStart(2, "0")}:00Z` });
    expect(runCurves([{ ...BLANK, event: "started", step: 0, ...at(1) }, train(20, 7, at(2)), train(40, 5, at(5))], "time").loss).toEqual(points([1, 7], [4, 5]));
  });
  it("is smoothed without a bias at its start", () => {
    expect(smooth(points([1, 4], [2, 4]), 0.9).map(({ y }) => y)).toEqual([expect.closeTo(4), expect.closeTo(4)]);
    expect(smooth(points([1, 1], [2, 3]), 0.5)[1].y).toBeCloseTo((0.25 * 1 + 0.5 * 3) / 0.75);
    expect(smooth(points([1, 1], [2, 3]), 0)).toEqual(points([1, 1], [2, 3]));
  });
  it("is a table for a spreadsheet", () => {
    expect(eventsCsv([{ ...BLANK, event: "started", step: 0 }, train(20, 7, { rate: 0.1 })])).toBe("time,event,step,loss,rate,tokens_per_second,perplexity,accuracy,bleu\n,train,20,7,0.1,,,,\n");
  });
  it("differs from another in some settings", () => {
    const config = (lr: number, more: object = {}) => ({ train: { lr, steps: 9, ...more }, data: { corpora: [{ src: "a" }] } });
    expect(diffSettings([config(1), config(2, { seed: 3 })])).toEqual([{ name: "train.lr", values: ["1", "2"] }, { name: "train.seed", values: ["", "3"] }]);
    expect(diffSettings([config(1), config(1)])).toEqual([]);
    expect(flattenSettings({ a: [1, 2], b: null, c: [] })).toEqual([["a", "1, 2"]]);
  });
});

describe("reading a curve", () => {
  const curve = points([10, 1], [20, 2], [40, 3]);
  it.each([[-5, 10], [10, 10], [14, 10], [15, 10], [16, 20], [29, 20], [31, 40], [99, 40]])("at %d is its point at %d", (x, expected) =>
    expect(nearestPoint(curve, x)?.x).toBe(expected),
  );
  it("without points is nothing", () => expect(nearestPoint([], 3)).toBeNull());
});

describe("a long curve", () => {
  const long = Array.from({ length: 10_000 }, (_, x) => ({ x, y: x === 5003 ? 99 : x === 7001 ? -99 : Math.sin(x) }));
  const short = downsample(long, 500);
  it("becomes short", () => expect(short.length).toBeLessThanOrEqual(501));
  it("keeps its order, its ends and what is exceptional", () => {
    expect(short.map(({ x }) => x)).toEqual([...short.map(({ x }) => x)].sort((a, b) => a - b));
    expect(new Set(short.map(({ x }) => x)).size).toBe(short.length);
    expect(short.at(-1)).toEqual(long.at(-1));
    expect(short).toContainEqual({ x: 5003, y: 99 });
    expect(short).toContainEqual({ x: 7001, y: -99 });
  });
  it("that is short stays as it is", () => expect(downsample(long.slice(0, 5), 10)).toEqual(long.slice(0, 5)));
});

describe("the vertical axis", () => {
  const range: [number, number] = [100, 0];
  it("holds every value", () => {
    const y = yScale([points([0, 2], [1, 7]), points([0, -1])], range);
    for (const value of [2, 7, -1]) {
      expect(y(value)).toBeGreaterThanOrEqual(0);
      expect(y(value)).toBeLessThanOrEqual(100);
    }
    expect(y(7)).toBeLessThan(y(2));
  });
  it("may begin at nothing", () => {
    expect(yScale([points([0, 50], [1, 90])], range, { isFromZero: true })(0)).toBe(100);
    expect(yScale([points([0, 50], [1, 90])], range)(0)).toBeGreaterThan(100);
  });
  it("by logarithms puts equal shares at equal distances, and passes over what has none", () => {
    const y = yScale([points([0, 0], [1, 0.01], [2, 1], [3, 100])], range, { isLog: true });
    expect(y(1) - y(100)).toBeCloseTo(y(0.01) - y(1), 6);
    expect(y(0.01)).toBeLessThan(100);
  });
  it.each([
    [[], false],
    [[], true],
    [points([0, 3]), false],
    [points([0, 3]), true],
    [points([0, 0]), false],
    [points([0, 0]), true],
  ])("has a height for %j (by logarithms: %j)", (one, isLog) => {
    const y = yScale([one], range, { isLog });
    const [low, high] = y.domain();
    expect(low).toBeLessThan(high);
    expect(axisTicks(y, 4).length).toBeGreaterThan(0);
  });
  it("has round ticks on a logarithmic axis", () => {
    expect(axisTicks(yScale([points([0, 0.11], [1, 7.4])], range, { isLog: true }), 4)).toEqual([0.1, 0.2, 0.5, 1, 2, 5]);
    expect(axisTicks(yScale([points([0, 0.0003], [1, 20])], range, { isLog: true }), 5)).toEqual([0.001, 0.01, 0.1, 1, 10]);
    expect(axisTicks(yScale([points([0, 1e-9], [1, 1e9])], range, { isLog: true }), 4).length).toBeLessThanOrEqual(4);
  });
});

it.each([
  [0, "0"],
  [0.0012345, "0.00123"],
  [0.00000012, "1.2e-7"],
  [3.14159, "3.14"],
  [95.2052, "95.2"],
  [1234.6, "1235"],
  [12933.8, "12.9k"],
  [-12933.8, "-12.9k"],
  [4.5e6, "4.5M"],
])("%d is formatted as %s", (value, text) => expect(formatNumber(value)).toBe(text));

describe("the remaining time", () => {
  const at = (step: number, seconds: number) => train(step, 1, { time: new Date(1e12 + seconds * 1000).toISOString() });
  it("goes by the last steps", () => expect(secondsLeft([at(0, 0), at(100, 10)], 300)).toBeCloseTo(20, 6));
  it("forgets how slow the beginning was", () => {
    const events = [at(0, 0), ...Array.from({ length: 10 }, (_, k) => at(10 * (k + 1), 1000 + k))];
    expect(secondsLeft(events, 110)).toBeCloseTo(1, 6);
  });
  it("is not shown where it cannot be", () => {
    expect(secondsLeft([], 100)).toBeNull();
    expect(secondsLeft([at(10, 1)], 100)).toBeNull();
    expect(secondsLeft([at(0, 0), at(10, 1)], null)).toBeNull();
  });
});
