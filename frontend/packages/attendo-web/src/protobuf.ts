/** Reads Protocol Buffers: the fields of a message, in their order. */

export type FieldValue = number | Uint8Array;

/** Bytes of a negative number, which is written as one of 64 bits. */
const NEGATIVE_BYTES = 10;

/** Return number and value of each field: whole numbers, 32-bit floats and byte strings. */
export function* readFields(bytes: Uint8Array): Generator<[number, FieldValue]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const reader = new VarintReader(bytes);
  while (reader.offset < bytes.length) {
    const key = reader.next();
    const field = Math.floor(key / 8);
    const wireType = key & 7;
    if (wireType === 0) yield [field, reader.next()];
    else if (wireType === 1) reader.take(8);
    else if (wireType === 2) yield [field, reader.take(reader.next())];
    else if (wireType === 5) {
      reader.take(4);
      yield [field, view.getFloat32(reader.offset - 4, true)];
    } else throw new Error("the file is damaged");
  }
}

/** Return whole numbers that are stored one after the other. */
export function readPacked(bytes: Uint8Array): number[] {
  const reader = new VarintReader(bytes);
  const numbers: number[] = [];
  while (reader.offset < bytes.length) numbers.push(reader.next());
  return numbers;
}

class VarintReader {
  offset = 0;

  constructor(private readonly bytes: Uint8Array) {}

  next(): number {
    let [result, low] = [0, 0];
    for (let index = 0, factor = 1; ; index++, factor *= 128) {
      const byte = this.bytes[this.offset++];
      if (byte === undefined) throw new Error("the file is truncated");
      result += (byte & 127) * factor;
      if (index < 5) low |= (byte & 127) << (7 * index);
      if (byte < 128) return index + 1 === NEGATIVE_BYTES ? low : result;
    }
  }

  take(length: number): Uint8Array {
    if (this.offset + length > this.bytes.length) throw new Error("the file is truncated");
    this.offset += length;
    return this.bytes.subarray(this.offset - length, this.offset);
  }
}
