"""Outputs that are empty, loops or copies are found, and their sources searched again."""

from __future__ import annotations

import pytest
import torch

from attendo.bundle import build_model
from attendo.decoding.hypothesis import Hypothesis, SearchResult
from attendo.decoding.options import DecodingOptions
from attendo.translator import Translator
from attendo.translator.failed_output import find_loop, find_problem, may_have_failed, strengthen
from attendo.translator.inflight import InflightTranslator
from attendo.translator.windows import TranslationItem

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
SOURCE = "ka to mi re"


@pytest.fixture
def translator(toy) -> Translator:
    torch.manual_seed(5)
    tokenizer = toy.prepared.tokenizer
    about = {"max_src_tokens": 30, "src_lang": "ko", "tgt_lang": "en"}
    return Translator(build_model("transformer", SIZES, tokenizer), tokenizer, about=about)


def hypothesis_of(translator: Translator, text: str, *, is_finished: bool = True) -> Hypothesis:
    ids = translator.tokenizer.encode_tgt([text])[0][:-1]
    return Hypothesis(ids, -1.0, -1.0, [-0.1] * (len(ids) + 1), is_finished)


def item_of(translator: Translator, text: str) -> TranslationItem:
    return TranslationItem(text, translator.tokenizer.encode_src([text])[0])


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([], None),
        ([7] * 7, None),
        ([7] * 8, (0, 1)),
        ([1, 2, 7, 8, 7, 8, 7, 8, 7, 8, 3], (2, 2)),
        ([1, 2, 3] * 3, None),
        ([9, *[1, 2, 3] * 4], (1, 3)),
        (list(range(40)), None),
    ],
)
def test_loops(ids, found):
    assert find_loop(ids) == found
    if found is not None:
        assert may_have_failed(ids, [], is_shared=True)


@pytest.mark.parametrize(
    ("source", "output", "problem"),
    [
        (SOURCE, "RE MI TO KA", None),
        (SOURCE, "", "empty_output"),
        (SOURCE, "KA TO " * 4, "loop"),
        ("ka to " * 4, "MI RE " * 4, None),  # the source repeats itself
        ("12 345", "", None),
    ],
)
def test_problems(translator, source, output, problem):
    assert (
        find_problem(translator, item_of(translator, source), hypothesis_of(translator, output))
        == problem
    )


@pytest.mark.parametrize(
    ("about", "source", "problem"),
    [
        ({"src_lang": "ko", "tgt_lang": "en"}, "KA TO MI RE", "untranslated"),
        ({"src_lang": "ko", "tgt_lang": "en"}, "KA TO", None),  # may be a name
        ({"src_lang": "en", "tgt_lang": "en"}, "KA TO MI RE", None),
        ({}, "KA TO MI RE", None),
    ],
)
def test_a_copy_of_the_source_is_a_problem_between_languages(toy, about, source, problem):
    tokenizer = toy.prepared.tokenizer
    translator = Translator(build_model("transformer", SIZES, tokenizer), tokenizer, about=about)
    item, output = item_of(translator, source), hypothesis_of(translator, source)
    assert find_problem(translator, item, output) == problem


def test_the_second_search_has_a_beam_and_no_repetitions():
    options = strengthen(DecodingOptions(beam_size=1, alpha=0.3))
    assert (options.beam_size, options.n_best, options.alpha) == (4, 4, 0.3)
    assert options.no_repeat_ngram == 3
    assert strengthen(DecodingOptions(beam_size=8, no_repeat_ngram=2)).no_repeat_ngram == 2


class ScriptedSearch:
    """Returns a loop, and the given outputs for the second search."""

    def __init__(self, translator: Translator, second: list[str]) -> None:
        self.translator, self.second = translator, second
        self.searched: list[list[str]] = []

    def __call__(self, items, options, **_):
        self.searched.append([item.source for item in items])
        texts = ["KA " * 9] if options.no_repeat_ngram == 0 else self.second
        found = SearchResult([hypothesis_of(self.translator, text) for text in texts])
        fine = SearchResult([hypothesis_of(self.translator, "MI RE")])
        return [found if item.source == SOURCE else fine for item in items]


@pytest.fixture
def scripted(translator, monkeypatch):
    def make(*second: str) -> ScriptedSearch:
        search = ScriptedSearch(translator, list(second))
        monkeypatch.setattr(translator.backend, "search", search)
        return search

    return make


def test_the_first_translation_of_the_second_search_is_taken(translator, scripted):
    search = scripted("TO " * 9, "KA TO MI")
    found = translator.translate([SOURCE, "mi re"], beam_size=1, retry=True)
    assert [str(one) for one in found] == ["KA TO MI", "MI RE"]
    assert [note.code for note in found[0].notes] == ["retried"]
    assert not found[1].notes
    assert search.searched == [[SOURCE, "mi re"], [SOURCE]]


def test_an_output_that_stays_a_loop_is_named_and_low(translator, scripted):
    scripted("TO " * 9, "")
    (found,) = translator.translate([SOURCE], beam_size=1, retry=True, confidence=True)
    assert [note.code for note in found.notes] == ["loop"]
    assert str(found) == ("KA " * 9).strip()
    assert found.confidence.band == "low"


@pytest.mark.parametrize("arguments", [{}, {"retry": True, "do_sample": True}])
def test_without_retry_and_when_sampling_there_is_one_search(translator, scripted, arguments):
    search = scripted("KA TO MI")
    (found,) = translator.translate([SOURCE], beam_size=1, **arguments)
    assert len(search.searched) == 1
    assert not found.notes


def test_n_best_lists_keep_their_length(translator, scripted):
    scripted("TO " * 9, "KA TO MI", "MI " * 9)
    (found,) = translator.translate([SOURCE], beam_size=2, n_best=2, retry=True)
    assert (str(found), len(found.alternatives)) == ("KA TO MI", 1)


@pytest.mark.parametrize("confidence", [False, True])
def test_texts_in_flight_are_searched_again_too(translator, confidence):
    arguments = {"beam_size": 1, "retry": True, "confidence": confidence}
    texts = ["ka to mi", "re so lu ka to", "mi mi re", "so"]
    expected = translator.translate(texts, split="never", **arguments)
    assert any(one.notes for one in expected)  # an untrained model repeats itself
    inflight = InflightTranslator.for_translator(translator, widths=(1,), num_slots=3)
    assert inflight is not None
    assert inflight.supports(arguments)
    for ticket, text in enumerate(texts):
        inflight.add(ticket, text, arguments)
    found: dict = {}
    while len(inflight):
        found |= dict(inflight.step())
    for ticket, right in enumerate(expected):
        assert found[ticket] == right
        assert found[ticket].notes == right.notes
        if confidence:
            assert found[ticket].confidence.band == right.confidence.band
