/** A quantized product of the kernels against the same in TypeScript, in Node.js and in a browser. */

import { Heap, roundUp } from "../../packages/attendo-web/src/runtime/heap";

/** Rows, length of a row, columns: none of them a multiple of what the kernels work with at once, or all. */
export const SHAPES = [
  [1, 5, 3],
  [2, 17, 9],
  [7, 64, 30],
  [3, 256, 40],
] as const;

function randoms(count: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return state / 2 ** 31;
  });
}

/** Return the largest difference between a quantized product and the same in whole numbers. */
export function compareProduct(heap: Heap, [rows, length, columns]: readonly [number, number, number]): number {
  const { kernels } = heap;
  const [padded, width] = [roundUp(length, 4), roundUp(columns, 8)];
  const x = randoms(rows * length, 1);
  const weights = Int8Array.from(randoms(length * columns, 2), (value) => Math.round(value * 127));
  const [input, scales, bias] = [heap.store(x), heap.store(randoms(columns, 3), width), heap.store(randoms(columns, 4), width)];
  const given = heap.allocate(weights.length);
  heap.bytes(given.address, weights.length).set(new Uint8Array(weights.buffer));
  const [packed, sums, out] = [heap.allocate(padded * width), heap.allocate(4 * width), heap.allocate(4 * rows * columns)];
  const [quantized, rowScales] = [heap.allocate(2 * rows * padded), heap.allocate(4 * rows)];
  kernels.pack_weights(given.address, length, columns, padded, packed.address, sums.address, heap.mode);
  kernels.quantize_rows(input.address, rows, length, padded, quantized.address, rowScales.address, heap.mode);
  const addresses = [packed, scales, sums, bias, out].map(({ address }) => address) as [number, number, number, number, number];
  kernels.multiply_quantized(quantized.address, rowScales.address, rows, padded, ...addresses, columns, 0);
  const found = heap.floats(out.address, rows * columns);
  const [factors, added] = [heap.floats(scales.address, columns), heap.floats(bias.address, columns)];
  let largest = 0;
  for (let row = 0; row < rows; row++) {
    const values = x.subarray(row * length, (row + 1) * length);
    const scale = Math.max(...values.map(Math.abs)) / 127;
    for (let column = 0; column < columns; column++) {
      const sum = values.reduce((total, value, index) => total + Math.round(value / scale) * weights[index * columns + column]!, 0);
      largest = Math.max(largest, Math.abs(found[row * columns + column]! - (sum * scale * factors[column]! + added[column]!)));
    }
  }
  return largest;
}

/** Return how 8-bit integers are multiplied (see kernels.c), and the largest difference over all shapes. */
export async function compareAll(relaxed: boolean): Promise<{ mode: number; largest: number }> {
  const heap = await Heap.create({ relaxed });
  return { mode: heap.mode, largest: Math.max(...SHAPES.map((shape) => compareProduct(heap, shape))) };
}
