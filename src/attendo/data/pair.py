"""The unit of every corpus: a sentence and its translation."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """One source sentence and its target.

    >>> Pair("나는 학생이다.", "I am a student.").tgt
    'I am a student.'
    """

    src: str
    tgt: str

    def swapped(self) -> Pair:
        """Swap the sides."""
        return Pair(self.tgt, self.src)
