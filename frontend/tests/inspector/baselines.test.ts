/** Records of models that are no Transformer. */

import { describe, expect, it } from "vitest";

import { choose, firstChoice, toggleHead } from "../../src/inspector/analysis/attention";
import { metricNames, metricRows } from "../../src/inspector/analysis/head-metrics";
import { isRecurrent, isTransformer } from "../../src/inspector/analysis/model-kind";
import { type MetricName, METRICS, parseRecord, readRecord } from "../../src/inspector/record/record";
import { firstTab, TABS } from "../../src/inspector/state/tabs";
import { type BaselineKind, makeBaseline } from "../fixtures/make-baseline";
import { makeRecord } from "../fixtures/make-record";

const read = (kind: BaselineKind) => parseRecord(JSON.stringify(makeBaseline(kind)));
const transformer = readRecord(makeRecord());

describe("the kind of a model", () => {
  it.each<BaselineKind>(["rnn-seq2seq", "rnn-attention", "conv-s2s"])("%s is not a Transformer", (kind) => {
    expect(isTransformer(read(kind))).toBe(false);
    expect(isRecurrent(read(kind))).toBe(kind !== "conv-s2s");
  });

  it("tells a Transformer from several", () => {
    expect(isTransformer(transformer)).toBe(true);
    expect(isRecurrent(transformer)).toBe(false);
    expect(isTransformer({ ...transformer, model: { ...transformer.model, kind: "ensemble" } })).toBe(false);
  });
});

describe("the view that opens", () => {
  it("is steps where there is no attention, unless another one is wanted", () => {
    expect(TABS.map((tab) => firstTab(read("rnn-seq2seq"), tab))).toEqual(["steps", "steps", "beam", "why", "words", "metrics"]);
  });

  it("is the wanted one where there is any attention", () => {
    for (const record of [transformer, read("rnn-attention"), read("conv-s2s")]) {
      expect(TABS.map((tab) => firstTab(record, tab))).toEqual([...TABS]);
    }
  });
});

describe("metrics", () => {
  it("leave agreement out where a head is alone in its layer, in however many layers", () => {
    for (const kind of ["rnn-attention", "conv-s2s"] as const) {
      expect(metricNames(metricRows(read(kind), "cross"))).toEqual(["focus", "entropy", "distance", "alignment"]);
    }
  });

  it("keep it between two heads, even if only one layer has two", () => {
    const agreement = (value: number) => ({ ...Object.fromEntries(METRICS.map((name) => [name, null])), agreement: value }) as Record<MetricName, number | null>;
    const measures = { ...transformer.measures, cross: [[agreement(1)], [agreement(0.4), agreement(0.4)]] };
    expect(metricNames(metricRows({ ...transformer, measures }, "cross"))).toEqual(["agreement"]);
  });

  it("are none without attention", () => expect(metricNames(metricRows(read("rnn-seq2seq"), "cross"))).toEqual([]));
});

describe("a choice among one head", () => {
  const record = read("conv-s2s");
  const first = firstChoice(record)!;

  it.each(["all", "mean", "several"] as const)("stays at that one when %s is asked for", (mode) => {
    expect(choose(record, first, { mode })).toEqual(first);
  });

  it("stays when the head is added to itself", () => expect(toggleHead(record, first, 0, true)).toEqual(first));

  it("still has all layers", () => {
    expect(choose(record, first, { layer: 2 }).layer).toBe(2);
    expect(choose(record, first, { layer: "all" })).toMatchObject({ layer: "all", mode: "one", heads: [0] });
  });
});
