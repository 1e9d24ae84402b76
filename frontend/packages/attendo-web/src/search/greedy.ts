/** One hypothesis per sentence: the most probable token at every step, or a sampled one. */

import type { Seq2SeqSession } from "../model/session";

import { lengthPenalty, type Hypothesis, type SearchOptions, type SearchResult, type SpecialIds } from "./options";
import { createSampler } from "./sampling";
import { logSoftmax } from "./top";

/** Return one hypothesis per source. */
export async function greedySearch(
  session: Seq2SeqSession,
  sources: readonly (readonly number[])[],
  limits: readonly number[],
  special: SpecialIds,
  options: SearchOptions,
): Promise<SearchResult[]> {
  const hypotheses: Hypothesis[] = sources.map(() => ({ ids: [], tokenLogProbs: [], logProb: 0, score: 0, isFinished: false }));
  const { temperature, seed } = options;
  const pick = sources.map((source) => (temperature > 0 ? createSampler(temperature, seed, source) : indexOfHighest));
  let open = sources.map((_, sentence) => sentence);
  let last = sources.map(() => special.start_id);
  await session.start(sources);
  while (open.length > 0) {
    const { logits } = await session.step(last);
    const vocabulary = logits.shape[1]!;
    const kept: number[] = [];
    open.forEach((sentence, row) => {
      const logProbs = logSoftmax(logits.data.subarray(row * vocabulary, (row + 1) * vocabulary));
      for (const id of [special.pad_id, special.start_id, special.unk_id]) logProbs[id] = -Infinity;
      const token = pick[sentence]!(logProbs);
      const hypothesis = hypotheses[sentence]!;
      hypothesis.tokenLogProbs.push(logProbs[token]!);
      if (token === special.end_id) hypothesis.isFinished = true;
      else hypothesis.ids.push(token);
      if (!hypothesis.isFinished && hypothesis.ids.length < limits[sentence]!) kept.push(row);
    });
    last = kept.map((row) => hypotheses[open[row]!]!.ids.at(-1)!);
    open = kept.map((row) => open[row]!);
    if (open.length > 0) session.reorder(kept);
  }
  session.release();
  return hypotheses.map((hypothesis) => {
    hypothesis.logProb = hypothesis.tokenLogProbs.reduce((sum, one) => sum + one, 0);
    hypothesis.score = hypothesis.logProb / lengthPenalty(Math.max(hypothesis.tokenLogProbs.length, 1), options.alpha);
    return { hypotheses: [hypothesis], trace: null };
  });
}

function indexOfHighest(values: Float32Array): number {
  let highest = 0;
  for (let index = 1; index < values.length; index++) if (values[index]! > values[highest]!) highest = index;
  return highest;
}
