import { existsSync } from "node:fs";

import { defineConfig } from "@playwright/test";

/** The system's own Chromium, or else the one that `npx playwright install chromium` has fetched. */
const SYSTEM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const own = existsSync(SYSTEM) ? { executablePath: SYSTEM } : {};
const OFFLINE = [
  "--no-sandbox",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-default-apps",
  "--disable-domain-reliability",
  "--disable-sync",
  "--metrics-recording-only",
  "--no-pings",
];

export default defineConfig({
  testDir: "e2e",
  outputDir: "node_modules/.e2e",
  workers: 1,
  forbidOnly: true,
  // Dots, so that what failed is not lost below a list of what did not.
  reporter: process.env.CI ? "dot" : "list",
  // A busy machine may make a browser late once; what passes only then is told as flaky.
  retries: process.env.CI ? 1 : 0,
  timeout: 30_000,
  use: { browserName: "chromium", locale: "en-US", colorScheme: "light", viewport: { width: 1280, height: 900 }, launchOptions: { ...own, args: OFFLINE } },
});
