/** The lessons as the server sends them: see `attendo.lessons` for what the fields mean. */

import { invalid } from "../../../inspector/record/errors";
import { array, boolean, count, type Infer, nullable, number, object, oneOf, type Schema, string, variant, withDefault } from "../../../inspector/record/schema";

/** Only images that are part of the response are ever shown. */
const PNG = /^data:image\/png;base64,[A-Za-z0-9+/=]+$/;

const title = { number: count, title: string, summary: string };
const lessonTitle = object(title);
export type LessonTitle = Infer<typeof lessonTitle>;
export const lessonsResponse = object({ lessons: array(lessonTitle) });

/** Every row is as long as the first. */
function matrixOf(value: unknown, path: string): number[][] {
  const width = (Array.isArray(value) && Array.isArray(value[0]) && value[0].length) || 0;
  return array(array(number, width))(value, path);
}

const matrix = (value: unknown, path: string) => {
  const { values } = object({ values: matrixOf })(value, path);
  const rest = object({
    title: string,
    rows: nullable(array(string, values.length)),
    columns: nullable(array(string, values[0]?.length ?? 0)),
    digits: count,
    shade: boolean,
  })(value, path);
  return { values, ...rest };
};

export type Cell = string | number | boolean | null;
const cell: Schema<Cell> = (value, path) => {
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return value as Cell;
  throw invalid(path, "a string or a number");
};

const table = (value: unknown, path: string) => {
  const { headers } = object({ headers: array(string) })(value, path);
  const rest = object({ title: withDefault(string, ""), rows: array(array(cell, headers.length)), digits: count })(value, path);
  return { headers, ...rest };
};

const xValue: Schema<string | number> = (value, path) => (typeof value === "string" ? value : number(value, path));

const chart = (value: unknown, path: string) => {
  const { x } = object({ x: array(xValue) })(value, path);
  const rest = object({
    form: oneOf("lines", "bars"),
    title: string,
    series: array(object({ label: string, values: array(nullable(number), x.length) })),
    x_label: withDefault(string, ""),
    y_label: withDefault(string, ""),
    log_x: withDefault(boolean, false),
    log_y: withDefault(boolean, false),
  })(value, path);
  return { x, ...rest };
};

const image: Schema<string> = (value, path) => {
  const url = string(value, path);
  if (!PNG.test(url)) throw invalid(path, "a PNG image");
  return url;
};

/** `image` is null where the server could not draw it; `missing` says why. */
const drawing = object({ name: string, caption: string, image: nullable(image), missing: nullable(string) });

export interface Frame {
  title: string;
  blocks: Block[];
}
const frames = (value: unknown, path: string): { title: string; frames: Frame[] } =>
  object({ title: string, frames: array(object({ title: string, blocks: array(block) })) })(value, path);

const words = object({ words: string });
const BLOCKS = { say: words, note: words, formula: object({ text: string }), matrix, table, chart, frames, drawing };
export type Block = { [kind in keyof typeof BLOCKS]: { kind: kind } & Infer<(typeof BLOCKS)[kind]> }[keyof typeof BLOCKS];
type BlockOf<K extends Block["kind"]> = Extract<Block, { kind: K }>;
export type MatrixBlock = BlockOf<"matrix">;
export type TableBlock = BlockOf<"table">;
export type ChartBlock = BlockOf<"chart">;
export type FramesBlock = BlockOf<"frames">;
export type DrawingBlock = BlockOf<"drawing">;

export function block(value: unknown, path: string): Block {
  return variant(BLOCKS)(value, path);
}

export type Option = [key: string, label: string];
const options: Schema<Option[]> = (value, path) => array(array(string, 2))(value, path) as Option[];

const named = { name: string, label: string };
const input = variant({
  number: object({ ...named, default: number, low: number, high: number, step: number }),
  grid: object({ ...named, default: matrixOf, low: number, high: number }),
  switch: object({ ...named, default: boolean }),
  choice: object({ ...named, default: string, choices: options }),
  text: object({ ...named, default: string, most: count }),
});
export type Input = Infer<typeof input>;
type InputOf<K extends Input["kind"]> = Extract<Input, { kind: K }>;
export type NumberInput = InputOf<"number">;
export type GridInput = InputOf<"grid">;
export type ChoiceInput = InputOf<"choice">;
export type TextInput = InputOf<"text">;
export type Value = Input["default"];

/** `choices` is empty where the answer is a number. */
const question = object({ prompt: string, choices: options });
export type Question = Infer<typeof question>;

export const lesson = object({
  ...title,
  paper: string,
  code: array(object({ file: string, line: count })),
  inputs: array(input),
  blocks: array(block),
  questions: array(question),
});
export type Lesson = Infer<typeof lesson>;

export const checkedAnswer = object({ is_right: boolean, why: nullable(string) });
export type CheckedAnswer = Infer<typeof checkedAnswer>;

/** The part of a lesson that is computed with a model of the server. */
export const modelPart = object({ model: string, blocks: array(block) });
export type ModelPart = Infer<typeof modelPart>;
