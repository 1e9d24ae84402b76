/** Files that Python's `lzma` module has written (FORMAT_ALONE), with the size of the content in the header. */

import { createHash } from "node:crypto";

import { describe, expect, it } from "vitest";

import { decompressLzma } from "../../src/site/lzma";

const SIZE = 2470;
const SHA256 = "4f763e25935139da01b9dd9072ee3e67386e02c9c53eccaf728b34ef36f98bb5";
/** preset=9. */
const DEFAULT =
  "XQAAAASmCQAAAAAAAAB2Jk6uxV8wyAqH6Rw6n61PVYAKf8KH9OeQy5xPX1x5TFUFoALnymEnMHgS4ht/hGlcN4HzjeaP3dTEJXhogBsGXGygDkIGg3MaMApi6jwE8mWosE" +
  "lNXyDrbO+cvM+ulc/+ggZjxwrQAdIjdJtv4xC0DgTQWHzRjiPL8DwyW28QQlgk2WNFFLGoy+NC5IzId5lmS1rdbKh57pzlYkQKcKDUawAk91bviwlSKrPB3gBo+Hkk69Z1" +
  "lRziqyqMjg7WKORSXny6sh8wGzV7G3zwDoKL2Xk+KZ16qFOw2nI5NzHzr2fQnfbl+0XSKG7hMFJswWOC9PXSk1CuxPawDJgmb9EXb3QY3ZaJ7hx+f2LFRgpC9qFRs8aEsY" +
  "GL//Nw708=";
/** lc=0, lp=2, pb=1, a dictionary of 4 KiB. */
const OTHER =
  "PwAQAACmCQAAAAAAAAB2Jk9EtSEqdVqyoMsbfKWeGdEeGskTxojxyYa97tO3MTik8ElPDHEvh9i+zuqxtlS1j6RFaivoEN0d/372DbRkwDqHzMhzAcCb1sNNe0bJVxEy17" +
  "Mk74hj0h1teJ9Ugtg/Gxlhsgtr0VwhG8T2TcrE/9Lhi8SHNFzUFjjDO4GZyVA0uDV3lAQ1RXEyGHwpoJMI1aS+H6ALfkQRHQKptfYk8QutyjAuoFfOl5fQpVA23W2s3sv8" +
  "X1DTWUVFm03dN5/RbuCo2pDn1SVzU/5rxjHeH/zOsKDjZjWSQOlsa0IbukEoC0pEtIj+aNSCig3IdOtasYy4rfaTceNLu+0fI93q1uBTEbeCyM3rFlxQb9ME4Yii21Y8Ta" +
  "1nNWLN4WqjINTw0FqJ+OVo2pdxaHlv/2pZ8QA=";

function bytes(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, "base64"));
}

describe("LZMA", () => {
  it.each([DEFAULT, OTHER])("decompresses what Python has compressed", (file) => {
    const content = decompressLzma(bytes(file));
    expect(content.length).toBe(SIZE);
    expect(createHash("sha256").update(content).digest("hex")).toBe(SHA256);
  });

  it("refuses other files and damaged ones", () => {
    expect(() => decompressLzma(new Uint8Array([255, ...new Array<number>(30).fill(0)]))).toThrow("not an LZMA file");
    const damaged = bytes(DEFAULT);
    damaged.fill(0, 40);
    expect(() => {
      const content = decompressLzma(damaged);
      if (createHash("sha256").update(content).digest("hex") !== SHA256) throw new Error("damaged");
    }).toThrow("damaged");
  });
});
