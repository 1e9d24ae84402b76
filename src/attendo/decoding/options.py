"""The settings of a search: its kind and size, special ids, and constraints of one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol, Self

from pydantic import Field, model_validator

from attendo.core.config import MAX_SEED, Config, Count, Natural
from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BEAM = 256
LengthNorm = Literal["paper", "power"]


class DecodingOptions(Config):
    """How to search for the best sequence; each default is the paper's (section 6.1)."""

    beam_size: Annotated[int, Field(ge=1, le=MAX_BEAM)] = 4
    """Hypotheses kept at every step; 1 is greedy search."""
    n_best: Count = 1
    """Translations returned per sentence, best first; at most `beam_size`."""
    alpha: Annotated[float, Field(ge=-10.0, le=10.0)] = 0.6
    """The length penalty: 0 is the plain log-probability, which prefers short sentences."""
    length_norm: LengthNorm = "paper"
    """Divide by ((5 + length) / 6) ** alpha ("paper") or by length ** alpha ("power")."""
    max_extra_tokens: Natural = 50
    """Tokens by which a translation may exceed the length of its source."""
    max_length: Count | None = None
    """The maximum number of tokens, whatever the length of the source."""
    min_length: Natural = 0
    """The minimum number of tokens before the end symbol."""
    no_repeat_ngram: Natural = 0
    """No sequence of this many tokens occurs twice; 0 is off."""
    unk: Literal["avoid", "keep", "copy"] = "avoid"
    """Never generate the unknown token, keep it, or replace it by the attended source word."""
    num_groups: Count = 1
    """Groups of the beam that avoid each other's tokens (diverse beam search); 1 is off."""
    diversity_penalty: Annotated[float, Field(ge=0.0, le=1e6)] = 2.0
    """The cost of a token for each earlier group that chose it at the same step."""
    do_sample: bool = False
    """Sample every token instead of searching; `n_best` samples are independent."""
    temperature: Annotated[float, Field(ge=1e-4, allow_inf_nan=False)] = 1.0
    """Sampling: below 1, likely tokens become more likely."""
    top_k: Natural = 0
    """Sampling: use only the k most likely tokens; 0 is all."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Sampling: use only the fewest tokens that together have this probability."""
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    """Sampling: the same seed and source give the same sample, whatever else is in the batch."""

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        reasons = []
        if not self.do_sample and self.n_best > self.beam_size:
            reasons.append(
                message(
                    "n_best {count} is more than beam_size {beam}",
                    count=self.n_best,
                    beam=self.beam_size,
                )
            )
        if self.beam_size % self.num_groups:
            reasons.append(
                message(
                    "beam_size {beam_size} is not a multiple of num_groups {num_groups}",
                    beam_size=self.beam_size,
                    num_groups=self.num_groups,
                )
            )
        if not self.do_sample and (self.temperature != 1.0 or self.top_k or self.top_p != 1.0):
            reasons.append(
                message(
                    "temperature, top_k and top_p need sampling: set do_sample (on the "
                    "command line: --sample)"
                )
            )
        if self.max_length is not None and self.min_length > self.max_length:
            reasons.append(
                message(
                    "min_length {min_length} is more than max_length {max_length}",
                    min_length=self.min_length,
                    max_length=self.max_length,
                )
            )
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self


class SpecialIds(NamedTuple):
    """The ids of the special symbols."""

    start_id: int
    end_id: int
    pad_id: int = 0
    unk_id: int | None = None


class RequiredPhrase(Protocol):
    """A phrase that must occur in a translation, as text rather than as particular ids."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The ids in which the model would write the phrase."""
        ...

    def is_satisfied(self, ids: Sequence[int]) -> bool:
        """Return whether the phrase occurs in the text of `ids`."""
        ...


class ForbiddenPhrase(Protocol):
    """A phrase that must not occur in a translation."""

    def violates(self, ids: Sequence[int], next_id: int) -> bool:
        """Return whether the phrase would occur for good once `next_id` follows `ids`."""
        ...


@dataclass(frozen=True)
class Constraints:
    """The constraints of one sentence; a sentence without any has None instead."""

    prefix: tuple[int, ...] = ()
    """The first ids of the translation."""
    required: tuple[RequiredPhrase, ...] = ()
    forbidden: tuple[ForbiddenPhrase, ...] = ()
    ending_ids: frozenset[int] = frozenset()
    """Tokens that may end a sentence: required phrases are placed before, if possible."""

    def __bool__(self) -> bool:
        """Return whether anything is constrained."""
        return bool(self.prefix or self.required or self.forbidden)

    @property
    def has_phrases(self) -> bool:
        """Return whether the candidates of a beam must be chosen by their phrases."""
        return bool(self.required or self.forbidden)
