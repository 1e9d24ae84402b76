/** How a cell of a product of matrices is computed, number by number. */

import { formatLessonNumber } from "./numbers";
import type { Product } from "./schemas";

/** Of longer sums only the largest terms are spelled out. */
const MAX_TERMS = 8;

/** Return a cell as a sum, such as `1 · 2 + (-1) · 3 + 4 = 3`; of many terms the largest, with "…" for the others. */
export function spellProduct({ left, right, plus }: Product, row: number, column: number, digits: number): string {
  const number = (value: number) => formatLessonNumber(value, digits);
  const signed = (value: number) => (value < 0 ? `(${number(value)})` : number(value));
  const terms = left[row].map((factor, index) => [factor, right[index][column]]);
  const sizes = terms.map(([a, b]) => Math.abs(a * b));
  const bySize = [...sizes.keys()].sort((one, other) => sizes[other] - sizes[one]);
  const largest = new Set(bySize.slice(0, MAX_TERMS).filter((index) => terms.length <= MAX_TERMS || sizes[index]));
  const shown = terms.filter((_, index) => largest.has(index)).map(([a, b]) => `${signed(a)} · ${signed(b)}`);
  if (sizes.some((size, index) => size && !largest.has(index))) shown.push("…");
  if (plus) shown.push(signed(plus[column]));
  const value = terms.reduce((total, [a, b]) => total + a * b, plus?.[column] ?? 0);
  return `${shown.join(" + ")} = ${number(value)}`;
}
