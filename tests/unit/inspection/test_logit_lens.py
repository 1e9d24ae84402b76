from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.inspection import capture
from attendo.inspection.logit_lens import logit_lens
from attendo.text.tokenizer import START_ID
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2, "num_decoder_layers": 3}
TEXT, TARGET = "ka to mi re so", "SO RE MI"


@pytest.fixture(params=["post", "pre"])
def translator(request, toy) -> Translator:
    options = {**SIZES, "norm": request.param}
    model = build_model("transformer", options, toy.prepared.tokenizer)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)  # the norms too: a lens that forgets one is found out
    return Translator(model.double().eval(), toy.prepared.tokenizer)


@pytest.mark.parametrize("target", [None, TARGET])
def test_the_last_layer_equals_the_model(translator, target):
    record = capture(translator, TEXT, target)
    layers = logit_lens(translator, record)["layers"]
    assert [len(layer) for layer in layers] == [len(record.steps)] * 3
    for own, step in zip(layers[-1], record.steps, strict=True):
        assert [one["id"] for one in own["top"]] == [one["id"] for one in step["top"][:5]]
        assert [one["piece"] for one in own["top"]] == [one["piece"] for one in step["top"][:5]]
        assert [one["probability"] for one in own["top"]] == pytest.approx(
            [one["probability"] for one in step["top"][:5]], abs=2e-6
        )
        assert own["probability"] == pytest.approx(step["probability"], abs=2e-6)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_layer_equals_a_model_that_ends_there(translator, num_layers):
    record = capture(translator, TEXT, TARGET)
    layer = logit_lens(translator, record)["layers"][num_layers - 1]
    short = copy.deepcopy(translator.model)
    short.decoder.layers = nn.ModuleList(list(short.decoder.layers)[:num_layers])
    printed = [token["id"] for token in record.tgt["tokens"]]
    src_ids = torch.tensor([[token["id"] for token in record.src["tokens"]]])
    logits = short(src_ids, torch.tensor([[START_ID, *printed[:-1]]]))[0].float()
    for own, distribution, number in zip(layer, logits.softmax(-1), printed, strict=True):
        order = distribution.argsort(descending=True).tolist()
        assert [one["id"] for one in own["top"]] == order[:5]
        assert own["rank"] == order.index(number)
        assert own["probability"] == pytest.approx(float(distribution[number].detach()), abs=2e-6)


def test_the_mode_comes_back_and_nothing_is_left_behind(translator):
    record = capture(translator, TEXT, TARGET)
    translator.model.train()
    first = logit_lens(translator, record)
    assert logit_lens(translator, record) == first
    assert translator.model.training


def test_a_model_without_such_layers_is_rejected(translator):
    record = capture(translator, TEXT, TARGET)
    with pytest.raises(InputError, match="the logit lens needs a Transformer"):
        logit_lens(Translator(object(), translator.tokenizer), record)
