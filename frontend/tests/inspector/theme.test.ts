import { lab, rgb } from "d3-color";
import { interpolateRgb } from "d3-interpolate";
import { describe, expect, it } from "vitest";

import { contrast, css, headColor, readableText, PALETTES, sequentialScale, shadeOfSigned, shadeOfWeight, type Theme, tint, divergingScale } from "../../src/inspector/display/theme";

const THEMES = Object.keys(PALETTES) as Theme[];

/** Machado, Oliveira and Fernandes (2009), severity 1, on linear light. */
const SIGHTS: Record<string, number[]> = {
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
};

function seen(color: string, matrix: number[]): [number, number, number] {
  const { r, g, b } = rgb(color);
  const linear = [r, g, b].map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  const mixed = [0, 1, 2].map((row) => linear.reduce((sum, value, column) => sum + matrix[3 * row + column] * value, 0));
  const [red, green, blue] = mixed.map((value) => {
    const bounded = Math.min(1, Math.max(0, value));
    return 255 * (bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055);
  });
  const { l, a, b: bb } = lab(rgb(red, green, blue));
  return [l, a, bb];
}

describe.each(THEMES)("the %s theme", (theme) => {
  const palette = PALETTES[theme];

  it("has text that reads on paper and on cards", () => {
    for (const ground of [palette.paper, palette.surface]) {
      expect(contrast(palette.ink, ground)).toBeGreaterThan(7);
      for (const text of [palette.muted, palette.accent, palette.positive]) expect(contrast(text, ground)).toBeGreaterThan(4.5);
    }
    expect(contrast(palette.onAccent, palette.accent)).toBeGreaterThan(4.5);
  });

  it("has head colors that contrast with the background", () => {
    for (let head = 0; head < 8; head++) {
      for (const ground of [palette.paper, palette.surface]) {
        expect(contrast(headColor(head, palette), ground), `head ${head}`).toBeGreaterThan(3);
      }
    }
  });

  it.each(Object.keys(SIGHTS))("has eight head colors that differ under %s", (sight) => {
    const colors = palette.heads.map((color) => seen(color, SIGHTS[sight]));
    colors.forEach((one, i) =>
      colors.slice(0, i).forEach((other, j) => {
        const distance = Math.hypot(...one.map((value, part) => value - other[part]));
        expect(distance, `heads ${j} and ${i}`).toBeGreaterThan(18);
      }),
    );
  });

  it("lets words be read on the ground of any head's full weight", () => {
    for (const color of [palette.accent, ...palette.heads]) {
      const ground = interpolateRgb(palette.surface, color)(tint(1) / 100);
      expect(contrast(palette.ink, ground), color).toBeGreaterThan(4.5);
    }
    expect([tint(0), tint(0.25), tint(1), tint(2)]).toEqual([0, 19, 38, 38]);
  });

  it("gives sixteen heads sixteen colors", () => {
    const colors = Array.from({ length: 16 }, (_, head) => headColor(head, palette));
    expect(new Set(colors).size).toBe(16);
  });
});

describe("scales", () => {
  it("runs from one color to the other", () => {
    const shades = sequentialScale("#000000", "#ff8000");
    expect(css(shades, 0)).toBe("rgb(0 0 0)");
    expect(css(shades, 255)).toBe("rgb(255 128 0)");
  });

  it("has its middle at zero when it has two arms", () => {
    const shades = divergingScale("#ff0000", "#ffffff", "#0000ff");
    expect(css(shades, shadeOfSigned(-3, 3))).toBe("rgb(255 0 0)");
    expect(css(shades, shadeOfSigned(3, 3))).toBe("rgb(0 0 255)");
    expect(shadeOfSigned(0, 3)).toBe(128);
    expect(shadeOfSigned(1, 0)).toBe(128);
  });

  it("shows a quarter as half a shade and keeps to its bounds", () => {
    expect(shadeOfWeight(0.25)).toBe(128);
    expect([shadeOfWeight(-1), shadeOfWeight(0), shadeOfWeight(1), shadeOfWeight(2)]).toEqual([0, 0, 255, 255]);
  });

  it("writes dark on light and light on dark", () => {
    const shades = sequentialScale("#000000", "#ffffff");
    expect(readableText(shades, 0)).toBe("#ffffff");
    expect(readableText(shades, 255)).toBe("#111317");
  });
});
