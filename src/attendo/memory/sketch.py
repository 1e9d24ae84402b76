"""Sketches of texts: a few hashes of character trigrams, by which similar texts are found.

A sketch has the smallest hashes of all trigrams of a text (bottom-k MinHash, Broder 1997): two
texts that have many trigrams in common have many hashes of their sketches in common, and an index
with a fixed number of rows per text finds them. Case and the values of digits do not count.
"""

from __future__ import annotations

import re
from heapq import nsmallest
from zlib import crc32

SKETCH_SIZE = 24
TRIGRAM = 3
HASH_BITS = 32
MIXER = 0x9E3779B1
"""Multiplied with the CRC, whose low bits depend on few characters (Knuth's golden ratio)."""
DIGITS = re.compile(r"\d")


def sketch(text: str) -> list[int]:
    """Return the smallest hashes of the trigrams of a text.

    >>> sketch("Delete 12 files?") == sketch("delete 34 files?")
    True
    """
    padded = f" {DIGITS.sub('0', text.casefold())} "
    count = max(len(padded) - TRIGRAM + 1, 1)
    return nsmallest(SKETCH_SIZE, {_hash(padded[i : i + TRIGRAM]) for i in range(count)})


def _hash(trigram: str) -> int:
    mixed: int = (crc32(trigram.encode("utf-8", "replace")) * MIXER) & (2**HASH_BITS - 1)
    return mixed ^ mixed >> 15
