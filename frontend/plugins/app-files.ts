/**
 * A Vite plugin: the application's files as the server gives them out.
 *
 * The page becomes `index.html`, with the licenses of what was built in; the look-inside page (built
 * before) lies beside it, so that a record can be kept as a page. The build stops at a script inside the page: the
 * server's content security policy would not let it run.
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
      refuse(String(page.source));
      page.fileName = "index.html";
      page.source = String(page.source).replace("</head>", () => `${licenseComment(files.filter((file) => file.type === "chunk"))}</head>`);
      // To be filled and kept; opened at its address here, its inner script would not run.
      this.emitFile({ type: "asset", fileName: "app/look.html", source: readFileSync(LOOK, "utf8") });
    },
  };
}

function refuse(html: string): void {
  if (/<script(?![^>]* src=)|\son\w+="/.test(html)) throw new Error("index.html: a script stands inside the page");
  const outside = /(?:src|href)="(?!\.\/app\/)[^"]*"/.exec(html);
  if (outside) throw new Error(`index.html: ${outside[0]} is not below ./app/`);
}
