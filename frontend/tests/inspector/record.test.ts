import { describe, expect, it } from "vitest";

import { RecordError } from "../../src/inspector/record/errors";
import { parseRecord, readRecord } from "../../src/inspector/record/record";
import { makeRecord } from "../fixtures/make-record";

function problemOf(json: string): RecordError {
  try {
    parseRecord(json);
  } catch (error) {
    if (error instanceof RecordError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

/** A good record with one thing changed. */
function changed(change: (record: Record<string, never> & ReturnType<typeof makeRecord>) => void): string {
  const record = structuredClone(makeRecord()) as never;
  change(record);
  return JSON.stringify(record);
}

describe("a good record", () => {
  const record = readRecord(makeRecord());

  it("has its weights unpacked: every row sums to one", () => {
    const cross = record.attention.cross!;
    expect(cross).toMatchObject({ layers: 2, heads: 4, rows: 6, columns: 5 });
    for (let row = 0; row < cross.data.length; row += cross.columns) {
      const sum = cross.data.subarray(row, row + cross.columns).reduce((a, b) => a + b, 0);
      expect(sum).toBeCloseTo(1, 3);
    }
  });

  it("has its positions unpacked", () => {
    const { data, d_model } = record.positions!;
    expect([...data.subarray(0, 4)]).toEqual([0, 1, 0, 1]);
    expect(data[d_model]).toBeCloseTo(Math.sin(1), 3);
  });

  it("may lack all that is only there when asked for", () => {
    const bare = readRecord(makeRecord({ isBare: true }));
    expect([bare.beam, bare.logit_lens, bare.attribution, bare.ablation, bare.positions, bare.embeddings]).toEqual(Array(6).fill(null));
  });

  it("may hold keys that this version does not know", () => {
    expect(readRecord({ ...makeRecord(), color: "blue" }).src.text).toBe("나는 학생이다.");
  });

  it("may be of a model that has no self-attention and tells nothing of itself", () => {
    const made = makeRecord();
    const unknown = { num_layers: null, num_decoder_layers: null, num_heads: null, d_model: null, num_parameters: null };
    const found = readRecord({ ...made, model: { ...made.model, ...unknown }, attention: { ...made.attention, encoder_self: null, decoder_self: null } });
    expect(found.attention.encoder_self).toBeNull();
    expect(found.model.d_model).toBeNull();
  });

  it("may have been given its translation", () => {
    const made = makeRecord({ isBare: true });
    const search = { method: "given", beam_size: null, alpha: null, score: -1, log_prob: -1, is_finished: false };
    expect(readRecord({ ...made, search }).search).toEqual({ ...search, beam_size: 1, alpha: 0 });
  });
});

describe("a bad record", () => {
  it("that is not JSON is distinguished", () => expect(problemOf("{oops").problem).toBe("not_json"));

  it.each(["[]", "null", "3", '{"format": "attendo.trace", "version": 1}'])("%s is not a record", (json) => {
    expect(problemOf(json).problem).toBe("not_record");
  });

  it("of a newer version is refused before anything else is read", () => {
    const error = problemOf('{"format": "attendo.record", "version": 2, "attendo": "9.1.0"}');
    expect(error).toMatchObject({ problem: "newer", details: { version: 2, known: 1, attendo: "9.1.0" } });
  });

  it.each<[string, (record: never) => void, string]>([
    ["too few weights", (record: ReturnType<typeof makeRecord>) => (record.attention.cross.data = record.attention.cross.data.slice(8)), "attention.cross.data"],
    ["weights of another sentence", (record: ReturnType<typeof makeRecord>) => (record.attention.cross.rows = 9), "attention.cross"],
    ["no base64", (record: ReturnType<typeof makeRecord>) => (record.attention.cross.data = "@@@"), "attention.cross.data"],
    ["an unknown packing", (record: ReturnType<typeof makeRecord>) => (record.attention.cross.encoding = "u8"), "attention.cross.encoding"],
    ["a step too few", (record: ReturnType<typeof makeRecord>) => record.steps.pop(), "steps"],
    ["a word that is not there", (record: ReturnType<typeof makeRecord>) => (record.src.tokens[0].word = 7), "src.tokens[0].word"],
    ["a text where a number belongs", (record: ReturnType<typeof makeRecord>) => (record.steps[2].entropy = "low" as never), "steps[2].entropy"],
    ["no translation", (record: ReturnType<typeof makeRecord>) => Reflect.deleteProperty(record, "tgt"), "tgt"],
    ["a outcome that nobody knows", (record: ReturnType<typeof makeRecord>) => (record.beam!.steps[0].candidates[0].outcome = "lost"), "beam.steps[0].candidates[0].outcome"],
  ])("with %s names its path", (_, change, path) => {
    expect(problemOf(changed(change as never))).toMatchObject({ problem: "broken", details: { path } });
  });
});
