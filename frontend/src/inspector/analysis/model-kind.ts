/** What kind of model a record is of. What only some kinds have, others need not be asked for. */

import type { LookRecord } from "../record/types";

/** One Transformer: the studies of its layers and heads are refused for anything else, ensembles too. */
export function isTransformer({ model }: LookRecord): boolean {
  return model.kind === "transformer";
}

/** Reads one word after the other, and so needs no position vectors. */
export function isRecurrent({ model }: LookRecord): boolean {
  return model.kind.startsWith("rnn-");
}
