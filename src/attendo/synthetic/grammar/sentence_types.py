"""The frequencies of the sentence types, and the sampling of a sentence of any type."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from attendo.synthetic.grammar import colloquial, complex_sentences, copula, sentences
from attendo.synthetic.grammar.phrases import NoCombinationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.synthetic.grammar.phrases import Core, WordSampler

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
    (copula.copula_noun, 3),
    (copula.become_noun, 1),
    (copula.demonstrative_copula, 1),
    (copula.copula_adjective, 5),
    (copula.comparison, 2),
    (copula.existential, 4),
    (copula.locative, 3),
    (copula.locative_question, 0.5),
    (copula.possession, 3),
    (complex_sentences.because, 5),
    (complex_sentences.although, 2),
    (complex_sentences.but_not, 3),
    (complex_sentences.and_then, 3),
    (complex_sentences.go_and_do, 2),
    (complex_sentences.contrast, 2),
    (complex_sentences.when_state, 2),
    (complex_sentences.when_event, 2),
    (complex_sentences.if_weather, 2),
    (colloquial.colloquial_pair, 3),
)
_MAX_ATTEMPTS = 100
_SENTENCE_TYPES = tuple(make_sentence for make_sentence, _ in _TYPE_WEIGHTS)
_CUMULATIVE_WEIGHTS = tuple(accumulate(weight for _, weight in _TYPE_WEIGHTS))


class Sentence(NamedTuple):
    """A sentence in both languages, with the cores of its clauses."""

    ko: str
    en: str
    cores: tuple[Core, ...]


def sample_sentence(sampler: WordSampler) -> Sentence | None:
    """Sample a sentence; return None if no compatible words were found.

    A type that fails is tried again, so that rare combinations do not change its frequency.
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
