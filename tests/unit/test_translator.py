from __future__ import annotations

import pytest
import torch

import attendo.translator
from attendo.bundle import build_model, save_bundle
from attendo.core.errors import InputError
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


class Echo(Translator):
    """Says the source again in capitals and notes its batches."""

    def _decode(self, rows):
        self.batches.append([len(row) for row in rows])
        texts = (" ".join(self.tokenizer.src_pieces(row[:-1])) for row in rows)
        return self.tokenizer.encode_tgt([text.replace("▁", "").upper() for text in texts])


@pytest.fixture
def model(toy):
    return build_model("transformer", SIZES, toy.prepared.tokenizer)


@pytest.fixture
def echo(toy, model) -> Echo:
    translator = Echo(model, toy.prepared.tokenizer)
    translator.batches = []
    return translator


def test_order_is_kept_and_empty_texts_stay_in_place(echo):
    texts = ["ka to mi re", "", "so", "  \n", "lu ka", "\u200b", "mi"]
    assert echo.translate(texts) == ["KA TO MI RE", "", "SO", "", "LU KA", "", "MI"]
    assert echo.batches == [[2, 2, 3, 5]]


def test_nothing_to_translate(echo):
    assert echo.translate([]) == []
    assert echo.translate([""]) == [""]
    assert echo.batches == []


def test_batches_keep_to_their_tokens(echo, monkeypatch):
    monkeypatch.setattr(attendo.translator, "BATCH_TOKENS", 10)
    texts = [" ".join(["ka"] * count) for count in (1, 12, 2, 3, 1, 2, 4, 1)]
    assert echo.translate(texts) == [text.upper() for text in texts]
    assert echo.batches == [[13], [4, 5], [2, 3, 3], [2, 2]]


def test_neighbours_do_not_matter(toy, model):
    translator = Translator(model.double(), toy.prepared.tokenizer)
    texts = [" ".join(["ka", "to", "lu"][:count] * count) for count in (1, 2, 3)]
    together = translator.translate(texts)
    assert together == [translator.translate([text])[0] for text in texts]
    assert translator.translate(texts[::-1]) == together[::-1]


@pytest.mark.parametrize("is_training", [True, False])
def test_dropout_is_off_and_the_mode_comes_back(toy, is_training):
    model = build_model("transformer", {**SIZES, "dropout": 0.9}, toy.prepared.tokenizer)
    translator = Translator(model.train(is_training), toy.prepared.tokenizer)
    assert len({translator.translate(["ka to mi re so lu"])[0] for _ in range(4)}) == 1
    assert model.training is is_training


def test_a_model_learns_on_after_it_has_translated(toy, model):
    Translator(model.train(), toy.prepared.tokenizer).translate(["ka to mi"])
    model(torch.tensor([[5, 6]]), torch.tensor([[2, 7]])).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_loads_a_folder(toy, model, tmp_path):
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    expected = Translator(model, toy.prepared.tokenizer).translate(["ka to", "mi"])
    assert Translator.load(tmp_path, device="cpu").translate(["ka to", "mi"]) == expected
    assert Translator.load(str(tmp_path / "model"), device="cpu").translate([]) == []


def test_one_text_is_no_list_of_texts(echo):
    with pytest.raises(InputError, match="a list of texts"):
        echo.translate("나는 학생이다.")
