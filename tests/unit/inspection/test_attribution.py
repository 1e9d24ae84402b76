from __future__ import annotations

import copy
import logging

import numpy as np
import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import ConfigError, InputError
from attendo.decoding.ensemble import Ensemble
from attendo.inspection import attribution, capture
from attendo.inspection.attribution import TOLERANCE, attribute, describe_error
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.model.embeddings import ScaledEmbedding
from attendo.text.tokenizer import START_ID
from attendo.translator import Translator

SHARPNESS = 1.5
"""Of the weights of an untrained model: enough to be far from linear."""
SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
TEXT, TARGET = "ka to mi re so", "SO RE ka MI TO KA"
"""No source token comes twice, and one of them stands in the target too."""


def make_translator(tokenizer, **options) -> Translator:
    model = build_model("transformer", {**SIZES, **options}, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(SHARPNESS)
    return Translator(model.double().eval(), tokenizer)


@pytest.fixture
def translator(toy) -> Translator:
    return make_translator(toy.prepared.tokenizer)


def untie(model):
    """Copy a model so that its source embedding is its own."""
    copied = copy.deepcopy(model)
    weight = model.src_embedding.weight.detach().clone()
    own = ScaledEmbedding(*weight.shape).double()
    own.weight = torch.nn.Parameter(weight)
    copied.src_embedding = own
    return copied


def say(model, record):
    """Return the log-probability of each output token."""
    src_ids = torch.tensor([[token["id"] for token in record.src["tokens"]]])
    printed = [token["id"] for token in record.tgt["tokens"]]
    logits = model(src_ids, torch.tensor([[START_ID, *printed[:-1]]]))[0]
    return logits.log_softmax(-1)[range(len(printed)), printed]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre"},
        {"positions": "learned"},
        {"positions": "concatenated"},
        {"attention_width": 3, "num_decoder_layers": 1},
    ],
)
def test_integrated_gradients_are_complete(toy, options):
    translator = make_translator(toy.prepared.tokenizer, **options)
    record = capture(translator, TEXT, TARGET)
    section = attribute(translator, record, num_steps=256)
    empty = untie(translator.model)
    with torch.no_grad():
        empty.src_embedding.weight.zero_()
        difference = (say(translator.model, record) - say(empty, record)).numpy()
    sums = np.array(section["tokens"]).sum(1)
    scale = np.maximum(np.abs(difference), 0.1)
    assert np.abs(difference).max() > 0.2
    assert (np.abs(sums - difference) / scale).max() < TOLERANCE
    assert section["completeness"] == pytest.approx(np.abs(sums - difference) / scale, abs=1e-3)


def test_more_steps_are_more_exact(translator):
    record = capture(translator, TEXT, TARGET)
    errors = [
        max(attribute(translator, record, num_steps=count)["completeness"])
        for count in (1, 16, 256)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_gradient_times_input_is_that_of_the_source_embedding_alone(translator):
    """The tied embedding also feeds the decoder and the output: neither may count."""
    record = capture(translator, TEXT, TARGET)
    section = attribute(translator, record, method="gradient_x_input")
    model = untie(translator.model)
    weight = model.src_embedding.weight
    expected = []
    for log_prob in say(model, record):
        (gradient,) = torch.autograd.grad(log_prob, weight, retain_graph=True)
        products = (gradient * weight.detach()).sum(1)  # the scale of the embedding cancels out
        expected.append([float(products[token["id"]]) for token in record.src["tokens"]])
    assert np.array(section["tokens"]) == pytest.approx(np.array(expected), abs=2e-6)
    assert section["num_steps"] == 1


def test_what_has_no_effect_gets_no_attribution(translator):
    """Without cross-attention no target token hangs on the source."""
    with torch.no_grad():
        for layer in translator.model.decoder.layers:
            layer.cross_attention.output.weight.zero_()
    section = attribute(translator, capture(translator, TEXT, TARGET))
    assert np.abs(section["tokens"]).max() == 0.0
    assert max(section["completeness"]) < 1e-6


def test_words_are_the_sums_of_their_pieces(translator):
    record = capture(translator, TEXT, TARGET)

    def join(side, homes, words):
        tokens = [
            {**token, "word": home} for token, home in zip(side["tokens"], homes, strict=True)
        ]
        return {**side, "tokens": tokens, "words": words}

    joined = record.replace(
        src=join(record.src, [0, 0, 1, 1, 2, None], ["ka-to", "mi-re", "so"]),
        tgt=join(record.tgt, [0, 0, 0, 1, 1, 1, None], ["SO-RE-KA", "MI-TO-KA"]),
    )
    section = attribute(translator, joined, num_steps=4)
    tokens, words = section["tokens"], section["words"]
    assert [len(tokens), len(tokens[0]), len(words), len(words[0])] == [7, 6, 2, 3]
    assert words[0][1] == pytest.approx(
        sum(tokens[t][s] for t in (0, 1, 2) for s in (2, 3)), abs=1e-5
    )
    assert words[1][2] == pytest.approx(sum(tokens[t][4] for t in (3, 4, 5)), abs=1e-5)


def test_small_batches_change_nothing(translator, monkeypatch):
    record = capture(translator, TEXT, TARGET)
    whole = attribute(translator, record, num_steps=9)
    monkeypatch.setattr(attribution, "BATCH_TOKENS", 1)
    monkeypatch.setattr(attribution, "TOKENS_PER_PASS", 2)
    parts = attribute(translator, record, num_steps=9)
    assert np.array(parts["tokens"]) == pytest.approx(np.array(whole["tokens"]), abs=2e-6)
    assert parts["completeness"] == pytest.approx(whole["completeness"], abs=2e-6)


def test_too_few_steps_are_noted_in_the_record(translator, monkeypatch, caplog):
    record = capture(translator, TEXT, TARGET)
    section = attribute(translator, record, num_steps=1)
    assert max(section["completeness"]) > TOLERANCE
    assert "more than 1 steps" in describe_error(section)
    assert describe_error(attribute(translator, record, num_steps=256)) is None
    # Gradient times input does not promise a sum.
    assert describe_error(attribute(translator, record, method="gradient_x_input")) is None
    monkeypatch.setattr("attendo.inspection.inspect_sentence.attribute", lambda *_, **__: section)
    with caplog.at_level(logging.WARNING, logger="attendo"):
        noted = inspect_sentence(translator, TEXT, TARGET, ablation=False)
    assert noted.notes == [*record.notes, describe_error(section)]
    assert not caplog.text


def test_the_model_is_left_as_it_was(toy):
    translator = make_translator(toy.prepared.tokenizer, dropout=0.7)
    translator.model.train()
    record = capture(translator, TEXT, TARGET)
    with torch.no_grad():
        first = attribute(translator, record, num_steps=2)
    assert first == attribute(translator, record, num_steps=2)
    assert translator.model.training
    assert all(weight.grad is None for weight in translator.model.parameters())


def test_sides_with_vocabularies_of_their_own(toy):
    translator = make_translator(toy.separate.tokenizer)
    record = capture(translator, TEXT)
    section = attribute(translator, record, num_steps=256)
    assert max(section["completeness"]) < TOLERANCE
    assert len(section["tokens"]) == len(record.tgt["tokens"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "integrated_gradient"}, "did you mean 'integrated_gradients'"),
        ({"num_steps": 0}, "0 steps are not in"),
        ({"num_steps": 10**6}, "1000000 steps are not in"),
    ],
)
def test_wrong_options_are_rejected(translator, options, reason):
    with pytest.raises(ConfigError, match=reason):
        attribute(translator, capture(translator, TEXT), **options)


def test_an_ensemble_is_rejected(translator):
    ensemble = Translator(Ensemble([translator.model] * 2), translator.tokenizer)
    with pytest.raises(InputError, match="attribution belongs to one model"):
        attribute(ensemble, capture(ensemble, TEXT))
