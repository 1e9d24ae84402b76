/** What can go wrong between the page and the server; the page explains each kind in the user's language. */

export const ERROR_KINDS = ["offline", "busy", "rate", "timeout", "key", "large", "bad", "missing", "internal", "shape"] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

const KIND_BY_STATUS: Record<number, ErrorKind> = {
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
    readonly kind: ErrorKind,
    /** The server's message, or what is wrong with its response; empty where there is none. */
    readonly detail: string,
    /** Seconds after which the server accepts another request. */
    readonly retryAfter: number | null = null,
  ) {
    super(`${kind}: ${detail}`);
    this.name = "ApiError";
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    return this.kind === "busy" || this.kind === "rate" || this.kind === "offline";
  }
}

export function errorKindOf(status: number): ErrorKind {
  return KIND_BY_STATUS[status] ?? (status >= 500 ? "internal" : "bad");
}

/** Parse Retry-After into seconds: a number, or a date as proxies write it. */
export function parseRetryAfter(header: string | null, now = Date.now()): number | null {
  if (header === null) return null;
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
