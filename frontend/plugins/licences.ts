/** The licences of what was built in: they go where the code goes. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Rollup } from "vite";

const PACKAGE = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//;

/** A comment that says whose code is in these chunks, and under which words; packages with the same words share them. */
export function licenceComment(chunks: Rollup.OutputChunk[]): string {
  const licences = new Map<string, string>();
  for (const chunk of chunks) Object.keys(chunk.modules).forEach((id) => addLicence(id, licences));
  const byText = new Map<string, string[]>();
  for (const [name, text] of [...licences].sort()) byText.set(text, [...(byText.get(text) ?? []), name]);
  const parts = [...byText].map(([text, names]) => `${names.join(", ")}\n\n${text}`);
  return `<!--\nThis page contains:\n\n${parts.join("\n\n----\n\n").replaceAll("--", "- -")}\n-->`;
}

function addLicence(id: string, licences: Map<string, string>): void {
  const [, folder, name] = PACKAGE.exec(id.replace(/^\0/, "")) ?? [];
  if (!folder || !name || licences.has(name) || !existsSync(folder)) return;
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} is built into the page but has no licence file`);
  licences.set(name, readFileSync(join(folder, file), "utf8").trim());
}
