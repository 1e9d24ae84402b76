"""BertViz itself draws a record."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.inspection import capture
from attendo.inspection.bertviz import to_head_view, to_model_view
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
NAMES = {"Encoder": "encoder_self", "Decoder": "decoder_self", "Cross": "cross"}


@pytest.fixture
def make_record(toy):
    def make(**options):
        tokenizer = toy.prepared.tokenizer
        model = build_model("transformer", {**SIZES, **options}, tokenizer)
        return capture(Translator(model, tokenizer), "ka to mi re", "RE MI TO")

    return make


@pytest.mark.parametrize("view", ["head_view", "model_view"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # BertViz leaves its scripts open
def test_bertviz_renders_a_record(bertviz, read_page, make_record, view):
    record = make_record()
    convert = to_head_view if view == "head_view" else to_model_view
    page = getattr(bertviz, view)(**convert(record), html_action="return").data
    assert "<script" in page
    params = read_page(page)
    assert [block["name"] for block in params["attention"]] == list(NAMES)
    src = [" ka", " to", " mi", " re", "</s>"]  # BertViz writes a space for each ▁
    read = ["<s>", " RE", " MI", " TO"]
    for block in params["attention"]:
        kind = NAMES[block["name"]]
        assert np.array_equal(np.float32(block["attn"]), record.attention(kind))
        assert block["left_text"] == (src if kind == "encoder_self" else read)
        assert block["right_text"] == (read if kind == "decoder_self" else src)
    assert params["include_layers"] == [0, 1]


@pytest.mark.parametrize("layers", [(3, 1), (1, 3)])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_stacks_of_different_height(bertviz, read_page, make_record, caplog, layers):
    record = make_record(num_layers=layers[0], num_decoder_layers=layers[1])
    with caplog.at_level("WARNING", logger="attendo"):
        views = to_head_view(record)
    assert caplog.messages == ["BertViz shows the lowest 1 of 3 layers"]
    for view in (bertviz.head_view, bertviz.model_view):
        params = read_page(view(**views, html_action="return").data)
        assert [np.shape(block["attn"])[0] for block in params["attention"]] == [1, 1, 1]
    decoder = to_head_view(record, kinds=("decoder_self", "cross"))
    params = read_page(bertviz.head_view(**decoder, html_action="return").data)
    assert [np.shape(block["attn"])[0] for block in params["attention"]] == [layers[1]] * 2


def test_tensors_as_bertviz_wants_them(make_record):
    record = make_record()
    views = to_model_view(record)
    assert [layer.shape for layer in views["cross_attention"]] == [(1, 4, 4, 5)] * 2
    assert all(layer.dtype == torch.float32 for layer in views["encoder_attention"])
    views["cross_attention"][0].zero_()
    assert record.attention("cross").sum() > 0  # the record stays as it is


def test_only_what_is_there(make_record):
    record = make_record()
    less = record.replace(weights={"cross": record.attention("cross")})
    assert set(to_head_view(less)) == {"cross_attention", "encoder_tokens", "decoder_tokens"}
    with pytest.raises(InputError, match="no attention") as caught:
        to_head_view(less, kinds=("encoder_self",))
    assert caught.value.hint == "choose kinds that it has: cross"
