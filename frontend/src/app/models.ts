/** Which model translates which languages. */

import type { ModelInfo } from "./api/types";

/** The model that an address names, or the server's default one. */
export function chooseModel(models: readonly ModelInfo[], name: string): ModelInfo | null {
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
