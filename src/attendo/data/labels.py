"""Control tokens: a source that begins with `<polite>` asks for a polite translation.

The labels of training pairs are in the sources themselves, or a rule finds them in the targets:
`ko-register` reads the ending of a Korean sentence. Half of what a rule labels stays without, so
that the model also translates sources without a label.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from attendo.core.seeding import derive_seed
from attendo.data.corpus_config import Pair
from attendo.text.labels import korean_register, label_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LabelName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,30}$")]
LabelRule = Literal["ko-register"]
LABELED_SHARE = 0.5
LABEL_VERSION = 1
"""Increased whenever pairs would be labeled differently."""


RULES: Mapping[LabelRule, tuple[tuple[str, ...], Callable[[str], str | None]]] = {
    "ko-register": (("polite", "plain"), korean_register)
}
"""The labels of each rule, and what finds them in a target."""


def label_pairs(pairs: Iterable[Pair], rule: LabelRule, seed: int) -> Iterator[Pair]:
    """Yield the pairs, half of those that the rule can label with a label; the same by seed."""
    rng = random.Random(derive_seed(seed, "labels"))  # noqa: S311 - not for secrets
    _, find_label = RULES[rule]
    for pair in pairs:
        is_labeled = rng.random() < LABELED_SHARE
        label = find_label(pair.tgt) if is_labeled else None
        yield pair if label is None else Pair(label_source(pair.src, label), pair.tgt)
