"""A copy in bfloat16 decodes; the model as it is looks inside and scores."""

from __future__ import annotations

import pytest
import torch

from attendo.bundle import build_model, save_bundle
from attendo.core.errors import ConfigError
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
TEXTS = ["ka to mi re", "", "so lu"]


@pytest.fixture
def folder(toy, tmp_path):
    torch.manual_seed(3)
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    for parameter in model.parameters():
        parameter.data.mul_(3.0)  # surer of what it says
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    return tmp_path / "model"


def test_the_copy_decodes_and_the_model_stays_as_it_is(folder):
    half = Translator.load(folder, precision="bfloat16")
    whole = Translator.load(folder)
    kinds = {weight.dtype for weight in half.backend.model.parameters()}
    assert kinds == {torch.bfloat16}
    assert {weight.dtype for weight in half.model.parameters()} == {torch.float32}
    assert half.native.model is half.model
    ours, theirs = (one.translate(TEXTS, beam_size=1, max_length=1) for one in (half, whole))
    assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=0.2)
    assert [one.score for one in ours] != [one.score for one in theirs]


def test_scores_are_those_of_the_model_as_it_is(folder):
    half, whole = (Translator.load(folder, precision=kind) for kind in ("bfloat16", "float32"))
    pairs = (["ka to mi"], ["KA TO"])
    assert half.score(*pairs) == whole.score(*pairs)


def test_several_models_decide_in_halves_too(folder):
    half = Translator.load(folder, folder, precision="bfloat16")
    kinds = {weight.dtype for part in half.backend.modules for weight in part.parameters()}
    assert kinds == {torch.bfloat16}
    assert len(half.translate(TEXTS, max_extra_tokens=2)) == len(TEXTS)


@pytest.mark.parametrize(
    ("engine", "precision"),
    [("attendo", "int8"), ("attendo", "float8"), ("ctranslate2", "bfloat16")],
)
def test_what_an_engine_cannot_do_is_rejected(folder, engine, precision):
    with pytest.raises(ConfigError, match=f"no precision '{precision}'") as error:
        Translator.load(folder, engine=engine, precision=precision)
    assert error.value.hint


def test_on_its_own_an_engine_is_chosen_that_has_it(folder):
    chosen = Translator.load(folder, engine="auto", precision="bfloat16")
    assert chosen.backend.name == "attendo"
