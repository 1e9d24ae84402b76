/** The kernels of the web runtime in the browser, which may have relaxed SIMD: Node.js 20 has not. */

import { fileURLToPath } from "node:url";

import { expect, test } from "@playwright/test";
import { build } from "esbuild";

const COMPARISON = fileURLToPath(new URL("../tests/attendo-web/quantized_product.ts", import.meta.url));

for (const relaxed of [false, true]) {
  test(`products of 8-bit integers are exact, ${relaxed ? "with relaxed SIMD" : "with SIMD"}`, async ({ page }) => {
    const { outputFiles } = await build({ entryPoints: [COMPARISON], bundle: true, format: "iife", globalName: "comparison", write: false });
    await page.addScriptTag({ content: outputFiles[0]!.text });
    const { mode, largest } = (await page.evaluate(`comparison.compareAll(${String(relaxed)})`)) as { mode: number; largest: number };
    if (!relaxed) expect(mode).toBe(0);
    expect(largest).toBeLessThan(1e-3);
  });
}
