/** What a learner may change: values, how they are spelt in an address, what is wrong with them. */

import type { GridInput, Input, NumberInput, TextInput, Value } from "./types";
import type { LessonKey } from "../../../i18n/lessons";

export type Values = Record<string, Value>;
export type Spelt = Readonly<Record<string, string>>;

export interface Problem {
  key: LessonKey;
  parameters?: Record<string, string | number>;
}

/** A number out of a field; null for what is none. A comma is no point: it stands for thousands. */
export function parseNumber(text: string): number | null {
  const plain = text.trim().replace("−", "-");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return null;
  const value = Number(plain);
  return Number.isFinite(value) ? value : null;
}

/** What is wrong with a number in a field; null for nothing. */
export function numberProblem(text: string, { low, high, step = null }: { low: number; high: number; step?: number | null }): Problem | null {
  const value = parseNumber(text);
  if (value === null) return { key: "problem.number" };
  if (value < low || value > high) return { key: "problem.range", parameters: { low, high } };
  return step !== null && Number.isInteger(step) && !Number.isInteger(value) ? { key: "problem.whole" } : null;
}

export function textProblem(text: string, { most }: Pick<TextInput, "most">): Problem | null {
  const isFit = text.trim() !== "" && [...text].length <= most;
  return isFit ? null : { key: "problem.text", parameters: { most } };
}

/** Write a value into an address. */
export function spellValue(value: Value): string {
  if (Array.isArray(value)) return value.map((row) => row.join(" ")).join("_");
  return typeof value === "boolean" ? (value ? "1" : "0") : String(value);
}

/** Read a value out of an address; null for one that cannot be used. */
export function parseValue(input: Input, spelt: string): Value | null {
  switch (input.kind) {
    case "number":
      return numberFor(input, spelt);
    case "grid":
      return parseGrid(input, spelt);
    case "switch":
      return spelt === "1" ? true : spelt === "0" ? false : null;
    case "choice":
      return input.choices.some(([key]) => key === spelt) ? spelt : null;
    case "text":
      return textProblem(spelt, input) ? null : spelt.trim();
  }
}

function numberFor(input: Pick<NumberInput, "low" | "high"> & { step?: number }, text: string): number | null {
  return numberProblem(text, input) ? null : parseNumber(text);
}

function parseGrid({ default: usual, low, high }: GridInput, spelt: string): number[][] | null {
  const rows = spelt.split("_").map((row) => row.split(" ").map((cell) => numberFor({ low, high }, cell)));
  const isFit = rows.length === usual.length && rows.every((row, at) => row.length === usual[at].length && !row.includes(null));
  return isFit ? (rows as number[][]) : null;
}

/** Every value: of the address, or as it always is. */
export function readValues(inputs: readonly Input[], spelt: Spelt): Values {
  return Object.fromEntries(inputs.map((input) => [input.name, (Object.hasOwn(spelt, input.name) ? parseValue(input, spelt[input.name]) : null) ?? input.default]));
}

/** Only what differs from what it always is: what the server is told, and what an address holds. */
export function changedValues(inputs: readonly Input[], values: Values): Values {
  const changed = inputs.filter((input) => spellValue(values[input.name]) !== spellValue(input.default));
  return Object.fromEntries(changed.map(({ name }) => [name, values[name]]));
}

/** The address of some values; what is no input stays as it is. */
export function spellValues(inputs: readonly Input[], values: Values, spelt: Spelt): Spelt {
  const names = new Set(inputs.map(({ name }) => name));
  const others = Object.entries(spelt).filter(([name]) => !names.has(name));
  const changed = Object.entries(changedValues(inputs, values)).map(([name, value]) => [name, spellValue(value)] as const);
  return Object.fromEntries([...changed, ...others]);
}

/** Sort the server's reasons to the inputs they name; the rest is nobody's. Over HTTP its lines come as one. */
export function sortReasons(said: string, inputs: readonly Input[]): { at: Record<string, string>; rest: string } {
  const [head, ...reasons] = said.split(/\s{2,}- /);
  if (!reasons.length) return { at: {}, rest: head.trim() };
  const at: Record<string, string> = {};
  const rest: string[] = [];
  for (const one of reasons) {
    const [, name = "", reason = ""] = /^(\w+): (.+)$/s.exec(one.trim()) ?? [];
    if (inputs.some((input) => input.name === name)) at[name] = reason;
    else rest.push(one.trim());
  }
  return { at, rest: rest.join(" ") };
}
