/** Addresses and what they show: `#/translate?q=...` and the others. One address, one screen. */

import { type Tab, TABS } from "../../inspector/state/tabs";

export const PAGES = ["translate", "forecast", "write", "inside", "runs", "lessons"] as const;
export type Page = (typeof PAGES)[number];

export interface TranslateRoute {
  page: "translate";
  model: string;
  q: string;
  /** The beginning that was chosen by hand. */
  prefix: string;
  beam: number;
  /** null: the reader's own. */
  glossary: string | null;
}

export interface ForecastRoute {
  page: "forecast";
  model: string;
  /** The rows of a series, as CSV. */
  data: string;
}

export interface WriteRoute {
  page: "write";
  model: string;
  /** What the texts begin with. */
  q: string;
  temperature: number;
  seed: number;
}

export interface InsideRoute {
  page: "inside";
  model: string;
  q: string;
  /** The rows of a series in place of a sentence, as CSV. */
  data: string;
  /** A translation to explain; empty: the model's own. */
  target: string;
  tab: Tab;
  ablation: boolean;
  attribution: boolean;
}

export interface RunsRoute {
  page: "runs";
  name: string;
  log: boolean;
  /** The validation whose samples are shown; null: the newest. */
  at: number | null;
}

export interface LessonsRoute {
  page: "lessons";
  lesson: string;
  /** What the learner has changed, as the lessons spell it. */
  inputs: Readonly<Record<string, string>>;
}

/** An address that leads nowhere. */
export interface LostRoute {
  page: "lost";
  path: string;
}

export type Route = TranslateRoute | ForecastRoute | WriteRoute | InsideRoute | RunsRoute | LessonsRoute | LostRoute;

export const BEAMS = [1, 4, 8] as const;
export const DEFAULT_BEAM = 4;
export const DEFAULT_TEMPERATURE = 0.8;

export const translateRoute = (change: Partial<TranslateRoute> = {}): TranslateRoute => ({
  page: "translate",
  model: "",
  q: "",
  prefix: "",
  beam: DEFAULT_BEAM,
  glossary: null,
  ...change,
});

export const forecastRoute = (change: Partial<ForecastRoute> = {}): ForecastRoute => ({ page: "forecast", model: "", data: "", ...change });

export const writeRoute = (change: Partial<WriteRoute> = {}): WriteRoute => ({ page: "write", model: "", q: "", temperature: DEFAULT_TEMPERATURE, seed: 1, ...change });

export const insideRoute = (change: Partial<InsideRoute> = {}): InsideRoute => ({
  page: "inside",
  model: "",
  q: "",
  data: "",
  target: "",
  tab: "attention",
  ablation: false,
  attribution: false,
  ...change,
});

export const runsRoute = (change: Partial<RunsRoute> = {}): RunsRoute => ({ page: "runs", name: "", log: false, at: null, ...change });

export const lessonsRoute = (lesson = "", inputs: LessonsRoute["inputs"] = {}): LessonsRoute => ({ page: "lessons", lesson, inputs });

/** Read the part of an address after `#`. */
export function parseRoute(hash: string): Route {
  const [path, query = ""] = split(hash.replace(/^#/, ""), "?");
  const [page = "", ...rest] = path.split("/").filter(Boolean);
  const found = new URLSearchParams(query);
  const readers: Record<Page, (name: string, found: URLSearchParams) => Route> = {
    translate: readTranslate,
    forecast: readForecast,
    write: readWrite,
    inside: readInside,
    runs: readRuns,
    lessons: readLessons,
  };
  if (!page) return readTranslate("", found);
  const isKnown = (PAGES as readonly string[]).includes(page) && rest.length <= 1;
  return isKnown ? readers[page as Page](decode(rest[0] ?? ""), found) : { page: "lost", path };
}

/** Write an address; what is as it always is stays out of it. */
export function formatRoute(route: Route): string {
  switch (route.page) {
    case "translate":
      return address("translate", "", spellTranslate(route));
    case "forecast":
      return address("forecast", "", { model: route.model, data: route.data });
    case "write":
      return address("write", "", spellWrite(route));
    case "inside":
      return address("inside", "", spellInside(route));
    case "runs":
      return address("runs", route.name, { log: flag(route.log), at: route.at === null ? "" : String(route.at) });
    case "lessons":
      return address("lessons", route.lesson, route.inputs);
    case "lost":
      return `#${route.path}`;
  }
}

function spellTranslate({ model, beam, q, prefix, glossary }: TranslateRoute): Record<string, string> {
  const own = glossary === null ? {} : { glossary };
  return { model, beam: beam === DEFAULT_BEAM ? "" : String(beam), q, prefix, ...own };
}

function spellWrite({ model, q, temperature, seed }: WriteRoute): Record<string, string> {
  return { model, temperature: temperature === DEFAULT_TEMPERATURE ? "" : String(temperature), seed: seed === 1 ? "" : String(seed), q };
}

function spellInside({ model, tab, attribution, ablation, q, data, target }: InsideRoute): Record<string, string> {
  return { model, tab: tab === TABS[0] ? "" : tab, attribution: flag(attribution), ablation: flag(ablation), q, target, data };
}

function flag(isOn: boolean): string {
  return isOn ? "1" : "";
}

function readTranslate(_: string, found: URLSearchParams): TranslateRoute {
  const beam = Number(found.get("beam"));
  return translateRoute({
    model: found.get("model") ?? "",
    q: found.get("q") ?? "",
    prefix: found.get("prefix") ?? "",
    beam: (BEAMS as readonly number[]).includes(beam) ? beam : DEFAULT_BEAM,
    glossary: found.get("glossary"),
  });
}

function readForecast(_: string, found: URLSearchParams): ForecastRoute {
  return forecastRoute({ model: found.get("model") ?? "", data: found.get("data") ?? "" });
}

function readWrite(_: string, found: URLSearchParams): WriteRoute {
  const [temperature, seed] = [Number(found.get("temperature")), Number(found.get("seed"))];
  return writeRoute({
    model: found.get("model") ?? "",
    q: found.get("q") ?? "",
    temperature: temperature >= 0.1 && temperature <= 2 ? temperature : DEFAULT_TEMPERATURE,
    seed: Number.isInteger(seed) && seed > 0 && seed < 2 ** 31 ? seed : 1,
  });
}

function readInside(_: string, found: URLSearchParams): InsideRoute {
  return insideRoute({
    model: found.get("model") ?? "",
    q: found.get("q") ?? "",
    data: found.get("data") ?? "",
    target: found.get("target") ?? "",
    tab: TABS.find((tab) => tab === found.get("tab")) ?? TABS[0],
    ablation: found.get("ablation") === "1",
    attribution: found.get("attribution") === "1",
  });
}

function readRuns(name: string, found: URLSearchParams): RunsRoute {
  const at = found.get("at");
  return runsRoute({ name, log: found.get("log") === "1", at: at !== null && /^\d{1,15}$/.test(at) ? Number(at) : null });
}

function readLessons(lesson: string, found: URLSearchParams): LessonsRoute {
  return lessonsRoute(lesson, Object.fromEntries(found));
}

function address(page: Page, rest: string, query: Readonly<Record<string, string>>): string {
  const said = new URLSearchParams(Object.entries(query).filter(([name, value]) => value !== "" || name === "glossary"));
  const path = rest ? `${page}/${encodeURIComponent(rest)}` : page;
  return `#/${path}${said.size ? `?${said.toString()}` : ""}`;
}

function split(text: string, mark: string): [string, string?] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
