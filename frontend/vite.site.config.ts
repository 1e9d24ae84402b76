/** The page of `attendo export --to web`: static files for any web server. */

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

import { siteFiles } from "./plugins/site-files";

export default defineConfig({
  base: "./",
  plugins: [svelte(), siteFiles()],
  worker: { format: "iife" }, // a page that is opened from the disk cannot start a worker that is a module
  build: {
    target: "es2022",
    outDir: "../src/attendo/interop/web/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: "site.html" },
  },
});
