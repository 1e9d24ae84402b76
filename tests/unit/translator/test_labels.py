"""A label is a token before the source of every segment."""

from __future__ import annotations

import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import ConfigError
from attendo.translator import Translator
from attendo.translator.inflight import InflightTranslator
from attendo.translator.streaming import stream_translation

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
TEXTS = ["ka to mi", "", "re so\nlu ka", "mi"]


@pytest.fixture
def translator(toy) -> Translator:
    torch.manual_seed(5)
    tokenizer = toy.prepared.tokenizer
    about = {"max_src_tokens": 20, "labels": ["polite", "plain"]}
    return Translator(build_model("transformer", SIZES, tokenizer), tokenizer, about=about)


def test_the_label_is_read_before_each_segment(translator):
    found = translator.translate(TEXTS, label="polite", split="never", beam_size=2)
    expected = translator.translate(
        ["<polite> ka to mi", "", "<polite> re so", "<polite> lu ka", "<polite> mi"], beam_size=2
    )
    joined = [expected[0], expected[1], f"{expected[2]}\n{expected[3]}", expected[4]]
    assert [str(one) for one in found] == [str(one) for one in joined]
    assert [one.source for one in found] == TEXTS
    plain = translator.translate(TEXTS, split="never", beam_size=2)
    assert found[0].score != plain[0].score


def test_in_flight_and_streamed_translations_have_the_label(translator):
    arguments = {"label": "plain", "beam_size": 1}
    expected = translator.translate(TEXTS, split="never", **arguments)
    inflight = InflightTranslator.for_translator(translator, widths=(1,), num_slots=2)
    assert inflight is not None
    assert inflight.supports(arguments)
    assert not inflight.supports({"label": "rude"})
    for ticket, text in enumerate(TEXTS):
        inflight.add(ticket, text, arguments)
    found: dict = {}
    while len(inflight):
        found |= dict(inflight.step())
    assert [found[ticket] for ticket in range(len(TEXTS))] == expected
    *_, streamed = stream_translation(translator, TEXTS[0], label="plain", split="never")
    assert streamed == expected[0]
    assert streamed.source == TEXTS[0]


def test_an_unknown_label_is_refused(translator, toy):
    with pytest.raises(ConfigError, match="polit"):
        translator.translate(["ka"], label="polit")
    unlabeled = Translator(translator.model, toy.prepared.tokenizer)
    with pytest.raises(ConfigError, match="no label"):
        unlabeled.translate(["ka"], label="polite")
