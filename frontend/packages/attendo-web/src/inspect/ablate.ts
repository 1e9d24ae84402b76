/** What each head contributes to one translation: the same numbers as `attendo.inspection.ablation`. */

import type { Head } from "../model/session";
import type { SearchOptions } from "../search/options";
import { logSoftmax } from "../search/top";
import type { Translator } from "../translator";

/** The section `ablation` of a record. */
export interface Ablation {
  /** The log-probability of the translation with all heads. */
  log_prob: number;
  /** Without each head: the log-probability, how it changed, and what is translated instead. */
  heads: (Head & { log_prob: number; change: number; text: string })[];
}

/** Switch each head off, one at a time; `onProgress` gets finished and all heads. */
export async function ablateAllHeads(
  translator: Translator,
  source: string,
  options: Partial<SearchOptions> = {},
  onProgress?: (done: number, all: number) => void,
): Promise<Ablation> {
  const { info, session, tokenizer } = translator;
  const srcIds = tokenizer.encode(source);
  const [result] = await translator.search([source], options);
  const best = result!.hypotheses[0];
  if (!best) throw new Error("the sentence is empty");
  const tgtIds = best.isFinished ? [...best.ids, info.end_id] : best.ids;
  const score = async (): Promise<number> => {
    await session.start([srcIds]);
    const { logits } = await session.forward([info.start_id, ...tgtIds.slice(0, -1)]);
    session.release();
    const size = logits.shape.at(-1)!;
    return tgtIds.reduce((sum, id, row) => sum + logSoftmax(logits.data.subarray(row * size, (row + 1) * size))[id]!, 0);
  };
  const baseline = await score();
  const heads: Ablation["heads"] = [];
  try {
    for (const head of session.heads) {
      onProgress?.(heads.length, session.heads.length);
      session.switchOff([head]);
      const logProb = await score();
      const [found] = await translator.search([source], options);
      heads.push({ ...head, log_prob: logProb, change: logProb - baseline, text: tokenizer.decode(found!.hypotheses[0]!.ids) });
    }
  } finally {
    session.switchOff([]);
  }
  return { log_prob: baseline, heads };
}
