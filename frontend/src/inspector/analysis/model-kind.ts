/** The kind of model of a record: some studies exist only for some kinds. */

import type { InspectionRecord } from "../record/record";

/** Whether the model is a single Transformer: others, including ensembles, have no studies of layers and heads. */
export function isTransformer({ model }: InspectionRecord): boolean {
  return model.kind === "transformer";
}

/** Whether the model reads tokens one after the other and so has no position vectors. */
export function isRecurrent({ model }: InspectionRecord): boolean {
  return model.kind.startsWith("rnn-");
}
