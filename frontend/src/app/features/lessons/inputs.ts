/** The inputs of a lesson: their values, how these are encoded in the URL, and what is wrong with them. */

import type { AppKey } from "../../../i18n/app";
import type { GridInput, Input, NumberInput, TextInput, Value } from "./schemas";

export type Values = Record<string, Value>;
export type EncodedInputs = Readonly<Record<string, string>>;

export interface InputProblem {
  key: AppKey;
  parameters?: Record<string, string | number>;
}

/** Parse a number from a field; null for anything else. A comma is not a decimal point: it separates thousands. */
export function parseNumber(text: string): number | null {
  const plain = text.trim().replace("−", "-");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return null;
  const value = Number(plain);
  return Number.isFinite(value) ? value : null;
}

/** What is wrong with the number in a field; null for nothing. */
export function numberProblem(text: string, { low, high, step = null }: { low: number; high: number; step?: number | null }): InputProblem | null {
  const value = parseNumber(text);
  if (value === null) return { key: "problem.number" };
  if (value < low || value > high) return { key: "problem.range", parameters: { low, high } };
  return step !== null && Number.isInteger(step) && !Number.isInteger(value) ? { key: "problem.whole" } : null;
}

export function textProblem(text: string, { most }: Pick<TextInput, "most">): InputProblem | null {
  const isValid = text.trim() !== "" && [...text].length <= most;
  return isValid ? null : { key: "problem.text", parameters: { most } };
}

export function encodeValue(value: Value): string {
  if (Array.isArray(value)) return value.map((row) => row.join(" ")).join("_");
  return typeof value === "boolean" ? (value ? "1" : "0") : String(value);
}

/** Decode a value from the URL; null for one that is not valid. */
export function decodeValue(input: Input, encoded: string): Value | null {
  switch (input.kind) {
    case "number":
      return decodeNumber(input, encoded);
    case "grid":
      return decodeGrid(input, encoded);
    case "switch":
      return encoded === "1" ? true : encoded === "0" ? false : null;
    case "choice":
      return input.choices.some(([key]) => key === encoded) ? encoded : null;
    case "text":
      return textProblem(encoded, input) ? null : encoded.trim();
  }
}

function decodeNumber(input: Pick<NumberInput, "low" | "high"> & { step?: number }, text: string): number | null {
  return numberProblem(text, input) ? null : parseNumber(text);
}

function decodeGrid({ default: shape, low, high }: GridInput, encoded: string): number[][] | null {
  const rows = encoded.split("_").map((row) => row.split(" ").map((cell) => decodeNumber({ low, high }, cell)));
  const isValid = rows.length === shape.length && rows.every((row, index) => row.length === shape[index].length && !row.includes(null));
  return isValid ? (rows as number[][]) : null;
}

/** All values: those of the URL, and defaults for the others. */
export function decodeValues(inputs: readonly Input[], encoded: EncodedInputs): Values {
  return Object.fromEntries(inputs.map((input) => [input.name, (Object.hasOwn(encoded, input.name) ? decodeValue(input, encoded[input.name]) : null) ?? input.default]));
}

/** The values that differ from their defaults: what is sent to the server, and what the URL holds. */
export function changedValues(inputs: readonly Input[], values: Values): Values {
  const changed = inputs.filter((input) => encodeValue(values[input.name]) !== encodeValue(input.default));
  return Object.fromEntries(changed.map(({ name }) => [name, values[name]]));
}

/** Encode changed values; parameters that are not inputs stay. */
export function encodeValues(inputs: readonly Input[], values: Values, encoded: EncodedInputs): EncodedInputs {
  const names = new Set(inputs.map(({ name }) => name));
  const others = Object.entries(encoded).filter(([name]) => !names.has(name));
  const changed = Object.entries(changedValues(inputs, values)).map(([name, value]) => [name, encodeValue(value)] as const);
  return Object.fromEntries([...changed, ...others]);
}

/** Assign the reasons in a message of the server to the inputs that they name. The message lists them as "  - name: reason". */
export function assignReasons(message: string, inputs: readonly Input[]): { byInput: Record<string, string>; rest: string } {
  const [head, ...reasons] = message.split(/\s{2,}- /);
  if (!reasons.length) return { byInput: {}, rest: head.trim() };
  const byInput: Record<string, string> = {};
  const rest: string[] = [];
  for (const line of reasons) {
    const [, name = "", reason = ""] = /^(\w+): (.+)$/s.exec(line.trim()) ?? [];
    if (inputs.some((input) => input.name === name)) byInput[name] = reason;
    else rest.push(line.trim());
  }
  return { byInput, rest: rest.join(" ") };
}
