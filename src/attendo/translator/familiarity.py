"""Detects source texts that are unlike the training data, where no score can be trusted.

Two signs: tokens that never occurred in the sources of the training data, and rare tokens. The
rarity of a text is its number of bits per character under the unigram distribution of the training
tokens. Bits per character separate better than bits per token, since an unfamiliar word is split
into many frequent pieces. More bits than 99 % of the dev sources have is unfamiliar.
"""

from __future__ import annotations

import base64
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.config import Config
from attendo.core.message import message
from attendo.text.normalize import normalize
from attendo.text.tokenizer import END_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.translator.translator import Translator

MIN_DEV_TEXTS = 100
"""With fewer texts of dev their 99th percentile is not known."""
DEV_QUANTILE = 0.99
CODES_PER_OCTAVE = 8
"""A count is stored as one byte, 1 + 8 log2(count): at most 5 % off, up to 3 billion."""
DIGITS = 2
NUM_CHECKED, MAX_UNSEEN_SHARE = 100, 0.5
"""Texts that are checked before a translation, and the share of their tokens that may be unseen."""


class Unfamiliarity(NamedTuple):
    """Why a source text is unlike the training data."""

    num_tokens: int
    num_unseen: int
    """Tokens that never occurred in training, or are unknown to the tokenizer."""
    bits_per_character: float | None = None
    """None if the text is not rarer than the dev set."""
    max_bits_per_character: float | None = None
    """Of 99 % of the dev sources."""
    has_counts: bool = True
    """Whether the tokens of the training data were counted."""

    @property
    def reasons(self) -> list[str]:
        """The reasons as messages."""
        reasons = []
        if self.num_unseen:
            template = (
                "tokens never seen in training: {count} of {total}"
                if self.has_counts
                else "tokens unknown to the tokenizer: {count} of {total}"
            )
            reasons.append(message(template, count=self.num_unseen, total=self.num_tokens))
        if self.bits_per_character is not None:
            reasons.append(
                message(
                    "rarer words than in 99% of the dev set ({bits:.1f} bits per character, there "
                    "at most {most:.1f})",
                    bits=self.bits_per_character,
                    most=self.max_bits_per_character,
                )
            )
        return reasons

    @classmethod
    def join(cls, parts: Sequence[Unfamiliarity | None]) -> Unfamiliarity | None:
        """Return that of a text from those of its segments; None if all are familiar."""
        unfamiliar = [part for part in parts if part is not None]
        if not unfamiliar:
            return None
        rare = [part for part in unfamiliar if part.bits_per_character is not None]
        rarest = max(rare, key=lambda part: part.bits_per_character or 0.0, default=unfamiliar[0])
        return rarest._replace(
            num_tokens=sum(part.num_tokens for part in unfamiliar),
            num_unseen=sum(part.num_unseen for part in unfamiliar),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "num_tokens": self.num_tokens,
            "num_unseen": self.num_unseen,
            "bits_per_character": self.bits_per_character,
            "max_bits_per_character": self.max_bits_per_character,
            "reasons": list(map(str, self.reasons)),
        }


class Familiarity(Config):
    """The source tokens of the training data; `model_dump(mode="json")` saves them."""

    codes: str
    """One byte per token of the vocabulary, in base64: 0 if it never occurred."""
    max_bits_per_character: float | None = None
    """Of 99 % of the dev sources; None if there are too few."""

    @classmethod
    def fit(
        cls, counts: NDArray[np.int64], texts: Sequence[str], id_lists: Sequence[Sequence[int]]
    ) -> Familiarity:
        """Fit it on the counts of the training tokens, and on the sources of dev with their ids."""
        codes = np.zeros(len(counts), np.uint8)
        seen = counts > 0
        codes[seen] = 1 + np.rint(CODES_PER_OCTAVE * np.log2(counts[seen])).clip(0, 254)
        counted = cls(codes=base64.b64encode(codes.tobytes()).decode())
        if len(texts) < MIN_DEV_TEXTS:
            return counted
        rarities = [counted.bits_per_character(*pair) for pair in zip(texts, id_lists, strict=True)]
        return counted.replace(
            max_bits_per_character=round(float(np.quantile(rarities, DEV_QUANTILE)), DIGITS)
        )

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """How often each token occurred; a token unknown to the tokenizer is never familiar."""
        codes = np.frombuffer(base64.b64decode(self.codes), np.uint8).astype(np.float64)
        counts = np.where(codes > 0, 2.0 ** ((codes - 1) / CODES_PER_OCTAVE), 0.0)
        counts[[UNK_ID, END_ID]] = 0.0
        return counts

    @cached_property
    def _bits(self) -> NDArray[np.float64]:
        smoothed = self.counts + 1.0
        bits: NDArray[np.float64] = -np.log2(smoothed / smoothed.sum())
        return bits

    def bits_per_character(self, text: str, ids: Sequence[int]) -> float:
        """Return how rare the tokens of a text are; spaces are not counted."""
        num_characters = sum(not character.isspace() for character in normalize(text))
        tokens = [token for token in ids if token != END_ID]
        return float(self._bits[tokens].sum()) / max(num_characters, 1)

    def check(self, text: str, ids: Sequence[int]) -> Unfamiliarity | None:
        """Return why a source text is unlike the training data, or None if it is not."""
        tokens = [token for token in ids if token != END_ID]
        num_unseen = int((self.counts[tokens] == 0).sum())
        bits = round(self.bits_per_character(text, ids), DIGITS)
        is_rare = self.max_bits_per_character is not None and bits > self.max_bits_per_character
        if not tokens or not (num_unseen or is_rare):
            return None
        return Unfamiliarity(
            len(tokens),
            num_unseen,
            bits if is_rare else None,
            self.max_bits_per_character if is_rare else None,
        )


def check_familiarity(
    familiarity: Familiarity | None, text: str, ids: Sequence[int]
) -> Unfamiliarity | None:
    """Return why a source text is unlike the training data; without counts only unknown tokens."""
    if familiarity is not None:
        return familiarity.check(text, ids)
    num_unknown = sum(token == UNK_ID for token in ids)
    if not num_unknown:
        return None
    return Unfamiliarity(sum(token != END_ID for token in ids), num_unknown, has_counts=False)


def warn_unfamiliar(translator: Translator, sources: Sequence[str]) -> str | None:
    """Return a warning if most tokens of the first sources never occurred in training."""
    texts = sources[:NUM_CHECKED]
    id_lists = translator.tokenizer.encode_src(texts)
    found = Unfamiliarity.join(
        [
            check_familiarity(translator.familiarity, text, ids)
            for text, ids in zip(texts, id_lists, strict=True)
        ]
    )
    num_tokens = sum(token != END_ID for ids in id_lists for token in ids)
    if found is None or found.num_unseen <= MAX_UNSEEN_SHARE * num_tokens:
        return None
    return message(
        "warning: {count} of {total} source tokens never occurred in training: the translation "
        "means nothing; check the language of the input",
        count=found.num_unseen,
        total=num_tokens,
    )
