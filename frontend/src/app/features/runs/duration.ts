/** Durations in words, no more exact than they are useful. */

const MAX_SECONDS = 90;
const MAX_MINUTES = 90;

export function formatDuration(seconds: number, lang: string): string {
  const minutes = seconds / 60;
  if (seconds < MAX_SECONDS) return format(seconds, "second", lang);
  return minutes < MAX_MINUTES ? format(minutes, "minute", lang) : format(minutes / 60, "hour", lang, 1);
}

function format(value: number, unit: string, lang: string, maximumFractionDigits = 0): string {
  return new Intl.NumberFormat(lang, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits }).format(value);
}
