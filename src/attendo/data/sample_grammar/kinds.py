"""How often each kind of sentence comes, and one draw of any of them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from attendo.data.sample_grammar import being, colloquial, joined, sentences
from attendo.data.sample_grammar.phrases import NoChoiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.data.sample_grammar.phrases import Core, Draw

_WEIGHTS: tuple[tuple[Callable[[Draw], tuple[str, str]], float], ...] = (
    (sentences.state, 30),
    (sentences.state_barely, 4),
    (sentences.wish, 4),
    (sentences.be_able_or_obliged, 5),
    (sentences.ask, 6),
    (sentences.ask_who, 2),
    (sentences.ask_what, 2),
    (sentences.ask_where, 4),
    (sentences.request, 2),
    (sentences.propose, 2),
    (sentences.talk_of_weather, 1),
    (being.be_something, 3),
    (being.become_something, 1),
    (being.show_something, 1),
    (being.be_somehow, 5),
    (being.compare, 2),
    (being.exist, 4),
    (being.be_somewhere, 3),
    (being.ask_where_it_is, 0.5),
    (being.have, 3),
    (joined.because, 5),
    (joined.although, 2),
    (joined.but_not, 3),
    (joined.and_then, 3),
    (joined.go_and_do, 2),
    (joined.contrast, 2),
    (joined.when_so, 2),
    (joined.when_it_happened, 2),
    (joined.if_weather, 2),
    (colloquial.chat, 3),
)
_TRIES = 100
_KINDS = tuple(kind for kind, _ in _WEIGHTS)
_BOUNDS = tuple(accumulate(weight for _, weight in _WEIGHTS))


class Sentence(NamedTuple):
    """A sentence in both languages, with the cores of its clauses."""

    ko: str
    en: str
    cores: tuple[Core, ...]


def draw_sentence(draw: Draw) -> Sentence | None:
    """Draw a sentence; None where no words that go together were found.

    A kind that fails is tried again, so that rare combinations do not change how often it comes.
    """
    kind = draw.source.choices(_KINDS, cum_weights=_BOUNDS)[0]
    for _ in range(_TRIES):
        draw.cores.clear()
        try:
            ko, en = kind(draw)
        except NoChoiceError:
            continue
        return Sentence(ko, en, tuple(draw.cores))
    return None
