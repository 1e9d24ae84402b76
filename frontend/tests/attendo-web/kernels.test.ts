import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { Heap, roundUp } from "../../packages/attendo-web/src/runtime/heap";
import { RELAXED_SIMD, SIMD, SOURCE_SHA256 } from "../../packages/attendo-web/src/runtime/kernels";

const SOURCE = new URL("../../packages/attendo-web/src/runtime/kernels.c", import.meta.url);
/** Rows, length of a row, columns: none of them a multiple of what the kernels work with at once, or all. */
const SHAPES = [
  [1, 5, 3],
  [2, 17, 9],
  [7, 64, 30],
  [3, 256, 40],
] as const;
const hasRelaxed = WebAssembly.validate(Buffer.from(RELAXED_SIMD, "base64"));

function randoms(count: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return state / 2 ** 31;
  });
}

/** Return the largest difference between a quantized product and the same in whole numbers. */
function compareProduct(heap: Heap, [rows, length, columns]: readonly [number, number, number]): number {
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

describe("kernels", () => {
  it("are those of the source: run build_kernels.mjs after a change", () => {
    expect(SOURCE_SHA256).toBe(createHash("sha256").update(readFileSync(SOURCE)).digest("hex"));
  });

  it.each(SHAPES)("multiply 8-bit integers exactly, %i rows of %i with %i columns", async (...shape) => {
    expect(compareProduct(await Heap.create({ relaxed: false }), shape)).toBeLessThan(1e-3);
    if (hasRelaxed) expect(compareProduct(await Heap.create(), shape)).toBeLessThan(1e-3);
  });

  it("are small", () => {
    expect(SIMD.length + RELAXED_SIMD.length).toBeLessThan(60_000);
  });

  it("find the softmax, with masked numbers and large ones", async () => {
    const heap = await Heap.create({ relaxed: false });
    const logits = Float32Array.of(1, 2, 3, -80, 100, 99, 4, 0, 5, 5, NaN, 1, 1, 1, 1);
    const [x, highest, sums] = [heap.store(logits), heap.allocate(12), heap.allocate(24)];
    heap.kernels.normalizers(x.address, 3, 5, highest.address, sums.address);
    const found = [...new Float64Array(heap.kernels.memory.buffer, sums.address, 3)];
    [...heap.floats(highest.address, 2)].forEach((largest, row) => {
      const terms = [...logits.subarray(5 * row, 5 * row + 5)].map((logit) => Math.exp(logit - largest));
      expect(found[row]).toBeCloseTo(terms.reduce((sum, term) => sum + term), 5);
    });
    expect(found[2]).toBeNaN();
  });
});

describe("the heap", () => {
  it("uses free blocks again, of nearly the same size", async () => {
    const heap = await Heap.create({ relaxed: false });
    const first = heap.allocate(10_000);
    heap.release(first);
    expect(heap.allocate(9_500).address).toBe(first.address);
    expect(heap.allocate(9_500).address).not.toBe(first.address);
  });

  it("keeps a block that two tensors share", async () => {
    const heap = await Heap.create({ relaxed: false });
    const block = heap.allocate(100);
    block.references++;
    heap.release(block);
    expect(heap.allocate(100).address).not.toBe(block.address);
  });
});
