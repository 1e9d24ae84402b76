import { describe, expect, it } from "vitest";

import { decodeF16, decodeU16, halfToNumber } from "../../src/inspector/record/packed";
import { packF16, packU16 } from "../fixtures/pack";

describe("u16", () => {
  it("reads little-endian shares, 65535 as one", () => {
    // 00 00, ff ff, 01 00, 00 01: written by hand
    const values = decodeU16(Buffer.from([0, 0, 255, 255, 1, 0, 0, 1]).toString("base64"));
    expect([...values]).toEqual([0, 1, Math.fround(1 / 65535), Math.fround(256 / 65535)]);
  });

  it("comes within half a step of what was packed", () => {
    const shares = [0, 0.1, 1 / 3, 0.77, 1];
    decodeU16(packU16(shares)).forEach((value, index) => expect(Math.abs(value - shares[index])).toBeLessThan(0.51 / 65535));
  });

  it("refuses half a value", () => {
    expect(() => decodeU16(Buffer.from([1, 2, 3]).toString("base64"))).toThrow(RangeError);
  });
});

describe("f16", () => {
  it.each([
    [0x3c00, 1],
    [0xc000, -2],
    [0x3555, 0.333251953125],
    [0x7bff, 65504],
    [0x0001, 2 ** -24],
    [0x0400, 2 ** -14],
    [0x0000, 0],
    [0x7c00, Infinity],
    [0xfc00, -Infinity],
  ])("reads 0x%s as IEEE says", (bits, value) => {
    expect(halfToNumber(bits)).toBe(value);
  });

  it("reads what is not a number as NaN", () => expect(halfToNumber(0x7e00)).toBeNaN());

  it("gives sines back to three digits", () => {
    const sines = Array.from({ length: 50 }, (_, index) => Math.sin(index));
    decodeF16(packF16(sines)).forEach((value, index) => expect(value).toBeCloseTo(sines[index], 3));
  });
});
