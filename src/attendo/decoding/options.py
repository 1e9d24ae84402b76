"""What a search may be told: its kind and size, the rules, and what one sentence demands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BEAM = 256
LengthNorm = Literal["paper", "power"]


class DecodingOptions(Config):
    """How the best sequence is looked for; each default is the paper's (section 6.1)."""

    beam_size: Annotated[int, Field(ge=1, le=MAX_BEAM)] = 4
    """Hypotheses kept at every step; 1 is greedy search."""
    n_best: Count = 1
    """Translations given for a sentence, best first; no more than the beam holds."""
    alpha: Annotated[float, Field(ge=-10.0, le=10.0)] = 0.6
    """The length penalty: 0 is the plain log-probability, which prefers short sentences."""
    length_norm: LengthNorm = "paper"
    """Divide by ((5 + length) / 6) ** alpha as in the paper, or by length ** alpha as others do."""
    max_extra_tokens: Annotated[int, Field(ge=0)] = 50
    """Tokens that a translation may be longer than its source."""
    max_length: Count | None = None
    """Tokens that no translation exceeds, whatever its source."""
    min_length: Annotated[int, Field(ge=0)] = 0
    """Tokens before the end symbol may come."""
    no_repeat_ngram: Annotated[int, Field(ge=0)] = 0
    """No sequence of so many tokens comes twice; 0 is off."""
    unk: Literal["avoid", "keep", "copy"] = "avoid"
    """The unknown piece: never say it, say it, or put the attended source word in its place."""
    num_groups: Count = 1
    """Parts of the beam that keep away from each other (diverse beam search); 1 is off."""
    diversity_penalty: Annotated[float, Field(ge=0.0, le=1e6)] = 2.0
    """What a token costs for each earlier group that has just chosen it."""
    do_sample: bool = False
    """Draw every token by chance instead of searching; `n_best` draws are independent."""
    temperature: Annotated[float, Field(ge=1e-4, allow_inf_nan=False)] = 1.0
    """Of sampling: below 1 the likely becomes likelier."""
    top_k: Annotated[int, Field(ge=0)] = 0
    """Of sampling: draw from so many of the likeliest tokens; 0 is all."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Of sampling: draw from the fewest tokens that together have this probability."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of sampling: the same seed and source give the same draw, whatever else is translated."""

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
                f"beam_size {self.beam_size} cannot be split over num_groups {self.num_groups}"
            )
        if not self.do_sample and (self.temperature != 1.0 or self.top_k or self.top_p != 1.0):
            reasons.append("temperature, top_k and top_p are of sampling: add do_sample=True")
        if self.max_length is not None and self.min_length > self.max_length:
            reasons.append(
                f"min_length {self.min_length} is more than max_length {self.max_length}"
            )
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self


class SpecialIds(NamedTuple):
    """The ids that mean no text."""

    start_id: int
    end_id: int
    pad_id: int = 0
    unk_id: int | None = None


class RequiredPhrase(Protocol):
    """What must stand in a translation; whoever knows the text behind ids says whether it does."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The ids in which the model would write it."""
        ...

    def is_satisfied(self, ids: Sequence[int]) -> bool:
        """Tell whether the phrase stands in the text of `ids`."""
        ...


class ForbiddenPhrase(Protocol):
    """What must not stand in a translation."""

    def violates(self, ids: Sequence[int], next_id: int) -> bool:
        """Tell whether the phrase would stand there for good once `next_id` follows `ids`."""
        ...


@dataclass(frozen=True)
class Constraints:
    """What one sentence asks for beside the options of all."""

    prefix: tuple[int, ...] = ()
    """The translation begins with these ids."""
    required: tuple[RequiredPhrase, ...] = ()
    forbidden: tuple[ForbiddenPhrase, ...] = ()

    @property
    def has_phrases(self) -> bool:
        """Tell whether beams must be chosen by their phrases."""
        return bool(self.required or self.forbidden)
