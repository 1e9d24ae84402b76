/** Offsets of the server count code points; those of JavaScript count UTF-16 units. */

/** The number of characters as the server counts them: an emoji is one. */
export function countCharacters(text: string): number {
  return [...text].length;
}

/** A function from an offset in code points to an offset in UTF-16 units. */
export function utf16Offsets(text: string): (offset: number) => number {
  const offsets: number[] = [];
  let position = 0;
  for (const character of text) {
    offsets.push(position);
    position += character.length;
  }
  return (offset) => offsets[offset] ?? text.length;
}
