import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { Heap } from "../../packages/attendo-web/src/runtime/heap";
import { RELAXED_SIMD, SIMD, SOURCE_SHA256 } from "../../packages/attendo-web/src/runtime/kernels";
import { compareProduct, SHAPES } from "./quantized_product";

const SOURCE = new URL("../../packages/attendo-web/src/runtime/kernels.c", import.meta.url);
const hasRelaxed = WebAssembly.validate(Buffer.from(RELAXED_SIMD, "base64"));

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
