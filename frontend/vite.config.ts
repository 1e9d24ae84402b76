import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

import { singleFile } from "./plugins/single-file";

export default defineConfig({
  base: "./",
  plugins: [svelte(), singleFile()],
  build: {
    target: "es2022",
    outDir: "../src/attendo/inspection/static",
    emptyOutDir: false,
    rollupOptions: { input: "look.html" },
  },
});
