/** Painting on canvases. */

import type { ColorScale } from "./theme";

/** Paint one pixel per value; the style sheet enlarges it. */
export function paintPixels(canvas: HTMLCanvasElement, values: Float32Array, columns: number, shades: ColorScale, shadeOf: (value: number) => number): void {
  const rows = values.length / columns;
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  for (let index = 0; index < values.length; index++) {
    const shade = shadeOf(values[index]) * 3;
    image.data.set([shades[shade], shades[shade + 1], shades[shade + 2], 255], index * 4);
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
}

/** Set the size of a canvas in CSS pixels, sharp on every screen. */
export function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const density = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context?.scale(density, density);
  return context;
}

/** Shorten a text until it fits into a width. */
export function fitText(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = text.length - 1;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end)}…`;
}
