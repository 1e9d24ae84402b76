/** Numbers as the page says them. */

/** A share: 0.83; what is small but not nothing says so. */
export function share(value: number): string {
  if (value > 0 && value < 0.005) return "<0.01";
  return value.toFixed(2);
}

/** A share in little room: .83, 1; nothing for what would read .00. */
export function tinyShare(value: number): string {
  if (value < 0.005) return "";
  return value.toFixed(2).replace(/^0/, "").replace(/^1\.00$/, "1");
}

/** A number with a true minus sign, so that columns line up. */
export function signed(value: number, digits = 2): string {
  const said = Math.abs(value).toFixed(digits);
  if (Number(said) === 0) return said;
  return (value < 0 ? "−" : "+") + said;
}

/** A score or log-probability. */
export function score(value: number, digits = 3): string {
  return value.toFixed(digits).replace("-", "−");
}

export function percent(value: number): string {
  if (value > 0 && value < 0.001) return "<0.1%";
  return `${(100 * value).toFixed(1)}%`;
}

/** 918528 -> 0.92 M. */
export function parameters(value: number): string {
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)} B`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)} M`;
  return value >= 1e4 ? `${(value / 1e6).toFixed(2)} M` : String(value);
}
