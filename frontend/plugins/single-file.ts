/**
 * A Vite plugin: writes the page and everything it needs into one file that opens without a server.
 *
 * Scripts and styles are inlined, the licenses of the bundled packages are added as a comment, and the build fails
 * if anything is left outside or if the placeholder of the record does not occur exactly once. With its content
 * security policy the page loads nothing, sends nothing and runs no script but its own, whatever an untrusted record
 * contains.
 */

import { createHash } from "node:crypto";

import type { Plugin, Rollup } from "vite";

import { licenseComment } from "./licenses";

export const PLACEHOLDER = "__ATTENDO_RECORD__";

export function singleFile(): Plugin {
  return {
    name: "attendo-single-file",
    enforce: "post",
    config: () => ({
      build: { assetsInlineLimit: Number.MAX_SAFE_INTEGER, cssCodeSplit: false, modulePreload: false },
    }),
    generateBundle(_, bundle) {
      const pages = Object.values(bundle).filter((file) => file.fileName.endsWith(".html"));
      for (const page of pages as Rollup.OutputAsset[]) {
        page.source = pack(String(page.source), bundle);
        checkPage(page);
      }
    },
  };
}

function pack(html: string, bundle: Rollup.OutputBundle): string {
  const scripts: string[] = [];
  const styles: string[] = [];
  const chunks: Rollup.OutputChunk[] = [];
  for (const [name, file] of Object.entries(bundle)) {
    if (file.type === "chunk") {
      scripts.push(file.code.replaceAll("</script", "<\\/script"));
      chunks.push(file);
    } else if (name.endsWith(".css")) {
      styles.push(String(file.source));
    } else {
      continue;
    }
    Reflect.deleteProperty(bundle, name);
  }
  const script = scripts.join("");
  const bare = html.replace(/<script[^>]* src="[^"]*"[^>]*><\/script>|<link[^>]* href="[^"]*\.css"[^>]*>/g, "");
  return bare
    .replace('<meta charset="utf-8" />', (charset) => charset + policy(script))
    .replace("</head>", () => `<style>${styles.join("")}</style>${licenseComment(chunks)}</head>`)
    .replace("</body>", () => `<script type="module">${script}</script></body>`);
}

function policy(script: string): string {
  const hash = createHash("sha256").update(script).digest("base64");
  const rules = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;
  return `<meta http-equiv="Content-Security-Policy" content="${rules}" />`;
}

function checkPage(page: Rollup.OutputAsset): void {
  const html = String(page.source);
  const count = html.split(PLACEHOLDER).length - 1;
  if (count !== 1) throw new Error(`${page.fileName}: ${PLACEHOLDER} occurs ${count} times, not once`);
  const outside = /<(?:script|link|img)[^>]+(?:src|href)="(?!data:|#)[^"]*"/.exec(html.replace(/<script type="module">[^]*?<\/script>/, ""));
  if (outside) throw new Error(`${page.fileName}: left outside: ${outside[0]}`);
}
