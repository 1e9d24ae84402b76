/**
 * Beam search: extends the best hypotheses until no finished one can be beaten.
 * The rules are those of `attendo.decoding.beam`, in the same precision: the same ids for the same logits.
 */

import type { Seq2SeqSession } from "../model/session";

import { lengthPenalty, type Candidate, type Hypothesis, type SearchOptions, type SearchResult, type SpecialIds, type Trace } from "./options";
import { topSums } from "./top";

interface Slot {
  ids: number[];
  logProbs: number[];
  /** Minus infinity: the slot is empty. */
  total: number;
}

interface Extension {
  parent: number;
  token: number;
  logProb: number;
  total: number;
}

/** Return the best hypotheses of each source. */
export async function beamSearch(
  session: Seq2SeqSession,
  sources: readonly (readonly number[])[],
  limits: readonly number[],
  special: SpecialIds,
  options: SearchOptions,
  hasTrace = false,
): Promise<SearchResult[]> {
  const beams = limits.map((limit) => new SentenceBeam(limit, special, options, hasTrace));
  const width = options.beamSize;
  await session.start(sources);
  session.reorder(sources.flatMap((_, sentence) => Array.from({ length: width }, () => sentence)));
  let open = beams;
  let last = open.flatMap(() => Array.from({ length: width }, () => special.start_id));
  for (;;) {
    const { logProbs } = await session.step(last);
    const vocabulary = logProbs.shape[1]!;
    const parents = open.map((beam, index) => {
      const rows = beam.slots.map((_, slot) => {
        const row = index * width + slot;
        return logProbs.data.subarray(row * vocabulary, (row + 1) * vocabulary);
      });
      return beam.step(rows);
    });
    const remaining = open.flatMap((beam, index) => (beam.isDone ? [] : [index]));
    if (remaining.length === 0) break;
    session.reorder(remaining.flatMap((index) => parents[index]!.map((slot) => index * width + slot)));
    open = remaining.map((index) => open[index]!);
    last = open.flatMap((beam) => beam.slots.map((slot) => slot.ids.at(-1)!));
  }
  session.release();
  return beams.map((beam) => beam.result());
}

/** The beam of one sentence. */
class SentenceBeam {
  slots: Slot[];
  isDone = false;
  private position = 0;
  private readonly finished: Hypothesis[] = [];
  private truncated: Hypothesis[] = [];
  private readonly trace: Trace | null;
  private readonly nBest: number;

  constructor(
    private readonly limit: number,
    private readonly special: SpecialIds,
    private readonly options: SearchOptions,
    hasTrace: boolean,
  ) {
    this.slots = Array.from({ length: options.beamSize }, (_, slot) => ({ ids: [], logProbs: [], total: slot === 0 ? 0 : -Infinity }));
    this.trace = hasTrace ? { steps: [], stopped: "best_finished" } : null;
    this.nBest = Math.min(options.nBest, options.beamSize);
  }

  /** Extend the hypotheses by one token, given a row of log-probabilities per slot; return the parent of each slot. */
  step(rows: readonly Float32Array[]): number[] {
    const { beamSize } = this.options;
    const candidates = this.bestExtensions(rows);
    const isEnd = candidates.map(({ token }) => token === this.special.end_id);
    const finishing = candidates.map(({ total }, rank) => rank < beamSize && isEnd[rank]! && total > -Infinity);
    // A hypothesis has one candidate that ends it, so at least half of the candidates continue.
    const ranks = candidates.map((_, rank) => rank);
    const order = [...ranks.filter((rank) => !isEnd[rank]), ...ranks.filter((rank) => isEnd[rank])].slice(0, beamSize);
    this.trace?.steps.push(this.traceStep(candidates, finishing, order));
    ranks.filter((rank) => finishing[rank]).forEach((rank) => this.finish(candidates[rank]!));
    this.slots = order.map((rank) => {
      const { parent, token, logProb, total } = candidates[rank]!;
      const { ids, logProbs } = this.slots[parent]!;
      return { ids: [...ids, token], logProbs: [...logProbs, logProb], total };
    });
    this.position++;
    this.checkEnd();
    return order.map((rank) => candidates[rank]!.parent);
  }

  result(): SearchResult {
    const others = this.finished.length < this.nBest ? this.truncated : [];
    return { hypotheses: [...this.finished, ...others].slice(0, this.nBest), trace: this.trace };
  }

  private bestExtensions(rows: readonly Float32Array[]): Extension[] {
    const count = 2 * this.options.beamSize;
    const extensions = rows.flatMap((logProbs, parent) => {
      const before = this.slots[parent]!.total;
      if (before === -Infinity) return [];
      for (const id of [this.special.pad_id, this.special.start_id, this.special.unk_id]) logProbs[id] = -Infinity;
      return topSums(logProbs, before, count).map(({ index, sum }) => ({ parent, token: index, logProb: logProbs[index]!, total: sum }));
    });
    return extensions.sort((first, second) => second.total - first.total || first.parent - second.parent || first.token - second.token).slice(0, count);
  }

  private finish({ parent, logProb, total }: Extension): void {
    const { ids, logProbs } = this.slots[parent]!;
    this.finished.push({ ids, tokenLogProbs: [...logProbs, logProb], logProb: total, score: this.scoreNext(total), isFinished: true });
    this.finished.sort((first, second) => second.score - first.score); // stable: the earlier one wins a tie
    this.finished.length = Math.min(this.finished.length, this.nBest);
  }

  /** End the search if the finished hypotheses cannot be beaten, or at the limit. */
  private checkEnd(): void {
    const { alpha } = this.options;
    const best = Math.max(...this.slots.map(({ total }) => total));
    const bound = best / lengthPenalty(alpha > 0 ? this.limit : this.position + 1, alpha);
    const threshold = this.finished.length === this.nBest ? this.finished.at(-1)!.score : -Infinity;
    const isBeaten = threshold >= bound;
    if (!isBeaten && (this.position >= this.limit || best === -Infinity)) this.truncate(best === -Infinity ? "no_continuation" : "length_limit");
    this.isDone = isBeaten || this.position >= this.limit || best === -Infinity;
  }

  private truncate(reason: Trace["stopped"]): void {
    const penalty = lengthPenalty(Math.max(this.position, 1), this.options.alpha);
    this.truncated = this.slots
      .filter(({ total }) => total > -Infinity)
      .map(({ ids, logProbs, total }) => ({ ids, tokenLogProbs: logProbs, logProb: total, score: total / penalty, isFinished: false }))
      .sort((first, second) => second.score - first.score);
    if (this.trace) this.trace.stopped = reason;
  }

  private traceStep(candidates: readonly Extension[], finishing: readonly boolean[], order: readonly number[]): Candidate[] {
    return candidates
      .filter(({ total }) => total > -Infinity)
      .map(({ parent, token, logProb, total }, rank) => {
        const slot = order.indexOf(rank);
        const isKept = slot >= 0 && !finishing[rank];
        const outcome = finishing[rank] ? "finished" : isKept ? "kept" : "pruned";
        const why = outcome !== "pruned" ? "" : token === this.special.end_id ? "end_not_in_beam" : "beam_full";
        return { id: token, parent, slot: isKept ? slot : null, logProb, total, score: this.scoreNext(total), outcome, why };
      });
  }

  /** Return the score of a sequence that ends with the next token. */
  private scoreNext(total: number): number {
    return total / lengthPenalty(this.position + 1, this.options.alpha);
  }
}
