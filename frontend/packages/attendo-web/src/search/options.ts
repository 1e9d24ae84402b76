/** How to search, and what a search finds. */

export interface SearchOptions {
  /** 1 is greedy search. */
  beamSize: number;
  /** The exponent of the length penalty (Wu et al. 2016). */
  alpha: number;
  /** Translations to return per sentence, at most the beam size. */
  nBest: number;
  /** Tokens that a translation may have more than its source. */
  maxExtraTokens: number;
  /** Above 0 every token is sampled, at this temperature, instead of searched. */
  temperature: number;
  /** The same seed samples the same translation of a sentence. */
  seed: number;
}

export interface Hypothesis {
  /** Target ids without the end symbol. */
  ids: number[];
  /** Log-probabilities of the tokens, and of the end symbol if the hypothesis is finished. */
  tokenLogProbs: number[];
  logProb: number;
  /** The log-probability divided by the length penalty. */
  score: number;
  isFinished: boolean;
}

/** A hypothesis extended by one token, and what became of it. */
export interface Candidate {
  id: number;
  parent: number;
  slot: number | null;
  logProb: number;
  total: number;
  score: number;
  outcome: "kept" | "finished" | "pruned";
  why: "" | "beam_full" | "end_not_in_beam";
}

/** The candidates of each step, best first, and why the search stopped. */
export interface Trace {
  steps: Candidate[][];
  stopped: "best_finished" | "length_limit" | "no_continuation";
}

export interface SearchResult {
  hypotheses: Hypothesis[];
  trace: Trace | null;
}

/** The ids that a search treats specially. */
export interface SpecialIds {
  pad_id: number;
  start_id: number;
  end_id: number;
  unk_id: number;
}

/** Return the divisor of the log-probability of `length` tokens, including the end symbol. */
export function lengthPenalty(length: number, alpha: number): number {
  return ((5 + length) / 6) ** alpha;
}
