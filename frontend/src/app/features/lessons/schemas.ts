/** The lessons' answers, checked at the door as all others are. */

import { broken } from "../../../inspector/record/errors";
import { count, fields, flag, list, number, oneOf, orNull, type Reader, text, withDefault } from "../../../inspector/record/schema";
import type { Block, Cell, Checked, DrawingBlock, FramesBlock, GridInput, Input, Lesson, LessonTitle, MatrixBlock, Option, OwnPart, TableBlock } from "./types";

/** No other kind of picture is ever shown. */
const PICTURE = /^data:image\/png;base64,[A-Za-z0-9+/=]+$/;

const title = { number: count, title: text, summary: text };

export const lessonTitles: Reader<LessonTitle[]> = (value, part) => fields({ lessons: list(fields(title)) })(value, part).lessons;

const matrix: Reader<Omit<MatrixBlock, "kind">> = (value, part) => {
  const numbers = fields({ values: list(list(number)) })(value, part).values;
  const width = numbers[0]?.length ?? 0;
  return fields({
    title: text,
    values: list(list(number, width)),
    rows: orNull(list(text, numbers.length)),
    columns: orNull(list(text, width)),
    digits: count,
    shade: flag,
  })(value, part);
};

const cell: Reader<Cell> = (value, part) => {
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return value as Cell;
  throw broken(part, "a text or a number");
};

const table: Reader<Omit<TableBlock, "kind">> = (value, part) => {
  const { headers } = fields({ headers: list(text) })(value, part);
  return fields({ title: withDefault(text, ""), headers: list(text), rows: list(list(cell, headers.length)), digits: count })(value, part);
};

const place: Reader<string | number> = (value, part) => (typeof value === "string" ? value : number(value, part));

const chart: Reader<object> = (value, part) => {
  const { x } = fields({ x: list(place) })(value, part);
  return fields({
    form: oneOf("lines", "bars"),
    title: text,
    x: list(place),
    series: list(fields({ label: text, values: list(orNull(number), x.length) })),
    x_label: withDefault(text, ""),
    y_label: withDefault(text, ""),
    log_x: withDefault(flag, false),
    log_y: withDefault(flag, false),
  })(value, part);
};

const frames: Reader<Omit<FramesBlock, "kind">> = (value, part) => fields({ title: text, frames: list(fields({ title: text, blocks: list(block) })) })(value, part);

const picture: Reader<string> = (value, part) => {
  const address = text(value, part);
  if (!PICTURE.test(address)) throw broken(part, "a picture");
  return address;
};

const drawing: Reader<Omit<DrawingBlock, "kind">> = fields({ name: text, caption: text, image: orNull(picture), missing: orNull(text) });

const BLOCKS: Record<Block["kind"], Reader<object>> = {
  say: fields({ words: text }),
  note: fields({ words: text }),
  formula: fields({ text }),
  matrix,
  table,
  chart,
  frames,
  drawing,
};

const blockKind = oneOf(...(Object.keys(BLOCKS) as Block["kind"][]));

export function block(value: unknown, part: string): Block {
  const { kind } = fields({ kind: blockKind })(value, part);
  return { kind, ...BLOCKS[kind](value, part) } as Block;
}

const options: Reader<Option[]> = (value, part) => list(list(text, 2))(value, part) as Option[];

const grid: Reader<Omit<GridInput, "kind" | "name" | "label">> = (value, part) => {
  const rows = fields({ default: list(list(number)) })(value, part).default;
  return fields({ default: list(list(number, rows[0]?.length ?? 0)), low: number, high: number })(value, part);
};

const INPUTS: Record<Input["kind"], Reader<object>> = {
  number: fields({ default: number, low: number, high: number, step: number }),
  grid,
  switch: fields({ default: flag }),
  choice: fields({ default: text, choices: options }),
  text: fields({ default: text, most: count }),
};

const inputKind = oneOf(...(Object.keys(INPUTS) as Input["kind"][]));

const input: Reader<Input> = (value, part) => {
  const named = fields({ kind: inputKind, name: text, label: text })(value, part);
  return { ...named, ...INPUTS[named.kind](value, part) } as Input;
};

export const lesson: Reader<Lesson> = fields({
  ...title,
  paper: text,
  code: list(fields({ file: text, line: count })),
  inputs: list(input),
  blocks: list(block),
  questions: list(fields({ prompt: text, choices: options })),
});

export const checked: Reader<Checked> = fields({ is_right: flag, why: orNull(text) });

export const ownPart: Reader<OwnPart> = fields({ model: text, blocks: list(block) });
