/** Numbers as the lessons show them everywhere: the counterpart of the number formatting in `attendo.lessons`, digit for digit. */

import type { Cell, ChartBlock } from "./schemas";

const MAX_INTEGER = 1e15;
/** Enough extra digits to recognize a number that is exactly half-way between two roundings. */
const EXTRA_DIGITS = 25;
/** From here on `toFixed` uses exponents. */
const MAX_FIXED = 1e21;
const MIN_CHART_DIGITS = 4;

/** Format a number: integers without decimals, small numbers with an exponent. */
export function formatLessonNumber(value: number, digits: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const size = Math.abs(value);
  if (Number.isInteger(size) && size < MAX_INTEGER) return sign + groupThousands(size.toFixed(0));
  return sign + (size < Number(`1e-${digits}`) ? formatExponential(size) : groupThousands(formatFixed(size, digits)));
}

/** Format a number for a narrow cell: without an exponent, so that it never runs into the next cell. */
export function formatBriefly(value: number, digits: number): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return formatLessonNumber(value, digits);
  return value.toFixed(digits).replace(/^-(?=[0.]*$)/, "");
}

/** Format a cell of a table: empty for null, strings unchanged. */
export function formatCell(value: Cell, digits: number): string {
  if (value === null) return "";
  return typeof value === "string" ? value : formatLessonNumber(Number(value), digits);
}

/** Format a number with more digits, for the cell under the pointer. */
export function formatPrecisely(value: number): string {
  const text = String(Number(value.toPrecision(8)));
  return text.includes("e") ? text : groupThousands(text);
}

/** The number of decimals with which the values of a chart have three significant digits. */
export function digitsOf(series: ChartBlock["series"]): number {
  const largest = series.flatMap(({ values }) => values).reduce<number>((a, b) => Math.max(a, Math.abs(b ?? 0)), 0);
  return largest > 0 ? Math.max(MIN_CHART_DIGITS, 2 + Math.ceil(-Math.log10(largest))) : MIN_CHART_DIGITS;
}

function formatFixed(size: number, digits: number): string {
  if (size >= MAX_FIXED) return `${BigInt(size)}${digits ? `.${"0".repeat(digits)}` : ""}`;
  return roundHalfToEven(size.toFixed(digits), size.toFixed(digits + EXTRA_DIGITS));
}

/** Format as `7.61e-05`. */
function formatExponential(size: number): string {
  const [rounded, power] = size.toExponential(2).split("e");
  const [exact, exactPower] = size.toExponential(2 + EXTRA_DIGITS).split("e");
  const mantissa = power === exactPower ? roundHalfToEven(rounded, exact) : rounded;
  return `${mantissa}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/** JavaScript rounds half up, Python rounds half to even. */
function roundHalfToEven(rounded: string, exact: string): string {
  const truncated = exact.slice(0, -EXTRA_DIGITS).replace(/\.$/, "");
  const isHalf = /^50*$/.test(exact.slice(-EXTRA_DIGITS));
  return isHalf && Number(truncated.at(-1)) % 2 === 0 ? truncated : rounded;
}

function groupThousands(number: string): string {
  const [whole, decimals] = number.split(".");
  const grouped = whole.replace(/(?<=\d)(?=(\d{3})+$)/g, ",");
  return decimals === undefined ? grouped : `${grouped}.${decimals}`;
}
