/** Which models a page can use, and which languages they translate. */

import type { ModelInfo, Pivot, SeriesInfo, Task } from "../api/schemas";
import { type Page, PAGES } from "../routing/routes";

/** The tasks of the pages that need a model of a certain task. */
const TASKS_BY_PAGE: Partial<Record<Page, readonly Task[]>> = {
  translate: ["translation", "classification"],
  forecast: ["series"],
  generate: ["language"],
};

/** The models that a page can use, those of its main task first. */
export function modelsFor(models: readonly ModelInfo[], page: Page): ModelInfo[] {
  const tasks = TASKS_BY_PAGE[page] ?? ["translation", "classification", "language"];
  return tasks.flatMap((task) => models.filter((model) => model.task === task));
}

/** The pages that the server's models support; while they are not known, the default pages. */
export function pagesFor(models: readonly ModelInfo[] | null): Page[] {
  const known = models?.length ? models : null;
  return PAGES.filter((page) => !TASKS_BY_PAGE[page] || (known ? modelsFor(known, page).length > 0 : page === "translate"));
}

export interface SeriesModel extends ModelInfo {
  series: SeriesInfo;
}

export function seriesModels(models: readonly ModelInfo[]): SeriesModel[] {
  return models.filter((model): model is SeriesModel => model.task === "series" && model.series !== null);
}

/** The model with this name, or the server's default model. */
export function chooseModel<T extends ModelInfo>(models: readonly T[], name: string): T | null {
  return models.find((model) => model.name === name) ?? models.find((model) => model.default) ?? models[0] ?? null;
}

export function sourcesOf(models: readonly ModelInfo[]): string[] {
  return [...new Set(models.map((model) => model.source))];
}

export function targetsOf(models: readonly ModelInfo[], source: string): string[] {
  return [...new Set(models.filter((model) => model.source === source).map((model) => model.target))];
}

/** The models of one language pair. */
export function modelsOfPair(models: readonly ModelInfo[], source: string, target: string): ModelInfo[] {
  return models.filter((model) => model.source === source && model.target === target);
}

/** A model for a new source language, with the same target language if there is one. */
export function modelForSource(models: readonly ModelInfo[], source: string, target: string): ModelInfo | null {
  return modelsOfPair(models, source, target)[0] ?? models.find((model) => model.source === source) ?? null;
}

export function reverseOf(models: readonly ModelInfo[], model: ModelInfo): ModelInfo | null {
  return model.source === model.target ? null : (modelsOfPair(models, model.target, model.source)[0] ?? null);
}

/** A translation in two steps: the languages, and the model of each step. */
export interface TwoSteps extends Pivot {
  models: [ModelInfo, ModelInfo];
}

/** The two steps from a model's source to a language; null without such. */
export function twoSteps(models: readonly ModelInfo[], pivots: readonly Pivot[], source: string, target: string): TwoSteps | null {
  const pivot = pivots.find((one) => one.source === source && one.target === target);
  const first = pivot && modelsOfPair(models, pivot.source, pivot.via)[0];
  const second = pivot && modelsOfPair(models, pivot.via, pivot.target)[0];
  return pivot && first && second ? { ...pivot, models: [first, second] } : null;
}

/** The value of a `lang` attribute; undefined where the language is not known. */
export function langTag(code: string): string | undefined {
  return code && code !== "auto" ? code : undefined;
}

/** The name of a language in the user's language; null where it is not known. */
export function languageName(code: string, lang: string): string | null {
  const tag = langTag(code);
  if (tag === undefined) return null;
  try {
    return new Intl.DisplayNames([lang], { type: "language" }).of(tag) ?? tag;
  } catch {
    return code;
  }
}

/** An example sentence per language, from the embedded corpus where possible. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  ko: "왕자는 공주를 구했다.",
  en: "The prince saved the princess.",
  de: "Ein Hund läuft durch den Schnee.",
};

/** A glossary entry for each example sentence. */
export const GLOSSARY_EXAMPLES: Readonly<Record<string, string>> = {
  ko: "공주 = queen",
  en: "princess = 여왕",
  de: "Hund = dog",
};
