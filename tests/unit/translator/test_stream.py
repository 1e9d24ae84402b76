"""Files in a stream: sentences that join and leave the slots get the translations of batches."""

from __future__ import annotations

import pytest
import torch

from attendo.bundle import build_model
from attendo.decoding.options import DecodingOptions
from attendo.translator import Translator, windows
from attendo.translator.backends import stream

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
LINES = [
    ["ka to mi", "ka to re so lu", "", "mi 12345 re", "http://a.example/x ka", "so\n\n ka", "lu"][
        number % 7
    ]
    + " ka" * (number % 5)
    for number in range(60)
]


@pytest.fixture
def translator(toy, monkeypatch) -> Translator:
    monkeypatch.setattr(stream, "STREAM_DEVICES", {"cpu"})
    monkeypatch.setattr(stream, "STREAM_ROWS", 12)
    monkeypatch.setitem(windows.MAX_WINDOW_LINES, "cpu", 16)
    torch.manual_seed(5)
    tokenizer = toy.prepared.tokenizer
    return Translator(
        build_model("transformer", SIZES, tokenizer), tokenizer, about={"max_src_tokens": 12}
    )


def kept(translator: Translator) -> list[stream.StreamDecoder]:
    found = translator.backend.model.decoding_cache.values()
    return [one for one in found if isinstance(one, stream.StreamDecoder)]


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 4}, {"beam_size": 1}, {"beam_size": 4, "n_best": 3, "alpha": 1.0}],
)
def test_the_translations_are_those_of_batches(translator, monkeypatch, options):
    found = list(translator.translate_lines(LINES, **options))
    assert translator.translate(LINES, **options) == found
    (used,) = kept(translator)
    assert len(used.decoder) == used.decoder.num_active == 0
    monkeypatch.setattr(stream, "STREAM_DEVICES", set())
    assert list(translator.translate_lines(LINES, **options)) == found


def test_new_weights_are_used(translator):
    before = list(translator.translate_lines(LINES))
    with torch.no_grad():
        for weight in translator.backend.model.parameters():
            weight.mul_(-0.5)
    after = list(translator.translate_lines(LINES))
    assert after != before
    assert after == [translator.translate([line])[0] for line in LINES]
    translator.backend.model.double().float()  # other addresses
    assert list(translator.translate_lines(LINES)) == after
    assert len(kept(translator)) == 1


def test_sentences_that_do_not_fit_a_slot_are_searched_in_batches(translator, monkeypatch):
    expected = list(translator.translate_lines(LINES))
    decoder = kept(translator)[0].decoder
    add = decoder.add
    monkeypatch.setattr(
        decoder, "add", lambda key, ids, options: len(ids) < 5 and add(key, ids, options)
    )
    assert list(translator.translate_lines(LINES)) == expected


def test_a_stream_that_is_left_early_is_empty_again(translator):
    lines = translator.translate_lines(LINES)
    first = next(lines)
    lines.close()
    decoder = kept(translator)[0].decoder
    assert len(decoder) == decoder.num_active == 0
    assert next(translator.translate_lines(LINES)) == first


def test_a_second_thread_uses_batches_meanwhile(translator):
    backend, options = translator.backend, DecodingOptions()
    with backend.open_stream(options, 13) as first, backend.open_stream(options, 13) as second:
        assert first is not None
        assert second is None
    assert kept(translator)[0].lock.acquire(blocking=False)


def test_a_limit_of_batch_tokens_limits_the_slots(translator):
    translator.backend.max_batch_tokens = 256
    with translator.backend.open_stream(DecodingOptions(), 13) as found:
        assert found.num_slots == 2
