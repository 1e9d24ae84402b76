/** Unpacks the numbers of a record: base64, little-endian. */

export const ENCODINGS = { u16: decodeU16, f16: decodeF16 } as const;

/** Unpack unsigned 16-bit fractions: 65535 is 1. */
export function decodeU16(base64: string): Float32Array {
  return decode(base64, (bits) => bits / 65535);
}

/** Unpack IEEE half precision. */
export function decodeF16(base64: string): Float32Array {
  return decode(base64, halfToNumber);
}

export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function decode(base64: string, toNumber: (bits: number) => number): Float32Array {
  const bytes = atob(base64);
  if (bytes.length % 2) throw new RangeError(`${bytes.length} bytes are not a whole number of 16-bit values`);
  const values = new Float32Array(bytes.length / 2);
  for (let index = 0; index < values.length; index++) {
    values[index] = toNumber(bytes.charCodeAt(2 * index) | (bytes.charCodeAt(2 * index + 1) << 8));
  }
  return values;
}
