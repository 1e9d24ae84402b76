/** The web application: an index and files beside it, for a server with a strict content security policy. */

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

import { appFiles } from "./plugins/app-files";

export default defineConfig({
  base: "./",
  plugins: [svelte(), appFiles()],
  build: {
    target: "es2022",
    outDir: "../src/attendo/serving/static",
    emptyOutDir: true,
    // `/` is the index, `/app/` everything else: the API has the other paths.
    assetsDir: "app/assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: "app.html" },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8765", "/translate_file": "http://127.0.0.1:8765", "/download_file": "http://127.0.0.1:8765" } },
});
