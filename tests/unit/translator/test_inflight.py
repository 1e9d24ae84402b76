"""Texts that come one after another get the translations that they get together."""

from __future__ import annotations

import pytest
import torch

from attendo.bundle import build_model
from attendo.decoding.hypothesis import SearchResult
from attendo.translator import Translator
from attendo.translator.copying import SpanCopier
from attendo.translator.inflight import InflightTranslator, TooLongForSlotError
from attendo.translator.translation import to_translation

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
TEXTS = [
    "ka to mi",
    "ka to re so lu",
    "",
    " \n ",
    "mi 12345 re so",
    "http://a.example/x ka",
    "so\n\n ka to mi",
    "ka " * 20,
]


@pytest.fixture
def random_translator(toy) -> Translator:
    torch.manual_seed(5)
    tokenizer = toy.prepared.tokenizer
    about = {"max_src_tokens": 12}
    return Translator(build_model("transformer", SIZES, tokenizer), tokenizer, about=about)


def make_inflight(translator: Translator) -> InflightTranslator:
    inflight = InflightTranslator.for_translator(translator, widths=(1, 4), num_slots=3)
    assert inflight is not None
    return inflight


def run_all(inflight: InflightTranslator) -> dict:
    found: dict = {}
    while len(inflight):
        found |= dict(inflight.step())
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        {"beam_size": 4},
        {"beam_size": 1, "copy_spans": "never"},
        {"beam_size": 4, "n_best": 3, "confidence": True, "copy_spans": "always"},
        {"beam_size": 4, "max_length": 3, "unk": "copy"},
    ],
)
def test_the_translations_are_those_of_the_translator(random_translator, arguments):
    inflight = make_inflight(random_translator)
    assert inflight.supports(arguments)
    found: dict = {}
    for ticket, text in enumerate(TEXTS):
        inflight.add(ticket, text, arguments)
        found |= dict(inflight.step())
    found |= run_all(inflight)
    expected = random_translator.translate(TEXTS, split="never", **arguments)
    for ticket, right in enumerate(expected):
        assert found[ticket] == right
        assert found[ticket].notes == right.notes
        assert found[ticket].alternatives == right.alternatives
        assert found[ticket].score == pytest.approx(right.score, abs=1e-4)
        assert (found[ticket].confidence is None) == (right.confidence is None)


@pytest.mark.parametrize(
    "arguments",
    [
        {"beam_size": 3},
        {"beam_size": 4, "do_sample": True},
        {"beam_size": 4, "no_repeat_ngram": 2},
        {"beam_size": 4, "num_groups": 2},
        {"beam_size": 4, "required": ["KA"]},
        {"beam_size": 4, "glossary": {"ka": "KA"}},
        {"beam_size": 4, "prefix": "KA"},
        {"beam_size": 4, "trace": True},
        {"beam_size": 4, "max_extra_tokens": 500},
        {"beam_size": 4, "n_best": 9},
        {"beam_size": 4, "no_such_option": 1},
        {"beam_size": 4, "copy_spans": "sometimes"},
    ],
)
def test_what_needs_a_search_of_its_own_is_not_supported(random_translator, arguments):
    assert not make_inflight(random_translator).supports(arguments)


def test_one_broken_text_affects_no_other(random_translator, monkeypatch):
    inflight = make_inflight(random_translator)

    def fail_for_one(translator, item, *args):
        if "mi" in item.source:
            raise RuntimeError("broken")
        return to_translation(translator, item, *args)

    monkeypatch.setattr("attendo.translator.inflight.to_translation", fail_for_one)
    for ticket, text in enumerate(["ka to", "ka mi", "mi\nka"]):
        inflight.add(ticket, text, {"beam_size": 1})
    found = run_all(inflight)
    assert isinstance(found[1], RuntimeError)
    assert isinstance(found[2], RuntimeError)
    assert found[0] == random_translator.translate(["ka to"], beam_size=1)[0]
    assert len(inflight.decoder) == 0


def test_a_step_that_fails_ends_those_that_took_part(random_translator, monkeypatch):
    inflight = make_inflight(random_translator)
    (search, *_) = inflight.decoder._searches
    with monkeypatch.context() as patch:
        patch.setattr(search, "_launch", None)
        inflight.add("lost", "ka to", {"beam_size": 1})
        (lost,) = run_all(inflight).values()
    assert isinstance(lost, TypeError)
    inflight.add("next", "ka to", {"beam_size": 1})
    assert run_all(inflight) == {"next": random_translator.translate(["ka to"], beam_size=1)[0]}


def test_where_the_memory_is_too_small_fewer_slots_are_used(random_translator, monkeypatch):
    inflight = make_inflight(random_translator)
    (search, *_) = inflight.decoder._searches
    launch = search._launch

    def run_out_of_memory():
        if search.num_active > 1:
            raise torch.OutOfMemoryError
        return launch()

    monkeypatch.setattr(search, "_launch", run_out_of_memory)
    for ticket, text in enumerate(TEXTS[:5]):
        inflight.add(ticket, text, {"beam_size": 1})
    found = run_all(inflight)
    assert [found[n] for n in range(5)] == random_translator.translate(TEXTS[:5], beam_size=1)
    assert search.max_active == 1


def test_cancelled_texts_leave_nothing_behind(random_translator):
    inflight = make_inflight(random_translator)
    inflight.add("a", "ka to mi\nre so", {"beam_size": 4})
    inflight.step()
    inflight.add("b", "mi", {"beam_size": 4})
    inflight.cancel("a")
    inflight.cancel("b")
    assert len(inflight) == len(inflight.decoder) == 0
    assert inflight.decoder.num_active == 0


def test_a_text_that_is_too_long_for_a_slot_fails_alone(random_translator, monkeypatch):
    """Searched in a step, it would stop all others."""
    inflight = make_inflight(random_translator)
    add = inflight.decoder.add
    monkeypatch.setattr(
        inflight.decoder, "add", lambda key, *rest: key[0] != "long" and add(key, *rest)
    )
    inflight.add("long", "ka to mi", {"beam_size": 4})
    inflight.add("short", "ka", {"beam_size": 4})
    found = run_all(inflight)
    assert isinstance(found["long"], TooLongForSlotError)
    assert found["short"] == random_translator.translate(["ka"])[0]
    assert len(inflight) == len(inflight.decoder) == 0


def test_other_architectures_have_no_slots(toy):
    tokenizer = toy.prepared.tokenizer
    model = build_model("rnn-attention", {"d_model": 16, "num_layers": 1}, tokenizer)
    assert InflightTranslator.for_translator(Translator(model, tokenizer), widths=(1,)) is None


def test_slots_are_checked_against_the_usual_search(random_translator, monkeypatch):
    inflight = make_inflight(random_translator)
    assert inflight.agrees_with_search()
    assert len(inflight.decoder) == 0
    (search, *_) = inflight.decoder._searches
    monkeypatch.setattr(search.steps.state.decoder, "admit", lambda *_: None)
    assert not inflight.agrees_with_search()


@pytest.mark.parametrize("arguments", [{"beam_size": 4}, {"beam_size": 4, "n_best": 2}])
@pytest.mark.parametrize("has_other", [True, False])
def test_translations_with_other_placeholders_are_those_of_the_translator(
    random_translator, monkeypatch, arguments, has_other
):
    chosen = []

    def choose_last(_copier, _item, result, options):
        if not has_other:
            return None
        chosen.append(SearchResult(result.hypotheses[::-1][: options.n_best]))
        return chosen[-1]

    def is_chosen(_copier, _item, result):
        return any(result is one for one in chosen)

    monkeypatch.setattr("attendo.translator.copying.has_unknown", lambda *_: False)
    monkeypatch.setattr(SpanCopier, "is_complete", is_chosen)
    monkeypatch.setattr(SpanCopier, "choose", choose_last)
    inflight = make_inflight(random_translator)
    texts = ["ka http://a.kr to", "a@b.kr ka mi", "ka to"]
    for ticket, text in enumerate(texts):
        inflight.add(ticket, text, arguments)
    found = run_all(inflight)
    expected = random_translator.translate(texts, split="never", **arguments)
    assert [found[ticket] for ticket in range(len(texts))] == expected
    assert [found[ticket].alternatives for ticket in range(3)] == [
        one.alternatives for one in expected
    ]
