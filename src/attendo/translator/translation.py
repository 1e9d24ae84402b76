"""A translation: the text itself, with all that is known of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

DIGITS = 4


class WordConfidence(NamedTuple):
    """A word and how sure the model is of it, given all before it."""

    text: str
    probability: float


class Confidence(NamedTuple):
    """How sure the model is, by probabilities that were calibrated on dev."""

    probability: float
    """Of the whole sentence, exactly these words; small for long ones."""
    mean: float
    """The geometric mean over tokens: comparable between sentences."""
    words: list[WordConfidence]

    @classmethod
    def join(cls, parts: Sequence[Confidence], sizes: Sequence[int]) -> Confidence:
        """Give that of a text out of those of its pieces, which have so many tokens each."""
        logs = [math.log(max(part.mean, 1e-300)) * n for part, n in zip(parts, sizes, strict=True)]
        return cls(
            math.prod(part.probability for part in parts),
            math.exp(sum(logs) / max(sum(sizes), 1)),
            [word for part in parts for word in part.words],
        )

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON."""
        return {
            "probability": self.probability,
            "mean": round(self.mean, DIGITS),
            "words": [
                {"text": w.text, "probability": round(w.probability, DIGITS)} for w in self.words
            ],
        }


class Translation(str):
    """A `str`, the translated text; what else is known of it are its attributes."""

    __slots__ = (
        "alternatives", "confidence", "ids", "is_finished", "log_prob", "notes", "score", "source",
        "tokens", "trace",
    )  # fmt: skip

    source: str
    log_prob: float
    """Of the sequence of tokens; of all pieces together where the text was cut."""
    score: float
    """The log-probability over the length penalty: what the search ranks by."""
    ids: list[int]
    """Of its tokens, without the start and end symbols."""
    tokens: list[str]
    is_finished: bool
    """False where the limit of the length came before the end."""
    confidence: Confidence | None
    alternatives: list[Translation]
    """The next best ones, where `n_best` asks for them."""
    trace: list[dict[str, Any]] | None
    """How each piece of the text was decided, where it is asked for."""
    notes: list[str]
    """What the reader should know: that the text was cut into pieces, that the end is missing."""

    def __new__(
        cls,
        text: str,
        *,
        source: str = "",
        log_prob: float = 0.0,
        score: float = 0.0,
        ids: Sequence[int] = (),
        tokens: Sequence[str] = (),
        is_finished: bool = True,
        confidence: Confidence | None = None,
        alternatives: Sequence[Translation] = (),
        trace: list[dict[str, Any]] | None = None,
        notes: Sequence[str] = (),
    ) -> Self:
        """Take the text and what is known of it."""
        self = super().__new__(cls, text)
        self.source, self.log_prob, self.score = source, log_prob, score
        self.ids, self.tokens = list(ids), list(tokens)
        self.is_finished, self.confidence = is_finished, confidence
        self.alternatives, self.trace, self.notes = list(alternatives), trace, list(notes)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON; what was not asked for is left out."""
        data: dict[str, Any] = {
            "source": self.source,
            "text": str(self),
            "score": round(self.score, DIGITS),
            "log_prob": round(self.log_prob, DIGITS),
            "tokens": self.tokens,
        }
        if not self.is_finished:
            data["is_finished"] = False
        if self.confidence is not None:
            data["confidence"] = self.confidence.to_dict()
        if self.alternatives:
            data["alternatives"] = [
                {key: value for key, value in one.to_dict().items() if key != "source"}
                for one in self.alternatives
            ]
        if self.notes:
            data["notes"] = self.notes
        if self.trace is not None:
            data["trace"] = self.trace
        return data
