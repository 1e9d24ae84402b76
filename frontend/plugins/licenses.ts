/** Collects the licenses of the bundled packages, which must be distributed with their code. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Rollup } from "vite";

const PACKAGE = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//;

/** Return an HTML comment with the licenses of the packages in these chunks; packages with the same text share it. */
export function licenseComment(chunks: Rollup.OutputChunk[]): string {
  const licenses = new Map<string, string>();
  for (const chunk of chunks) Object.keys(chunk.modules).forEach((id) => addLicense(id, licenses));
  const byText = new Map<string, string[]>();
  for (const [name, text] of [...licenses].sort()) byText.set(text, [...(byText.get(text) ?? []), name]);
  const parts = [...byText].map(([text, names]) => `${names.join(", ")}\n\n${text}`);
  return `<!--\nThis page contains:\n\n${parts.join("\n\n----\n\n").replaceAll("--", "- -")}\n-->`;
}

function addLicense(id: string, licenses: Map<string, string>): void {
  const [, folder, name] = PACKAGE.exec(id.replace(/^\0/, "")) ?? [];
  if (!folder || !name || licenses.has(name) || !existsSync(folder)) return;
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} is bundled but has no license file`);
  licenses.set(name, readFileSync(join(folder, file), "utf8").trim());
}
