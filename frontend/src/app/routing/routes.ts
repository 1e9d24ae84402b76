/** Routes: the part of the URL after `#`, as in `#/translate?q=...`. A URL holds everything that its screen shows. */

import { type Tab, TABS } from "../../inspector/state/tabs";

/** A query parameter: left out of the URL while it has its default value. */
interface Param<T> {
  default: T;
  /** Null for a value that is not valid: the default is used. */
  parse: (text: string) => T | null;
}

const text: Param<string> = { default: "", parse: (found) => found };
const optionalText: Param<string | null> = { default: null, parse: (found) => found };
const flag: Param<boolean> = { default: false, parse: (found) => found === "1" };
const count: Param<number | null> = { default: null, parse: (found) => (/^\d{1,15}$/.test(found) ? Number(found) : null) };

function numberParam(fallback: number, isValid: (value: number) => boolean): Param<number> {
  return { default: fallback, parse: (found) => (isValid(Number(found)) ? Number(found) : null) };
}

export const BEAMS = [1, 4, 8] as const;
const DEFAULT_BEAM = 4;
const DEFAULT_TEMPERATURE = 0.8;
const tab: Param<Tab> = { default: TABS[0], parse: (found) => TABS.find((name) => name === found) ?? null };

const PARAMS = {
  translate: {
    model: text,
    beam: numberParam(DEFAULT_BEAM, (beam) => (BEAMS as readonly number[]).includes(beam)),
    q: text,
    /** The start of the translation that the user has fixed. */
    prefix: text,
    /** The kind of translation, e.g. polite; empty: the model chooses. */
    label: text,
    /** A glossary that came with a link; null: the one stored in this browser. */
    glossary: optionalText,
    /** The target of a translation in two steps, of which `model` is the first. */
    to: text,
    /** Whether the server detects the language of the text, which then chooses the model. */
    detect: flag,
  },
  /** `data`: the rows of a series as CSV. */
  forecast: { model: text, data: text },
  generate: {
    model: text,
    temperature: numberParam(DEFAULT_TEMPERATURE, (value) => value >= 0.1 && value <= 2),
    seed: numberParam(1, (seed) => Number.isInteger(seed) && seed > 0 && seed < 2 ** 31),
    q: text,
  },
  inspect: {
    model: text,
    beam: numberParam(DEFAULT_BEAM, (beam) => (BEAMS as readonly number[]).includes(beam)),
    tab,
    /** Which sentence of the text is explained, counted from 1. */
    sentence: numberParam(1, (sentence) => Number.isInteger(sentence) && sentence > 0),
    attribution: flag,
    ablation: flag,
    q: text,
    /** A translation to explain; empty: the model's own. */
    target: text,
    /** The rows of a series as CSV, instead of a sentence. */
    data: text,
  },
  runs: {
    log: flag,
    /** The step whose samples are shown; null: the newest. */
    at: count,
    /** The curves are drawn over minutes instead of steps. */
    time: flag,
    /** The share of the last value in the moving average of the loss. */
    smooth: numberParam(0, (value) => value >= 0 && value < 1),
    /** The names of the runs that are compared, separated by line breaks. */
    compare: text,
    search: text,
  },
  lessons: {},
};

export type Page = keyof typeof PARAMS;
export const PAGES = Object.keys(PARAMS) as Page[];

type Values<P extends Page> = { [name in keyof (typeof PARAMS)[P]]: (typeof PARAMS)[P][name] extends Param<infer T> ? T : never };
interface Extra {
  runs: { name: string };
  /** `inputs`: the inputs that the user has changed, encoded. */
  lessons: { lesson: string; inputs: Readonly<Record<string, string>> };
}
export type RouteOf<P extends Page> = { page: P } & Values<P> & (P extends keyof Extra ? Extra[P] : unknown);

export type TranslateRoute = RouteOf<"translate">;
export type ForecastRoute = RouteOf<"forecast">;
export type GenerateRoute = RouteOf<"generate">;
export type InspectRoute = RouteOf<"inspect">;
export type RunsRoute = RouteOf<"runs">;
export type LessonsRoute = RouteOf<"lessons">;
export interface NotFoundRoute {
  page: "notFound";
  path: string;
}
export type Route = { [P in Page]: RouteOf<P> }[Page] | NotFoundRoute;

/** Return the route of a page; what is not given has its default value. */
export function routeTo<P extends Page>(page: P, values: Partial<Omit<RouteOf<P>, "page">> = {}): RouteOf<P> {
  const defaults = Object.fromEntries(paramsOf(page).map(([name, param]) => [name, param.default]));
  const extra = page === "runs" ? { name: "" } : page === "lessons" ? { lesson: "", inputs: {} } : {};
  return { page, ...defaults, ...extra, ...values } as unknown as RouteOf<P>;
}

export function hrefTo<P extends Page>(page: P, values: Partial<Omit<RouteOf<P>, "page">> = {}): string {
  return formatRoute(routeTo(page, values) as Route);
}

/** Parse the part of a URL from `#` on. */
export function parseRoute(hash: string): Route {
  const [, path = "", query = ""] = /^#?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  const [name = "translate", ...segments] = path.split("/").filter(Boolean);
  const page = PAGES.find((known) => known === name);
  if (!page || segments.length > 1) return { page: "notFound", path };
  const found = new URLSearchParams(query);
  const segment = decode(segments[0] ?? "");
  if (page === "lessons") return routeTo(page, { lesson: segment, inputs: Object.fromEntries(found) });
  const values = paramsOf(page).map(([param, { default: fallback, parse }]) => {
    const given = found.get(param);
    return [param, (given === null ? null : parse(given)) ?? fallback];
  });
  return routeTo(page, { ...Object.fromEntries(values), ...(page === "runs" ? { name: segment } : {}) }) as Route;
}

export function formatRoute(route: Route): string {
  if (route.page === "notFound") return `#${route.path}`;
  const segment = route.page === "runs" ? route.name : route.page === "lessons" ? route.lesson : "";
  const query = new URLSearchParams(route.page === "lessons" ? Object.entries(route.inputs).filter(([, value]) => value) : queryOf(route));
  return `#/${route.page}${segment && `/${encodeURIComponent(segment)}`}${query.size ? `?${query.toString()}` : ""}`;
}

function queryOf(route: Route): string[][] {
  const values = route as unknown as Record<string, unknown>;
  return paramsOf(route.page as Page)
    .filter(([name, param]) => values[name] !== param.default)
    .map(([name]) => [name, values[name] === true ? "1" : String(values[name])]);
}

function paramsOf(page: Page): [string, Param<unknown>][] {
  return Object.entries(PARAMS[page]);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
