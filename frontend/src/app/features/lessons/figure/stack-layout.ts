/** Where the boxes, frames and arrows of the stack are. */

import type { StackPanel } from "../schemas";

const BOX_WIDTH = 250;
const BOX_HEIGHT = 28;
const GAP = 15;
const SIDE = 42;
const BETWEEN = 96;
const BELOW = 24;
const ABOVE = 34;
const MARGIN = 34;
/** How far a residual connection is from the boxes that it leads around, and the frame from both. */
const RESIDUAL = 9;
const FRAME = 8;

export interface StackBox {
  x: number;
  y: number;
  width: number;
  height: number;
  name: string;
  shape: string;
  part: "attention" | "cross" | "feed" | "input" | "output" | "other";
}

/** Lay out both columns with their first stages at the bottom, as in the paper: next to each other, or on a narrow screen the decoder above the encoder. */
export function layoutStack({ encoder, decoder, cross }: StackPanel, isNarrow = false) {
  const columns = [encoder, decoder];
  const heightOf = (numRows: number) => ABOVE + numRows * (BOX_HEIGHT + GAP) + BELOW;
  const [encoderHeight, decoderHeight] = columns.map(({ boxes }) => heightOf(boxes.length));
  const height = isNarrow ? encoderHeight + decoderHeight : Math.max(encoderHeight, decoderHeight);
  const bottomOf = (side: number) => (isNarrow && side === 1 ? decoderHeight : height);
  const yOf = (side: number, row: number) => bottomOf(side) - BELOW - (row + 1) * (BOX_HEIGHT + GAP) + GAP;
  const xOf = (side: number) => (isNarrow ? SIDE : SIDE + side * (BOX_WIDTH + BETWEEN));
  const boxes = columns.flatMap((column, side) =>
    column.boxes.map(({ name, shape, repeated }, row): StackBox => ({
      x: xOf(side),
      y: yOf(side, row),
      width: BOX_WIDTH,
      height: BOX_HEIGHT,
      name,
      shape,
      part: partOf(column.boxes, row, repeated, name === cross),
    })),
  );
  const frames = columns.map((column, side) => {
    const rows = column.boxes.flatMap(({ repeated }, row) => (repeated ? [row] : []));
    const [first, last] = [rows[0] ?? 0, rows.at(-1) ?? 0];
    return { x: xOf(side) - FRAME, y: yOf(side, last) - 7, width: BOX_WIDTH + 2 * FRAME + RESIDUAL, height: yOf(side, first) - yOf(side, last) + BOX_HEIGHT + 14, count: column.num_layers };
  });
  const arrows = columns.flatMap((column, side) =>
    column.boxes.slice(1).map((_, row) => ({ x: xOf(side) + BOX_WIDTH / 2, from: yOf(side, row), to: yOf(side, row + 1) + BOX_HEIGHT })),
  );
  const residuals = columns.flatMap((column, side) =>
    column.boxes.flatMap(({ skipped }, row) => {
      if (!skipped) return [];
      const right = xOf(side) + BOX_WIDTH;
      return [`M${xOf(side) + BOX_WIDTH / 2} ${yOf(side, row - skipped) + BOX_HEIGHT + GAP * 0.6}H${right + RESIDUAL}V${yOf(side, row) + BOX_HEIGHT / 2}H${right}m5 -3.5l-5 3.5l5 3.5`];
    }),
  );
  const top = yOf(0, encoder.boxes.length - 1);
  const crossRow = decoder.boxes.findIndex(({ name }) => name === cross);
  const target = yOf(1, Math.max(0, crossRow)) + BOX_HEIGHT / 2;
  const middle = xOf(0) + BOX_WIDTH / 2;
  // On a narrow screen the memory goes up on the right of the decoder, otherwise between the columns.
  const path = isNarrow
    ? `M${middle} ${top}V${top - 14}H${xOf(1) + BOX_WIDTH + 0.75 * MARGIN}V${target}H${xOf(1) + BOX_WIDTH}m6 -4l-6 4l6 4`
    : `M${middle} ${top}V${top - 14}H${xOf(0) + BOX_WIDTH + BETWEEN / 3}V${target}H${xOf(1)}m-6 -4l6 4l-6 4`;
  return {
    width: isNarrow ? SIDE + BOX_WIDTH + MARGIN : 2 * SIDE + 2 * BOX_WIDTH + BETWEEN - SIDE / 2,
    height,
    boxes,
    frames,
    arrows,
    residuals,
    memory: { path, x: xOf(0), y: top - 20 },
    texts: columns.map(({ text }, side) => ({ x: xOf(side) + BOX_WIDTH / 2, y: bottomOf(side) - 8, text })),
  };
}

/** The kind of a stage: the first repeated stages are attention and feed-forward, the norms stay gray. */
function partOf(boxes: StackPanel["encoder"]["boxes"], row: number, isRepeated: boolean, isCross: boolean): StackBox["part"] {
  if (isCross) return "cross";
  const { shape } = boxes[row];
  const first = boxes.findIndex(({ repeated }) => repeated);
  if (!isRepeated) return row === 0 ? "other" : row < first ? "input" : shape === boxes[first - 1]?.shape ? "other" : "output";
  // Attention has three sizes; a feed-forward network has another width than the stages around it.
  if (shape.split(",").length === 3) return "attention";
  return shape === boxes[first - 1]?.shape ? "other" : "feed";
}
