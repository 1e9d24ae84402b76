import { existsSync } from "node:fs";

import { defineConfig } from "@playwright/test";

/** The Chromium of the system, or else the one that `npx playwright install chromium` has installed. */
const SYSTEM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = existsSync(SYSTEM) ? { executablePath: SYSTEM } : {};
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
  outputDir: process.env.E2E_OUTPUT ?? "node_modules/.e2e",
  // Every test has its own page and its own mocked server, so that they can run in any order.
  fullyParallel: true,
  workers: Number(process.env.E2E_WORKERS ?? 2),
  forbidOnly: true,
  // Dots in CI, so that failures are not lost in a list of all tests.
  reporter: process.env.CI ? "dot" : "list",
  // On a busy machine a browser may be late once; a test that passes only then is reported as flaky.
  retries: process.env.CI ? 1 : 0,
  timeout: 30_000,
  use: { browserName: "chromium", locale: "en-US", colorScheme: "light", viewport: { width: 1280, height: 900 }, launchOptions: { ...browser, args: OFFLINE } },
});
