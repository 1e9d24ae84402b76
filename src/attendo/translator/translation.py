"""A translation: its text, scores and confidence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from attendo.text.tokenizer import SPACE_SYMBOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.tokenizer import Tokenizer

DIGITS = 4


class WordConfidence(NamedTuple):
    """A word and its probability, given the words before it."""

    text: str
    probability: float


class Confidence(NamedTuple):
    """The confidence of the model: probabilities that were calibrated on the dev set."""

    probability: float
    """Of exactly this sentence; small for long ones."""
    mean: float
    """The geometric mean over the tokens: comparable between sentences."""
    words: list[WordConfidence]

    @classmethod
    def of_empty_text(cls) -> Confidence:
        """Return the confidence of a text without words: certainty."""
        return cls(1.0, 1.0, [])

    @classmethod
    def from_tokens(
        cls, tokenizer: Tokenizer, ids: Sequence[int], log_probs: Sequence[float]
    ) -> Confidence:
        """Return the confidence of a translation from the log-probabilities of its tokens.

        `log_probs` may have one more element than `ids`: the end symbol's.
        """
        total = sum(log_probs)
        words = []
        for indices in tokens_to_words(tokenizer.tgt_pieces(ids)):
            text = tokenizer.decode_tgt([[ids[index] for index in indices]])[0]
            if text:  # a space alone is not a word
                probability = math.exp(sum(log_probs[index] for index in indices))
                words.append(WordConfidence(text, probability))
        # After a label the end symbol is certain, so it says nothing about the confidence.
        length = len(ids) if tokenizer.tgt_kind == "label" else len(log_probs)
        return cls(math.exp(total), math.exp(total / max(length, 1)), words)

    @classmethod
    def join(cls, parts: Sequence[Confidence], sizes: Sequence[int]) -> Confidence:
        """Return the confidence of a text from those of its segments with `sizes` tokens."""
        logs = [math.log(max(part.mean, 1e-300)) * n for part, n in zip(parts, sizes, strict=True)]
        return cls(
            math.prod(part.probability for part in parts),
            math.exp(sum(logs) / max(sum(sizes), 1)),
            [word for part in parts for word in part.words],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "probability": self.probability,
            "mean": round(self.mean, DIGITS),
            "words": [
                {"text": w.text, "probability": round(w.probability, DIGITS)} for w in self.words
            ],
        }


class Translation(str):
    """The translated text, a `str` with scores and other details as attributes."""

    __slots__ = (
        "alternatives", "confidence", "ids", "is_finished", "log_prob", "notes", "score", "source",
        "tokens", "trace",
    )  # fmt: skip

    source: str
    log_prob: float
    """Of the sequence of tokens; the sum over the segments of a text."""
    score: float
    """The log-probability divided by the length penalty: hypotheses are ranked by it."""
    ids: list[int]
    """The ids of the tokens, without the start and end symbols."""
    tokens: list[str]
    is_finished: bool
    """False if the maximum length was reached before the end symbol."""
    confidence: Confidence | None
    alternatives: list[Translation]
    """The next best translations, if `n_best` is more than 1."""
    trace: list[dict[str, Any]] | None
    """The trace of the search of each segment, if it was requested."""
    notes: list[str]
    """Warnings, e.g. that a translation was truncated."""

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
        """Create a translation."""
        self = super().__new__(cls, text)
        self.source, self.log_prob, self.score = source, log_prob, score
        self.ids, self.tokens = list(ids), list(tokens)
        self.is_finished, self.confidence = is_finished, confidence
        self.alternatives, self.trace, self.notes = list(alternatives), trace, list(notes)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary; details that were not requested are omitted."""
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


def tokens_to_words(pieces: Sequence[str]) -> list[list[int]]:
    """Return the indices of the pieces of each word; a leading space symbol starts a word.

    >>> tokens_to_words(["▁나는", "▁학", "생", "이다", "."])
    [[0], [1, 2, 3, 4]]
    """
    words: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if piece.startswith(SPACE_SYMBOL) or not words:
            words.append([])
        words[-1].append(index)
    return words
