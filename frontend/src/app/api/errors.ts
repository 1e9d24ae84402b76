/** What can go wrong between the page and the server; the page says it in the reader's language. */

export const TROUBLES = ["offline", "busy", "rate", "timeout", "key", "large", "bad", "missing", "internal", "shape"] as const;
export type Trouble = (typeof TROUBLES)[number];

const BY_STATUS: Record<number, Trouble> = {
  401: "key",
  403: "key",
  404: "missing",
  405: "missing",
  408: "timeout",
  413: "large",
  429: "rate",
  502: "offline",
  503: "busy",
  504: "timeout",
};

export class ApiError extends Error {
  constructor(
    readonly trouble: Trouble,
    /** The server's own words, or what was wrong with them; empty where there are none. */
    readonly said: string,
    /** Seconds after which the server wants to be asked again. */
    readonly retryAfter: number | null = null,
  ) {
    super(`${trouble}: ${said}`);
    this.name = "ApiError";
  }

  /** Whether waiting alone may mend it. */
  get passes(): boolean {
    return this.trouble === "busy" || this.trouble === "rate" || this.trouble === "offline";
  }
}

export function troubleOf(status: number): Trouble {
  return BY_STATUS[status] ?? (status >= 500 ? "internal" : "bad");
}

/** Retry-After in seconds: a number, or a date as proxies write it. */
export function readRetryAfter(header: string | null, now = Date.now()): number | null {
  if (header === null) return null;
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
