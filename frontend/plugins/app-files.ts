/**
 * A Vite plugin: writes the files of the application as the server delivers them.
 *
 * The page becomes `index.html`, with the licenses of the bundled packages. The offline inspector (built before) is
 * included, so that a record can be saved as a page. The build fails on an inline script: the server's content
 * security policy would block it.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Plugin, Rollup } from "vite";

import { licenseComment } from "./licenses";

const LOOK = fileURLToPath(new URL("../../src/attendo/inspection/static/look.html", import.meta.url));

export function appFiles(): Plugin {
  return {
    name: "attendo-app-files",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.values(bundle);
      const page = files.find((file) => file.fileName === "app.html") as Rollup.OutputAsset;
      checkPage(String(page.source));
      page.fileName = "index.html";
      page.source = String(page.source).replace("</head>", () => `${licenseComment(files.filter((file) => file.type === "chunk"))}</head>`);
      // A template for downloads; served from here, its inline script would be blocked.
      this.emitFile({ type: "asset", fileName: "app/look.html", source: readFileSync(LOOK, "utf8") });
    },
  };
}

function checkPage(html: string): void {
  if (/<script(?![^>]* src=)|\son\w+="/.test(html)) throw new Error("index.html: contains an inline script");
  const outside = /(?:src|href)="(?!\.\/app\/)[^"]*"/.exec(html);
  if (outside) throw new Error(`index.html: ${outside[0]} is not below ./app/`);
}
