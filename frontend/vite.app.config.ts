/** The web application: an index page and separate files, for a server with a strict content security policy. */

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
    // `/` is the index page, `/docs` the page of the API, `/app/` has all other files: the other paths belong to the API.
    assetsDir: "app/assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The page of the API is large, and loaded only there.
    chunkSizeWarningLimit: 1800,
    rollupOptions: { input: ["app.html", "docs.html"] },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8765", "/translate_file": "http://127.0.0.1:8765", "/download_file": "http://127.0.0.1:8765" } },
});
