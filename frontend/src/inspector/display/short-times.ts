/** Short forms of times for axes. */

const DAY = /^\d{4}-(\d{2}-\d{2})([T ]|$)/;

/** Shorten times: without the year, and without the time of day where all are midnight. */
export function shortTimes(times: readonly string[]): string[] {
  if (!times.every((time) => DAY.test(time))) return [...times];
  const isDaily = times.every((time) => /^\d{4}-\d{2}-\d{2}([T ]00:00(:00(\.0+)?)?Z?)?$/.test(time));
  return times.map((time) => (isDaily ? time.slice(5, 10) : `${time.slice(5, 10)} ${time.slice(11, 16)}`.trim()));
}
