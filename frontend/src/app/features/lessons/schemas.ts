/** The lessons as the server sends them: see `attendo.lessons` for what the fields mean. */

import { invalid } from "../../../inspector/record/errors";
import { diagram } from "./diagram/diagram";
import { decodeF16 } from "../../../inspector/record/packed";
import { KINDS, readRecord } from "../../../inspector/record/record";
import { array, boolean, count, type Infer, nullable, number, object, oneOf, type Schema, string, variant, withDefault } from "../../../inspector/record/schema";

const title = { number: count, title: string, summary: string };
/** `minutes`: about how long the lesson takes; `prerequisites`: the numbers of the lessons that it assumes. */
const lessonTitle = object({ ...title, minutes: nullable(count), prerequisites: withDefault(array(count), []) });
export type LessonTitle = Infer<typeof lessonTitle>;

/** Every row is as long as the first. */
function matrixOf(value: unknown, path: string): number[][] {
  const width = (Array.isArray(value) && Array.isArray(value[0]) && value[0].length) || 0;
  return array(array(number, width))(value, path);
}

/** Two matrices, and a row that is added to every row of their product. */
const product = object({ left: matrixOf, right: matrixOf, plus: withDefault(nullable(array(number)), null) });
export type Product = Infer<typeof product>;

const sizeOf = (rows: number[][]) => [rows.length, rows[0]?.length ?? 0];

function isProduct({ left, right, plus }: Product, values: number[][]): boolean {
  const [[numRows, inner], [innerRows, numColumns], [height, width]] = [left, right, values].map(sizeOf);
  return numRows === height && inner === innerRows && numColumns === width && (plus === null || plus.length === width);
}

const matrix = (value: unknown, path: string) => {
  const { values } = object({ values: matrixOf })(value, path);
  const rest = object({
    title: string,
    rows: nullable(array(string, values.length)),
    columns: nullable(array(string, values[0]?.length ?? 0)),
    digits: count,
    shade: boolean,
    product: withDefault(nullable(product), null),
  })(value, path);
  if (rest.product && !isProduct(rest.product, values)) throw invalid(`${path}.product`, "matrices whose product this is");
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

/** The panels of a figure: see `attendo.inspection.figure_data.panels` for what the fields mean. */
const heatmap = (value: unknown, path: string) => {
  const sizes = object({ num_rows: count, num_columns: count })(value, path);
  const rest = object({
    title: string,
    rows: nullable(array(string, sizes.num_rows)),
    columns: nullable(array(string, sizes.num_columns)),
    row_label: string,
    column_label: string,
    limit: number,
    is_signed: boolean,
    digits: nullable(count),
    encoding: oneOf("f16"),
    data: string,
  })(value, path);
  const values = decodeF16(rest.data);
  if (values.length !== sizes.num_rows * sizes.num_columns) throw invalid(`${path}.data`, `${sizes.num_rows} x ${sizes.num_columns} values`);
  return { ...sizes, ...rest, values };
};

const bars = (value: unknown, path: string) => {
  const { names } = object({ names: array(string) })(value, path);
  return { names, ...object({ title: string, values: array(nullable(number), names.length), digits: count, marked: nullable(count) })(value, path) };
};

const recordView = object({
  view: oneOf("arcs", "heads", "steps", "beam", "positions"),
  attention: nullable(oneOf(...KINDS)),
  layer: nullable(count),
  heads: array(count),
  row: nullable(count),
});
export type RecordView = Infer<typeof recordView>;

const column = object({ boxes: array(object({ name: string, shape: string, repeated: boolean, skipped: withDefault(count, 0) })), num_layers: count, text: string });
const stack = object({ encoder: column, decoder: column, cross: string, memory: string });
export type StackPanel = Infer<typeof stack>;

const PANELS = { heatmap, bars, chart, operator: object({ text: string }), record: recordView, stack };
type PanelOf<K extends keyof typeof PANELS> = { kind: K } & Infer<(typeof PANELS)[K]>;
export type HeatmapPanel = PanelOf<"heatmap">;
export type BarsPanel = PanelOf<"bars">;

const figure = object({ title: string, about: string, rows: array(array(variant(PANELS))) });
const drawing = object({ name: string, caption: string, figure });

export interface Frame {
  title: string;
  blocks: Block[];
}
const frames = (value: unknown, path: string): { title: string; frames: Frame[] } =>
  object({ title: string, frames: array(object({ title: string, blocks: array(block) })) })(value, path);

const words = object({ words: string });
const CODE_STYLES = ["", "keyword", "string", "number", "comment", "definition", "builtin"] as const;
/** A piece of a line of code: its style and its text. */
const codePart: Schema<[(typeof CODE_STYLES)[number], string]> = (value, path) => {
  const [style, text] = array(string, 2)(value, path);
  return [oneOf(...CODE_STYLES)(style, path), text];
};
const code = object({ words: string, listings: array(object({ name: string, file: string, line: count, lines: array(array(codePart)) })) });
const machine = object({ title: string, is_map: withDefault(boolean, false), wide: diagram, narrow: diagram, stages: array(object({ name: string, label: string, about: string, lessons: array(count) })) });
/** `other`: the term in the other language; `lesson`: the lesson that explains it. */
const term = object({ name: string, other: string, lesson: count, meaning: string });
export type Term = Infer<typeof term>;
/** The list, with the map of all lessons above it, and the glossary. */
export const lessonsResponse = object({ lessons: array(lessonTitle), terms: withDefault(array(term), []), map: nullable(machine) });
export type LessonsResponse = Infer<typeof lessonsResponse>;
const BLOCKS = { paragraph: words, note: words, formula: object({ text: string }), matrix, table, chart, steps: frames, model_plot: drawing, code, diagram, machine };
export type Block = { [kind in keyof typeof BLOCKS]: { kind: kind } & Infer<(typeof BLOCKS)[kind]> }[keyof typeof BLOCKS];
type BlockOf<K extends Block["kind"]> = Extract<Block, { kind: K }>;
export type MatrixBlock = BlockOf<"matrix">;
export type TableBlock = BlockOf<"table">;
export type ChartBlock = BlockOf<"chart">;
export type FramesBlock = BlockOf<"steps">;
export type CodeBlock = BlockOf<"code">;
export type MachineBlock = BlockOf<"machine">;
export type DrawingBlock = BlockOf<"model_plot">;

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

/** `hint`: where the right answer is; `hints`: from the vaguest to the clearest; `answer`: the right answer, if it was asked for. */
export const checkedAnswer = object({
  is_right: boolean,
  why: nullable(string),
  hint: nullable(oneOf("higher", "lower", "notNumber")),
  hints: array(string),
  answer: nullable(string),
});
export type CheckedAnswer = Infer<typeof checkedAnswer>;

/** The part of a lesson that is computed with a model of the server; `record` is what its figures show. */
export const modelPart = object({ model: string, blocks: array(block), record: nullable((value) => readRecord(value)) });
export type ModelPart = Infer<typeof modelPart>;
