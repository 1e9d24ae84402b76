/**
 * A Vite plugin: writes the page that runs a model without a server, with the runtime that it needs.
 *
 * `site.html` becomes `index.html`; ONNX Runtime's WebAssembly is stored compressed: 2.2 MB by LZMA, where gzip gives 3.7 MB
 * (`src/site/lzma.ts` decompresses it). The service worker and the manifest make the page installable; the export completes them.
 */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

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
const RUNTIME = "ort-wasm-simd-threaded.wasm";

/** Writes the size of the content into the header, which Python's module leaves open. */
const COMPRESS = `
import lzma, struct, sys
content = sys.stdin.buffer.read()
packed = bytearray(lzma.compress(content, format=lzma.FORMAT_ALONE, preset=9))
packed[5:13] = struct.pack("<Q", len(content))
sys.stdout.buffer.write(packed)
`;

/** Compress with the Python that the repository needs anyway: Node.js has no LZMA. */
function compressLzma(content: Uint8Array): Uint8Array {
  const own = fileURLToPath(new URL("../.venv/bin/python", ROOT));
  return execFileSync(existsSync(own) ? own : "python3", ["-c", COMPRESS], { input: content, maxBuffer: 2 * content.length });
}

export function siteFiles(): Plugin {
  return {
    name: "attendo-site-files",
    enforce: "post",
    generateBundle(_, bundle) {
      for (const [name, file] of Object.entries(bundle)) {
        // The runtime is referred to by its own loader, which is given the bytes instead.
        if (name.endsWith(".wasm")) Reflect.deleteProperty(bundle, name);
        if (file.fileName !== "site.html") continue;
        const chunks = Object.values(bundle).filter((one): one is Rollup.OutputChunk => one.type === "chunk");
        file.fileName = "index.html";
        (file as Rollup.OutputAsset).source = String((file as Rollup.OutputAsset).source).replace("</head>", () => `${MANIFEST_LINKS}${licenseComment(chunks)}</head>`);
      }
      this.emitFile({ type: "asset", fileName: "manifest.webmanifest", source: JSON.stringify(MANIFEST) });
      this.emitFile({ type: "asset", fileName: "service-worker.js", source: readFileSync(new URL("site-service-worker.js", ROOT)) });
      for (const icon of ["icon-192.png", "icon-512.png"]) this.emitFile({ type: "asset", fileName: icon, source: readFileSync(new URL(`icons/${icon}`, ROOT)) });
      const folder = dirname(createRequire(import.meta.url).resolve("onnxruntime-web/wasm"));
      this.emitFile({ type: "asset", fileName: "ort.wasm.lzma", source: compressLzma(readFileSync(join(folder, RUNTIME))) });
    },
  };
}
