/** Sampling: a token by its probability. */

/** Return a function that picks an id by its probability at a temperature; the same for the same seed and source. */
export function createSampler(temperature: number, seed: number, source: readonly number[]): (logProbs: Float32Array) => number {
  const random = randomNumbers(source.reduce((hash, id) => Math.imul(hash ^ id, 16_777_619), seed | 0));
  return (logProbs) => {
    const highest = logProbs.reduce((one, other) => Math.max(one, other), -Infinity);
    const weights = Float64Array.from(logProbs, (logProb) => Math.exp((logProb - highest) / temperature));
    let rest = random() * weights.reduce((sum, weight) => sum + weight, 0);
    let last = 0;
    for (const [id, weight] of weights.entries()) {
      if (weight === 0) continue;
      last = id;
      rest -= weight;
      if (rest < 0) break;
    }
    return last;
  };
}

/** Return a generator of numbers from 0 to 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
