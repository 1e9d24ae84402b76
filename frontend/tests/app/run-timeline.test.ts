import { describe, expect, it } from "vitest";

import type { RunEvent, SampleSet } from "../../src/app/api/schemas";
import { liveliestSample, runTimeline } from "../../src/app/features/runs/run-timeline";

const BLANK = { time: null, loss: null, rate: null, tokens_per_second: null, perplexity: null, bleu: null, accuracy: null, reason: null };
const event = (name: string, step: number, loss: number): RunEvent => ({ ...BLANK, event: name, step, loss });
const EVENTS = [event("train", 20, 7), event("train", 40, 5), event("validation", 40, 4), event("train", 60, 3)];
const set = (step: number, outputs: Record<string, string>): SampleSet => ({ step, samples: Object.entries(outputs).map(([src, output]) => ({ src, output, ref: null })) });
const SETS = [set(40, { "나는": "I I", "우리는 간다": "we" }), set(80, { "나는": "I", "우리는 간다": "we" })];

describe("the timeline of a run", () => {
  it("has every step with samples or a checkpoint, in order", () => {
    expect(runTimeline(EVENTS, SETS, [50, 80], "나는")).toEqual([
      { step: 40, trainLoss: 5, devLoss: 4, isKept: false, sampled: "I I" },
      { step: 50, trainLoss: 5, devLoss: null, isKept: true, sampled: null },
      { step: 80, trainLoss: 3, devLoss: null, isKept: true, sampled: "I" },
    ]);
  });
  it("has no recorded translation of another sentence", () => {
    expect(runTimeline([], SETS, [], "너는").map(({ sampled }) => sampled)).toEqual([null, null]);
    expect(runTimeline([], [], [], "너는")).toEqual([]);
  });
  it("begins with the sentence whose translation changed", () => {
    expect(liveliestSample(SETS)).toBe("나는");
    expect(liveliestSample([set(1, { "긴 문장": "a", "짧다": "b" })])).toBe("짧다");
    expect(liveliestSample([])).toBe("");
  });
});
