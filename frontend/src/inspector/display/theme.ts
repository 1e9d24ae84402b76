/** The colors of both themes, for the style sheets and the canvases. */

import { hcl, rgb } from "d3-color";
import { interpolateRgb } from "d3-interpolate";

export type Theme = "light" | "dark";

export interface Palette {
  paper: string;
  surface: string;
  ink: string;
  muted: string;
  line: string;
  accent: string;
  /** Text on the accent color. */
  onAccent: string;
  /** The signs of an attribution. */
  positive: string;
  negative: string;
  heads: string[];
}

export const PALETTES: Record<Theme, Palette> = {
  light: {
    paper: "#fbfaf7",
    surface: "#ffffff",
    ink: "#1c1e22",
    muted: "#5a606b",
    line: "#dddad2",
    accent: "#1d56b0",
    onAccent: "#ffffff",
    positive: "#0f62c4",
    negative: "#c2540a",
    heads: ["#284187", "#ad1e1b", "#43965e", "#bf568d", "#bb7f0f", "#6756eb", "#0296d7", "#424242"],
  },
  dark: {
    paper: "#15171b",
    surface: "#1d2026",
    ink: "#e9e8e4",
    muted: "#a5abb6",
    line: "#353a43",
    accent: "#8ab6ff",
    onAccent: "#10141c",
    positive: "#6fa8ff",
    negative: "#ff9a52",
    heads: ["#6087b8", "#d07426", "#4aa061", "#d188a0", "#e3c53a", "#a78bff", "#4ad6f9", "#dddddd"],
  },
};

/** The color of a head. The colors are distinguishable with color blindness, and each is shown with the number of its head. */
export function headColor(head: number | null, palette: Palette): string {
  if (head === null) return palette.accent;
  const color = palette.heads[head % palette.heads.length];
  const round = Math.floor(head / palette.heads.length);
  if (!round) return color;
  const lch = hcl(color);
  const isDark = rgb(palette.paper).r < 128;
  lch.l += (isDark ? -1 : 1) * 14 * (((round - 1) % 2) + 1);
  return lch.formatHex();
}

/** The share of color in the background of a word at weight one, in percent; with more its text would not be readable. */
const MAX_TINT = 38;

/** The share of color in the background of a word, in percent. */
export function tint(weight: number): number {
  return MAX_TINT * Math.sqrt(Math.min(1, Math.max(0, weight)));
}

/** Red, green and blue of 256 shades, for canvases. */
export type ColorScale = Uint8ClampedArray;

export function sequentialScale(from: string, to: string): ColorScale {
  const mix = interpolateRgb(from, to);
  const shades = new Uint8ClampedArray(256 * 3);
  for (let shade = 0; shade < 256; shade++) {
    const { r, g, b } = rgb(mix(shade / 255));
    shades.set([r, g, b], shade * 3);
  }
  return shades;
}

/** A scale with a neutral middle: -1 is the first color, 0 the middle, +1 the last. */
export function divergingScale(low: string, middle: string, high: string): ColorScale {
  const shades = new Uint8ClampedArray(256 * 3);
  const below = interpolateRgb(middle, low);
  const above = interpolateRgb(middle, high);
  for (let shade = 0; shade < 256; shade++) {
    const at = shade / 127.5 - 1;
    const { r, g, b } = rgb(at < 0 ? below(-at) : above(at));
    shades.set([r, g, b], shade * 3);
  }
  return shades;
}

/** The shade of a weight: its square root, so that small weights are visible. */
export function shadeOfWeight(weight: number): number {
  return Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, weight))));
}

/** The shade of a signed value, where `largest` is the largest absolute value. */
export function shadeOfSigned(value: number, largest: number): number {
  const share = largest ? Math.min(1, Math.max(-1, value / largest)) : 0;
  return Math.round(127.5 + 127.5 * Math.sign(share) * Math.sqrt(Math.abs(share)));
}

export function css(shades: ColorScale, shade: number): string {
  return `rgb(${shades[shade * 3]} ${shades[shade * 3 + 1]} ${shades[shade * 3 + 2]})`;
}

/** Dark or light text on a shade, whichever has more contrast. */
export function readableText(shades: ColorScale, shade: number): string {
  const [r, g, b] = [0, 1, 2].map((part) => luminancePart(shades[shade * 3 + part]));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#111317" : "#ffffff";
}

/** The contrast ratio of two colors, 1 to 21, as WCAG defines it. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/** Custom properties for the style sheet. */
export function cssVariables(palette: Palette): string {
  const { heads, ...plain } = palette;
  const named = Object.entries(plain).map(([name, value]) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}:${value}`);
  return [...named, ...heads.map((color, head) => `--head-${head}:${color}`)].join(";");
}

function luminance(color: string): number {
  const { r, g, b } = rgb(color);
  return 0.2126 * luminancePart(r) + 0.7152 * luminancePart(g) + 0.0722 * luminancePart(b);
}

function luminancePart(value: number): number {
  const part = value / 255;
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}
