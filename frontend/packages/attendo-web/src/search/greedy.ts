/** One hypothesis per sentence: the most probable token at every step, or a sampled one. */

import type { Best, Seq2SeqSession, Values } from "../model/session";

import { lengthPenalty, type Hypothesis, type SearchOptions, type SearchResult, type SpecialIds } from "./options";
import { createSampler } from "./sampling";

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
  const excluded = [special.pad_id, special.start_id, special.unk_id];
  const samplers = temperature > 0 ? sources.map((source) => createSampler(temperature, seed, source)) : null;
  let open = sources.map((_, sentence) => sentence);
  let last = sources.map(() => special.start_id);
  await session.start(sources);
  while (open.length > 0) {
    const { ids, logProbs } = samplers
      ? sampleRows(await session.step(last), open.map((sentence) => samplers[sentence]!), excluded)
      : await session.stepToBest(last, excluded);
    const kept: number[] = [];
    open.forEach((sentence, row) => {
      const token = ids[row]!;
      const hypothesis = hypotheses[sentence]!;
      hypothesis.tokenLogProbs.push(logProbs[row]!);
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

function sampleRows({ logProbs: { data, shape } }: { logProbs: Values }, samplers: readonly ((logProbs: Float32Array) => number)[], excluded: readonly number[]): Best {
  const size = shape[1]!;
  const ids = samplers.map((sample, index) => {
    const row = data.subarray(index * size, (index + 1) * size);
    for (const id of excluded) row[id] = -Infinity;
    return sample(row);
  });
  return { ids, logProbs: ids.map((id, row) => data[row * size + id]!) };
}
