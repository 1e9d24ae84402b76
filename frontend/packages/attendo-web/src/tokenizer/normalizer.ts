/** SentencePiece's own normalization: replacements from a trie, spaces, and the prefix of a text. */

import type { NormalizationSpec } from "./proto";

export const SPACE_SYMBOL = "\u2581";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Normalizes a text as SentencePiece does before it is split into pieces. */
export class Normalizer {
  private readonly charsMap: CharsMap | null;

  /** `matchSymbol` returns the length of the user-defined symbol at an index of a text, which is never changed. */
  constructor(
    private readonly spec: NormalizationSpec,
    private readonly isSpaceSuffix: boolean,
    private readonly matchSymbol: (text: string, index: number) => number,
  ) {
    this.charsMap = spec.charsMap.length > 0 ? new CharsMap(spec.charsMap) : null;
  }

  normalize(text: string): string {
    const { removesExtraSpaces, addsDummyPrefix, escapesSpaces } = this.spec;
    const space = escapesSpaces ? SPACE_SYMBOL : " ";
    let result = removesExtraSpaces ? this.joinWithSingleSpaces(text) : Array.from(this.replacements(text)).join("");
    if (escapesSpaces) result = result.replaceAll(" ", SPACE_SYMBOL);
    if (removesExtraSpaces) while (result.endsWith(space)) result = result.slice(0, -space.length);
    if (!result || !addsDummyPrefix) return result;
    return this.isSpaceSuffix ? result + space : space + result;
  }

  /** Return the text without spaces at its beginning and after another space. */
  private joinWithSingleSpaces(text: string): string {
    let result = "";
    let isAfterSpace = true;
    for (const replacement of this.replacements(text)) {
      const kept: string = isAfterSpace ? replacement.replace(/^ +/, "") : replacement;
      if (!kept) continue;
      result += kept;
      isAfterSpace = kept.endsWith(" ");
    }
    return result;
  }

  /** Return what replaces each character, or longer part, of a text. */
  private *replacements(text: string): Generator<string> {
    let index = 0;
    while (index < text.length) {
      const symbolLength = this.matchSymbol(text, index);
      if (symbolLength > 0) {
        yield text.slice(index, index + symbolLength);
        index += symbolLength;
        continue;
      }
      const match = this.charsMap?.match(text, index);
      const length = match?.length ?? characterLength(text, index);
      yield match?.replacement ?? text.slice(index, index + length).replace(/\p{Surrogate}/u, "\ufffd");
      index += length;
    }
  }
}

/** Return the number of UTF-16 units of the character at an index. */
export function characterLength(text: string, index: number): number {
  return text.codePointAt(index)! > 0xffff ? 2 : 1;
}

/** A double-array trie over UTF-8 bytes, whose values are offsets of replacements (zero-terminated). */
class CharsMap {
  private readonly units: Uint32Array;
  private readonly replacements: Uint8Array;

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const size = view.getUint32(0, true);
    this.units = new Uint32Array(size / 4);
    for (let index = 0; index < this.units.length; index++) this.units[index] = view.getUint32(4 + 4 * index, true);
    this.replacements = bytes.subarray(4 + size);
  }

  /** Return the longest part of the text at an index that is replaced, and by what. */
  match(text: string, index: number): { length: number; replacement: string } | null {
    let best: { length: number; replacement: string } | null = null;
    let node = this.offsetOf(this.units[0]!);
    let end = index;
    while (end < text.length) {
      const length = characterLength(text, end);
      for (const byte of encoder.encode(text.slice(end, end + length))) {
        node ^= byte;
        const unit = this.units[node];
        // A unit has its byte, and bit 31 if it is a value.
        if (unit === undefined || (unit & 0x800000ff) >>> 0 !== byte) return best;
        node ^= this.offsetOf(unit);
        if (unit & 0x100) best = { length: end + length - index, replacement: this.replacementAt(this.units[node]! & 0x7fffffff) };
      }
      end += length;
    }
    return best;
  }

  private offsetOf(unit: number): number {
    return (unit >>> 10) << ((unit & 0x200) >>> 6);
  }

  private replacementAt(offset: number): string {
    const end = this.replacements.indexOf(0, offset);
    return decoder.decode(this.replacements.subarray(offset, end));
  }
}
