"""How often each kind of sentence comes, and one draw of any of them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from attendo.data.sample_grammar import being, colloquial, joined, sentences
from attendo.data.sample_grammar.phrases import NoCombinationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.data.sample_grammar.phrases import Core, WordSampler

_TYPE_WEIGHTS: tuple[tuple[Callable[[WordSampler], tuple[str, str]], float], ...] = (
    (sentences.statement, 30),
    (sentences.bare_statement, 4),
    (sentences.desire, 4),
    (sentences.modal_statement, 5),
    (sentences.yes_no_question, 6),
    (sentences.subject_question, 2),
    (sentences.object_question, 2),
    (sentences.adverbial_question, 4),
    (sentences.polite_request, 2),
    (sentences.suggestion, 2),
    (sentences.weather_statement, 1),
    (being.copula_noun, 3),
    (being.become_noun, 1),
    (being.demonstrative_copula, 1),
    (being.copula_adjective, 5),
    (being.comparison, 2),
    (being.existential, 4),
    (being.locative, 3),
    (being.locative_question, 0.5),
    (being.possession, 3),
    (joined.because, 5),
    (joined.although, 2),
    (joined.but_not, 3),
    (joined.and_then, 3),
    (joined.go_and_do, 2),
    (joined.contrast, 2),
    (joined.when_state, 2),
    (joined.when_event, 2),
    (joined.if_weather, 2),
    (colloquial.colloquial_pair, 3),
)
_MAX_ATTEMPTS = 100
_SENTENCE_TYPES = tuple(kind for kind, _ in _TYPE_WEIGHTS)
_CUMULATIVE_WEIGHTS = tuple(accumulate(weight for _, weight in _TYPE_WEIGHTS))


class Sentence(NamedTuple):
    """A sentence in both languages, with the cores of its clauses."""

    ko: str
    en: str
    cores: tuple[Core, ...]


def sample_sentence(sampler: WordSampler) -> Sentence | None:
    """Draw a sentence; None where no words that go together were found.

    A kind that fails is tried again, so that rare combinations do not change how often it comes.
    """
    make_sentence = sampler.rng.choices(_SENTENCE_TYPES, cum_weights=_CUMULATIVE_WEIGHTS)[0]
    for _ in range(_MAX_ATTEMPTS):
        sampler.cores.clear()
        try:
            ko, en = make_sentence(sampler)
        except NoCombinationError:
            continue
        return Sentence(ko, en, tuple(sampler.cores))
    return None
