/** Diagrams as the server sends them: see `attendo.lessons.diagrams.shapes` for what the fields mean. */

import { invalid } from "../../../../inspector/record/errors";
import { array, boolean, count, type Infer, nullable, number, object, oneOf, type Schema, string, variant, withDefault } from "../../../../inspector/record/schema";

const PARTS = ["attention", "cross", "feed", "norm", "input", "output", "plain", "frame"] as const;
const STYLES = ["", "muted", "strong", "residual", "memory", "dashed", "negative"] as const;

const path: Schema<string> = (value, where) => {
  const found = string(value, where);
  if (!/^M[MLQ\d .e-]*$/.test(found)) throw invalid(where, "a path of lines and curves");
  return found;
};

const box = object({
  x: number,
  y: number,
  width: number,
  height: number,
  text: string,
  part: oneOf(...PARTS),
  shade: nullable(number),
  stage: withDefault(string, ""),
  lessons: array(count),
  size: number,
  round: number,
});
const text = object({ x: number, y: number, text: string, anchor: oneOf("start", "middle", "end"), style: oneOf(...STYLES), size: number, role: withDefault(string, "") });
const line = object({ path, style: oneOf(...STYLES), width: number, has_head: boolean, stage: withDefault(string, "") });

const SHAPES = { box, text, line };
export const diagram = object({ title: string, about: string, width: number, height: number, shapes: array(variant(SHAPES)) });
export type Diagram = Infer<typeof diagram>;
export type Shape = Diagram["shapes"][number];
export type Box = Extract<Shape, { kind: "box" }>;
export type Line = Extract<Shape, { kind: "line" }>;
export type Words = Extract<Shape, { kind: "text" }>;

const LINE_HEIGHT = 1.2;

/** The lines of a text and the baseline of each, around its middle. */
export function textLines(content: string, middle: number, size: number): { text: string; y: number }[] {
  const lines = content.split("\n");
  const first = middle + 0.35 * size - ((lines.length - 1) * LINE_HEIGHT * size) / 2;
  return lines.map((one, row) => ({ text: one, y: first + row * LINE_HEIGHT * size }));
}

/** With more color the number in a cell could not be read. */
const MAX_TINT = 45;

export function shadeOf(value: number): string {
  const share = MAX_TINT * Math.min(1, Math.abs(value));
  return `color-mix(in srgb, var(--${value < 0 ? "negative" : "positive"}) ${share.toFixed(1)}%, var(--surface))`;
}
