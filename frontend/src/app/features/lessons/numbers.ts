/** Numbers as the lessons write them in every outlet: the twin of `attendo/lessons/numbers.py`, to the letter. */

const LARGEST_WHOLE = 1e15;
/** A number that is half-way shows it within these digits; one that is not differs earlier. */
const SPARE = 25;
/** From here on `toFixed` writes powers. */
const LARGEST_FIXED = 1e21;

/** Write a number; whole ones without a point, small ones by their power. */
export function writeNumber(value: number, digits: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const size = Math.abs(value);
  if (Number.isInteger(size) && size < LARGEST_WHOLE) return sign + inThousands(size.toFixed(0));
  return sign + (size < Number(`1e-${digits}`) ? byPower(size) : inThousands(fixed(size, digits)));
}

/** What stands in a table: nothing, a number, or a label as it is. */
export function writeCell(value: string | number | boolean | null, digits: number): string {
  if (value === null) return "";
  return typeof value === "string" ? value : writeNumber(Number(value), digits);
}

/** More digits than the eye needs, for whoever points at a number. */
export function writeExactly(value: number): string {
  const text = String(Number(value.toPrecision(8)));
  return text.includes("e") ? text : inThousands(text);
}

function fixed(size: number, digits: number): string {
  if (size >= LARGEST_FIXED) return `${BigInt(size)}${digits ? `.${"0".repeat(digits)}` : ""}`;
  return halfToEven(size.toFixed(digits), size.toFixed(digits + SPARE));
}

/** As `7.61e-05`. */
function byPower(size: number): string {
  const [rounded, power] = size.toExponential(2).split("e");
  const [exact, exactPower] = size.toExponential(2 + SPARE).split("e");
  const mantissa = power === exactPower ? halfToEven(rounded, exact) : rounded;
  return `${mantissa}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/** Browsers round what is half-way up, Python to the even digit. */
function halfToEven(rounded: string, exact: string): string {
  const cut = exact.slice(0, -SPARE).replace(/\.$/, "");
  const isHalf = /^50*$/.test(exact.slice(-SPARE));
  return isHalf && Number(cut.at(-1)) % 2 === 0 ? cut : rounded;
}

function inThousands(number: string): string {
  const [whole, rest] = number.split(".");
  const grouped = whole.replace(/(?<=\d)(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}
