"""The tensors of the whole machine, against the model itself."""

from __future__ import annotations

import base64

import numpy as np
import pytest
import torch

from attendo.core.errors import InputError
from attendo.inspection.stage_values import describe_stages
from attendo.inspection.teacher_forcing import TeacherForcedPass
from attendo.model.transformer import Transformer

SIZES = {"d_model": 8, "d_ff": 16, "num_heads": 2, "num_layers": 2, "dropout": 0.0}
PASS = TeacherForcedPass(
    torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8, 9, 4]]), torch.tensor([8, 9, 4, 2])
)


def describe(model, layer=1):
    return describe_stages(model, PASS, layer=layer, name_tokens=lambda ids: [f"w{i}" for i in ids])


def unpack(text, *shape):
    return np.frombuffer(base64.b64decode(text), "<f2").reshape(shape).astype(np.float32)


def matrix(one):
    return unpack(one["data"], one["num_rows"], one["num_columns"])


@pytest.fixture(params=["post", "pre"])
def model(request):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Transformer(vocab_size=12, norm=request.param, **SIZES).eval()


def test_each_stage_is_the_input_of_the_next(model):
    found = describe(model)["stages"]
    before = matrix(found["src_positions"][-1])
    added = {one["name"]: matrix(one) for one in found["encoder_self_add"]}
    assert added["input"] == pytest.approx(before, abs=1e-2)
    assert added["input"] + added["sublayer"] == pytest.approx(added["sum"], abs=1e-2)
    assert ("normed" in added) is (not model.decoder.layers[0].self_add.is_pre_norm)
    after = added.get("normed", added["sum"])
    assert matrix(found["encoder_feed_forward_add"][0]) == pytest.approx(after, abs=1e-2)


def test_scores_are_dot_products_and_weights_their_softmax(model):
    for kind, rows, columns in (("encoder_self", 3, 3), ("decoder_self", 4, 4), ("cross", 4, 3)):
        found = describe(model, layer=2)["attention"][kind]
        heads, size = found["num_heads"], found["d_k"]
        queries = unpack(found["queries"], heads, rows, size)
        keys = unpack(found["keys"], heads, columns, size)
        scores, weights = (
            unpack(found[name], heads, rows, columns) for name in ("scores", "weights")
        )
        assert queries @ keys.transpose(0, 2, 1) / size**0.5 == pytest.approx(scores, abs=1e-2)
        assert weights.sum(-1) == pytest.approx(1.0, abs=2e-3)
        assert found["is_masked"] is (kind == "decoder_self")


def test_steps_hold_the_best_words_and_the_chosen_one(model):
    logits = PASS(model)[0].detach()
    for row, step in enumerate(describe(model)["steps"]):
        chosen = step["top"][step["chosen"]]
        assert chosen["word"] == f"w{PASS.target_ids[row]}"
        assert chosen["logit"] == pytest.approx(float(logits[row, PASS.target_ids[row]]), rel=1e-3)
        probabilities = [one["probability"] for one in step["top"][:8]]
        assert probabilities == sorted(probabilities, reverse=True)


def test_a_stack_of_fewer_layers_shows_its_last(model):
    with pytest.raises(InputError, match="no layer 3"):
        describe(model, layer=3)
    with torch.random.fork_rng():
        deep = Transformer(vocab_size=12, **{**SIZES, "num_layers": 1}, num_decoder_layers=2).eval()
    assert describe(deep, layer=2)["num_decoder_layers"] == 2
