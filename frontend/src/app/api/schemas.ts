/** The server's answers, checked at the door; what is wrong is named. */

import { RecordError } from "../../inspector/record/errors";
import { count, fields, flag, list, number, oneOf, orNull, type Reader, text, withDefault } from "../../inspector/record/schema";
import { ApiError } from "./errors";
import { type Alignment, type EventsAnswer, type ForecastAnswer, type ModelInfo, type NextWord, RUN_STATES, type RunDetail, type RunInfo, type SampleAnswer, type SeriesInfo, type StreamStep, TASKS, type TranslateAnswer } from "./types";

const figure = orNull(number);
const dev = fields({ loss: figure, perplexity: figure, bleu: figure });
const plainAlternative = { text, score: figure, log_prob: figure };

const alignment: Reader<Alignment> = (value, part) => {
  const { source_words, target_words } = fields({ source_words: list(text), target_words: list(text) })(value, part);
  const { weights } = fields({ weights: list(list(number, source_words.length), target_words.length) })(value, part);
  return { source_words, target_words, weights };
};

export const translated = fields({
  ...plainAlternative,
  is_finished: withDefault(flag, true),
  confidence: orNull(fields({ probability: number, mean: number, words: list(fields({ text, probability: number })) })),
  alternatives: withDefault(list(fields(plainAlternative)), []),
  notes: withDefault(list(text), []),
  alignment: orNull(alignment),
  words: withDefault(list(text), []),
});

const series: Reader<SeriesInfo> = fields({
  columns: list(text),
  time: orNull(text),
  window: count,
  horizon: count,
  targets: list(text),
  kind: oneOf("labels", "numbers"),
  labels: orNull(list(text)),
});

export const models: Reader<ModelInfo[]> = (value, part) =>
  fields({
    models: list(
      fields({
        name: text,
        task: withDefault(oneOf(...TASKS), "translation"),
        source: withDefault(text, "auto"),
        target: withDefault(text, "auto"),
        kind: withDefault(text, ""),
        num_parameters: orNull(count),
        has_attention: withDefault(flag, true),
        default: withDefault(flag, false),
        max_characters: orNull(count),
        dev: orNull(dev),
        series: orNull(series),
      }),
    ),
  })(value, part).models;

/** As many translations as there were texts. */
export function translateAnswer(numTexts: number): Reader<TranslateAnswer> {
  return fields({ model: text, seconds: figure, translations: list(translated, numTexts) });
}

export const streamStep: Reader<StreamStep> = fields({ text, token: withDefault(text, ""), probability: figure });

export const nextWords: Reader<NextWord[]> = (value, part) => fields({ words: list(fields({ text, probability: number, prefix: orNull(text) })) })(value, part).words;

/** Numbers by name. */
const figures: Reader<Record<string, number>> = (value, part) => {
  fields({})(value, part);
  return Object.fromEntries(Object.entries(value as object).map(([name, one]) => [name, number(one, `${part}.${name}`)]));
};

/** As many steps as the model's horizon has. */
export function forecastAnswer(horizon: number): Reader<ForecastAnswer> {
  const step = fields({ time: text, label: orNull(text), probabilities: orNull(figures), values: orNull(figures) });
  return fields({ model: text, seconds: figure, steps: list(step, horizon) });
}

export const sampleAnswer: Reader<SampleAnswer> = fields({ seconds: figure, texts: list(text) });

const runState = oneOf(...RUN_STATES);
const runInfo = { name: text, state: runState, step: orNull(count), max_steps: orNull(count), dev: orNull(dev), updated: orNull(text) };

export const runs: Reader<RunInfo[]> = (value, part) => fields({ runs: list(fields(runInfo)) })(value, part).runs;

const event = fields({
  event: withDefault(text, ""),
  step: orNull(count),
  time: orNull(text),
  loss: figure,
  rate: figure,
  tokens_per_second: figure,
  perplexity: figure,
  bleu: figure,
  accuracy: figure,
});

const samples = list(fields({ step: count, samples: list(fields({ src: text, output: text, ref: orNull(text) })) }));

const object: Reader<Record<string, unknown>> = (value, part) => {
  fields({})(value, part);
  return value as Record<string, unknown>;
};

export const runDetail: Reader<RunDetail> = fields({
  ...runInfo,
  config: withDefault(object, {}),
  events: list(event),
  next: count,
  samples: withDefault(samples, []),
  report: orNull(fields({ dev: orNull(dev) })),
});

export const eventsAnswer: Reader<EventsAnswer> = fields({ events: list(event), next: count, state: runState });

export const fileAnswer: Reader<string> = (value, part) => fields({ translatedFileUrl: text })(value, part).translatedFileUrl;

/** Read an answer; a wrong one is the server's trouble and says which part it is. */
export function read<T>(reader: Reader<T>, value: unknown): T {
  try {
    return reader(value, "");
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    const { part = "", expected = error.problem } = error.details;
    throw new ApiError("shape", `${part}: ${expected}`);
  }
}

