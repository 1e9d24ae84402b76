/** Numbers as the pages show them. */

/** A share with two digits: 0.83; one that would be rounded to zero is shown as <0.01. */
export function share(value: number): string {
  if (value > 0 && value < 0.005) return "<0.01";
  return value.toFixed(2);
}

/** A share for narrow cells: .83, 1; empty where it would be .00. */
export function shortShare(value: number): string {
  if (value < 0.005) return "";
  return value.toFixed(2).replace(/^0/, "").replace(/^1\.00$/, "1");
}

/** A number with a sign; a real minus sign is as wide as a plus, so that columns line up. */
export function signed(value: number, digits = 2): string {
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "−" : "+") + text;
}

/** A score or log-probability. */
export function score(value: number, digits = 3): string {
  return value.toFixed(digits).replace("-", "−");
}

export function percent(value: number): string {
  if (value > 0 && value < 0.001) return "<0.1%";
  return `${(100 * value).toFixed(1)}%`;
}

/** A number of parameters: 918528 -> 0.92 M. */
export function parameters(value: number): string {
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)} B`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)} M`;
  return value >= 1e4 ? `${(value / 1e6).toFixed(2)} M` : String(value);
}

/** A number in three significant digits, as short as possible: 0.00123, 3.41, 12.9k. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  if (size >= 1000) return String(Math.round(value));
  if (size >= 1e-4) return String(Number(value.toPrecision(3)));
  return value.toExponential(1);
}
