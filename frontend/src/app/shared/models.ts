/** Which model does what, and which translates which languages. */

import type { ModelInfo, SeriesInfo, Task } from "../api/types";
import { PAGES, type Page } from "../routing/routes";

/** What a page needs a model of; the others need none. */
const NEEDS: Partial<Record<Page, readonly Task[]>> = {
  translate: ["translation", "classification"],
  forecast: ["series"],
  write: ["language"],
};

/** The models that a page is for, those that do its first task first. */
export function modelsFor(models: readonly ModelInfo[], page: Page): ModelInfo[] {
  const tasks = NEEDS[page] ?? ["translation", "classification", "language"];
  return tasks.flatMap((task) => models.filter((model) => model.task === task));
}

/** The pages that the server's models give something to do; before it has told, those that always were. */
export function pagesOf(models: readonly ModelInfo[] | null): Page[] {
  const known = models?.length ? models : null;
  return PAGES.filter((page) => !NEEDS[page] || (known ? modelsFor(known, page).length > 0 : page === "translate"));
}

export interface SeriesModel extends ModelInfo {
  series: SeriesInfo;
}

export function seriesModels(models: readonly ModelInfo[]): SeriesModel[] {
  return models.filter((model): model is SeriesModel => model.task === "series" && model.series !== null);
}

/** The model that an address names, or the server's default one. */
export function chooseModel<T extends ModelInfo>(models: readonly T[], name: string): T | null {
  return models.find((model) => model.name === name) ?? models.find((model) => model.default) ?? models[0] ?? null;
}

export function sourcesOf(models: readonly ModelInfo[]): string[] {
  return [...new Set(models.map((model) => model.source))];
}

export function targetsOf(models: readonly ModelInfo[], source: string): string[] {
  return [...new Set(models.filter((model) => model.source === source).map((model) => model.target))];
}

/** The models of one pair of languages. */
export function modelsOf(models: readonly ModelInfo[], source: string, target: string): ModelInfo[] {
  return models.filter((model) => model.source === source && model.target === target);
}

/** The model for a new source language: for the same target if there is one. */
export function forSource(models: readonly ModelInfo[], source: string, target: string): ModelInfo | null {
  return modelsOf(models, source, target)[0] ?? models.find((model) => model.source === source) ?? null;
}

export function reverseOf(models: readonly ModelInfo[], model: ModelInfo): ModelInfo | null {
  return model.source === model.target ? null : (modelsOf(models, model.target, model.source)[0] ?? null);
}

/** The language for the `lang` of what is shown; nothing where it is not told. */
export function tagOf(code: string): string | undefined {
  return code && code !== "auto" ? code : undefined;
}

/** The name of a language in the reader's own; null for one that is not told. */
export function languageName(code: string, lang: string): string | null {
  const tag = tagOf(code);
  if (tag === undefined) return null;
  try {
    return new Intl.DisplayNames([lang], { type: "language" }).of(tag) ?? tag;
  } catch {
    return code;
  }
}

/** A sentence to begin with, of the embedded corpus where it can be. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  ko: "왕자는 공주를 구했다.",
  en: "The prince saved the princess.",
  de: "Ein Hund läuft durch den Schnee.",
};
