/** Log-probabilities, and the best of many numbers. */

/** The error when logits are no numbers. */
export const DAMAGED = "the model returned NaN: its weights are damaged";

/** Turn one row of logits into log-probabilities in single precision, as PyTorch returns them. */
export function logSoftmax(logits: Float32Array): Float32Array {
  let highest = -Infinity;
  for (const logit of logits) {
    if (Number.isNaN(logit)) throw new Error(DAMAGED);
    if (logit > highest) highest = logit;
  }
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - highest);
  const divisor = highest + Math.log(sum);
  return logits.map((logit) => logit - divisor);
}

/** Return the indices of the `count` highest numbers, the highest first; of equal ones the first. */
export function topIndices(values: Float32Array, count: number): number[] {
  return topSums(values, 0, count).map(({ index }) => index);
}

/** Add a number to all others in single precision, and return the `count` highest sums; of equal ones the first. */
export function topSums(values: Float32Array, added: number, count: number): { index: number; sum: number }[] {
  const best: { index: number; sum: number }[] = [];
  let lowest = -Infinity;
  for (let index = 0; index < values.length; index++) {
    const sum = Math.fround(values[index]! + added);
    if (sum <= lowest && best.length === count) continue;
    let rank = best.length;
    while (rank > 0 && sum > best[rank - 1]!.sum) rank--;
    best.splice(rank, 0, { index, sum });
    if (best.length > count) best.pop();
    lowest = best.at(-1)!.sum;
  }
  return best;
}

/** Return the index of the highest number; of equal ones the first. */
export function indexOfHighest(values: Float32Array): number {
  let highest = 0;
  for (let index = 1; index < values.length; index++) if (values[index]! > values[highest]!) highest = index;
  return highest;
}
