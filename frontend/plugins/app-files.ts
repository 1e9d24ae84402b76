/**
 * A Vite plugin: writes the files of the application as the server delivers them.
 *
 * `app.html` becomes `index.html`; each page has the licenses of its bundled packages. The offline inspector (built before) is
 * included, so that a record can be saved as a page; so are the icons and the manifest. The build fails on an inline script: the server's content
 * security policy would block it.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Plugin, Rollup } from "vite";

import { licenseComment } from "./licenses";

const PAGES = [
  ["app.html", "index.html"],
  ["docs.html", "docs.html"],
] as const;
const LOOK = fileURLToPath(new URL("../../src/attendo/inspection/static/look.html", import.meta.url));

/** Browsers ask for `favicon.ico` by this name; the others are named by the manifest. */
const ICONS_DIR = new URL("../icons/", import.meta.url);
const ICONS = { "favicon.ico": "favicon.ico", "app/icon-192.png": "icon-192.png", "app/icon-512.png": "icon-512.png" };
const MANIFEST_LINKS =
  '<link rel="manifest" href="./app/manifest.webmanifest" /><link rel="apple-touch-icon" href="./app/icon-192.png" /><meta name="theme-color" content="#1d56b0" />';
/** With it browsers offer to install the page; its paths are relative to `app/`. */
const MANIFEST = {
  name: "Attendo",
  short_name: "Attendo",
  description: "Translate, inspect the model, watch its training",
  start_url: "../",
  scope: "../",
  display: "standalone",
  background_color: "#fbfaf7",
  theme_color: "#1d56b0",
  icons: [192, 512].map((size) => ({ src: `icon-${size}.png`, sizes: `${size}x${size}`, type: "image/png" })),
};

export function appFiles(): Plugin {
  return {
    name: "attendo-app-files",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.values(bundle);
      for (const [source, target] of PAGES) {
        const page = files.find((file) => file.fileName === source) as Rollup.OutputAsset;
        checkPage(target, String(page.source));
        page.fileName = target;
        const links = target === "index.html" ? MANIFEST_LINKS : "";
        page.source = String(page.source).replace("</head>", () => `${links}${licenseComment(chunksOf(page, bundle))}</head>`);
      }
      for (const [fileName, icon] of Object.entries(ICONS)) this.emitFile({ type: "asset", fileName, source: readFileSync(new URL(icon, ICONS_DIR)) });
      this.emitFile({ type: "asset", fileName: "app/manifest.webmanifest", source: JSON.stringify(MANIFEST) });
      // A template for downloads; served from here, its inline script would be blocked.
      this.emitFile({ type: "asset", fileName: "app/look.html", source: readFileSync(LOOK, "utf8") });
    },
  };
}

/** Return the chunks that a page loads, directly or through another one. */
function chunksOf(page: Rollup.OutputAsset, bundle: Rollup.OutputBundle): Rollup.OutputChunk[] {
  const found = new Map<string, Rollup.OutputChunk>();
  const add = (name: string): void => {
    const chunk = bundle[name];
    if (chunk?.type !== "chunk" || found.has(name)) return;
    found.set(name, chunk);
    [...chunk.imports, ...chunk.dynamicImports].forEach(add);
  };
  Object.keys(bundle)
    .filter((name) => String(page.source).includes(name))
    .forEach(add);
  return [...found.values()];
}

function checkPage(name: string, html: string): void {
  if (/<script(?![^>]* src=)|\son\w+="/.test(html)) throw new Error(`${name}: contains an inline script`);
  const outside = /(?:src|href)="(?!\.\/app\/)[^"]*"/.exec(html);
  if (outside) throw new Error(`${name}: ${outside[0]} is not below ./app/`);
}
