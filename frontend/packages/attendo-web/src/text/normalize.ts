/** Unicode normalization of text: NFC, single spaces, no invisible characters. The same as `attendo.text.normalize`. */

/** White space as Python defines it. */
export const WHITE_SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const INVISIBLE_CHARACTERS = new RegExp(
  "[\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f" + // control characters other than white space
    "\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e" + // soft hyphen, zero width, direction marks
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb" + // zero-width joiners and marks
    "\\ud800-\\udfff\\u{e0000}-\\u{e007f}]", // surrogates, tags
  "gu",
);
/** The Hangul fillers are displayed as blanks. */
const BLANKS = new RegExp(`[${WHITE_SPACE}\\u3164\\uffa0]+`, "gu");

/** Return a text in NFC, with single spaces and visible characters. */
export function normalize(text: string): string {
  // NFC comes after the removal: an invisible character may have separated a letter from its accent.
  const visible = text.replace(INVISIBLE_CHARACTERS, "").replace(/[\u3164\uffa0]/g, " ").normalize("NFC");
  return visible.replace(BLANKS, " ").replace(/^ | $/g, "");
}
