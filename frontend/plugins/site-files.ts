/**
 * A Vite plugin: writes the page that runs a model without a server.
 *
 * `site.html` becomes `index.html`. The service worker and the manifest make the page installable; the export completes them.
 * `webgpu/` has ONNX Runtime for the graphics processor, which the export leaves out unless it is asked for.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";

import type { Plugin, Rollup } from "vite";

import { licenseComment } from "./licenses";

const ROOT = new URL("../", import.meta.url);
const MANIFEST_LINKS =
  '<link rel="manifest" href="./manifest.webmanifest" /><link rel="apple-touch-icon" href="./icon-192.png" /><meta name="theme-color" content="#1d56b0" />';
const MANIFEST = {
  name: "Attendo",
  short_name: "Attendo",
  start_url: "./",
  display: "standalone",
  background_color: "#fbfaf7",
  theme_color: "#1d56b0",
  icons: [192, 512].map((size) => ({ src: `icon-${size}.png`, sizes: `${size}x${size}`, type: "image/png" })),
};

/** The build that suspends WebAssembly by the browser's own means (JSPI): 4.1 MB, where the other one has 6.6. */
const WEBGPU_SCRIPT = "ort.jspi.bundle.min.mjs";
const WEBGPU_WASM = "ort-wasm-simd-threaded.jspi.wasm";

export function siteFiles(): Plugin {
  return {
    name: "attendo-site-files",
    enforce: "post",
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.fileName !== "site.html") continue;
        const chunks = Object.values(bundle).filter((one): one is Rollup.OutputChunk => one.type === "chunk");
        file.fileName = "index.html";
        (file as Rollup.OutputAsset).source = String((file as Rollup.OutputAsset).source).replace("</head>", () => `${MANIFEST_LINKS}${licenseComment(chunks)}</head>`);
      }
      this.emitFile({ type: "asset", fileName: "manifest.webmanifest", source: JSON.stringify(MANIFEST) });
      this.emitFile({ type: "asset", fileName: "service-worker.js", source: readFileSync(new URL("site-service-worker.js", ROOT)) });
      for (const icon of ["icon-192.png", "icon-512.png"]) this.emitFile({ type: "asset", fileName: icon, source: readFileSync(new URL(`icons/${icon}`, ROOT)) });
      const runtime = dirname(createRequire(import.meta.url).resolve("onnxruntime-web/wasm"));
      this.emitFile({ type: "asset", fileName: "webgpu/ort.mjs", source: readFileSync(join(runtime, WEBGPU_SCRIPT)) });
      this.emitFile({ type: "asset", fileName: "webgpu/ort.wasm.gz", source: gzipSync(readFileSync(join(runtime, WEBGPU_WASM)), { level: 9 }) });
    },
  };
}
