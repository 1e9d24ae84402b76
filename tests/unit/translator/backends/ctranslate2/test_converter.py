"""Our weights in CTranslate2's form: the real library computes what we compute."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from attendo import Transformer
from attendo.architectures.registry import get_model_kind
from attendo.bundle import Bundle
from attendo.core.errors import ConfigError, InputError
from attendo.text.tokenizer import END_ID, START_ID
from attendo.translator.backends.ctranslate2 import converter
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.ctranslate2.converter import read_info, unsupported_reasons, write

SIZES = {"d_model": 32, "d_ff": 48, "num_heads": 4, "num_layers": 2}
CONFIGS = [
    {},
    {"norm": "pre"},
    {"activation": "gelu", "bias": False},
    {"activation": "swish", "position_layout": "halves"},
    {"positions": "learned", "max_length": 40},
    {"positions": "none"},
    {"d_k": 3, "d_v": 5},
    {"d_k": 2, "norm": "pre", "bias": False},
    {"d_v": 4, "scale": False},
    {"tie_embeddings": "none", "output_bias": True},
    {"tie_embeddings": "decoder", "scale_embeddings": False},
    {"num_decoder_layers": 1, "num_decoder_heads": 2, "decoder_d_ff": 20},
    {"layer_norm_eps": 1e-2, "position_layout": "fairseq"},
]


def make_bundle(tokenizer, **options) -> Bundle:
    """Random weights that would show a mix-up: no bias is 0, no gain is 1."""
    vocab = {"vocab_size": tokenizer.src_vocab_size}
    if not tokenizer.is_shared:
        vocab["tgt_vocab_size"] = tokenizer.tgt_vocab_size
    model = Transformer(**{**vocab, **SIZES, **options}).eval()
    for weight in model.parameters():
        weight.data.normal_(std=0.3) if weight.dim() == 1 else weight.data.mul_(2.0)
    return Bundle(model, tokenizer, {"src_lang": "ko"})


def draw_rows(vocab_size: int, lengths: list[int]) -> list[list[int]]:
    return [[*torch.randint(4, vocab_size, (n,)).tolist(), END_ID] for n in lengths]


def open_engine(folder, **options) -> CTranslate2Backend:
    return CTranslate2Backend(folder, load_native=pytest.fail, **options)


@pytest.mark.parametrize("options", CONFIGS, ids=str)
def test_the_library_computes_the_same(toy, tmp_path, options):
    bundle = make_bundle(toy.prepared.tokenizer, **options)
    assert unsupported_reasons(bundle) == []
    write(bundle, tmp_path)
    size = bundle.tokenizer.src_vocab_size
    src, tgt = draw_rows(size, [9, 1, 5]), draw_rows(size, [7, 8, 1])
    reported = open_engine(tmp_path, precision="float32").log_probs(src, tgt)
    for source, target, log_probs in zip(src, tgt, reported, strict=True):
        fed = torch.tensor([[START_ID, *target[:-1]]])
        with torch.no_grad():
            logits = bundle.model(torch.tensor([source]), fed)[0].double()
        expected = logits.log_softmax(-1).gather(1, torch.tensor(target)[:, None])[:, 0]
        assert log_probs == pytest.approx(expected.tolist(), abs=1e-5)


def test_two_vocabularies_stay_two(toy, tmp_path):
    tokenizer = toy.separate.tokenizer
    bundle = make_bundle(tokenizer, tie_embeddings="decoder")
    write(bundle, tmp_path)
    assert not (tmp_path / "shared_vocabulary.json").exists()
    src = draw_rows(tokenizer.src_vocab_size, [4])
    tgt = draw_rows(tokenizer.tgt_vocab_size, [3])
    (reported,) = open_engine(tmp_path, precision="float32").log_probs(src, tgt)
    with torch.no_grad():
        fed = torch.tensor([[START_ID, *tgt[0][:-1]]])
        log_probs = bundle.model(torch.tensor(src), fed)[0].log_softmax(-1)
    assert reported == pytest.approx(
        [float(log_probs[t, n]) for t, n in enumerate(tgt[0])], abs=1e-5
    )


@pytest.mark.parametrize("quantization", ["int8", "int8_bfloat16", "float16"])
def test_quantizing_rounds_the_copy_and_leaves_the_model(toy, tmp_path, quantization):
    bundle = make_bundle(toy.prepared.tokenizer)
    before = {name: weight.clone() for name, weight in bundle.model.named_parameters()}
    write(bundle, tmp_path, quantization=quantization)
    for name, weight in bundle.model.named_parameters():
        assert torch.equal(weight, before[name]), name
    assert read_info(tmp_path)["quantization"] == quantization
    size = bundle.tokenizer.src_vocab_size
    src, tgt = draw_rows(size, [6] * 8), draw_rows(size, [6] * 8)
    reported = open_engine(tmp_path, precision="stored").log_probs(src, tgt)
    fed = torch.tensor([[START_ID, *row[:-1]] for row in tgt])
    with torch.no_grad():
        log_probs = bundle.model(torch.tensor(src), fed).log_softmax(-1)
    expected = log_probs.gather(2, torch.tensor(tgt)[:, :, None])[:, :, 0].numpy()
    distance = np.abs(np.array(reported) - expected).max()
    assert 1e-6 < distance < 0.5


def test_a_sliced_weight_is_stored_with_a_scale_a_row(toy, tmp_path, monkeypatch):
    """int8 is what it is called: each row times 127 over its largest value, rounded."""
    saved = {}
    from ctranslate2.specs.model_spec import ModelSpec

    def keep(self, _folder):
        saved.update(self.variables())

    monkeypatch.setattr(ModelSpec, "save", keep)
    bundle = make_bundle(toy.prepared.tokenizer)
    write(bundle, tmp_path, quantization="int8")
    weight = bundle.model.encoder.layers[1].feed_forward.inner.weight.detach().numpy()
    scale = 127.0 / np.abs(weight).max(axis=1)
    stored = saved["encoder/layer_1/ffn/linear_0/weight"].numpy()
    assert stored.dtype == np.int8
    assert np.array_equal(stored, np.rint(weight * scale[:, None]))
    assert saved["encoder/layer_1/ffn/linear_0/weight_scale"].numpy() == pytest.approx(scale)


def test_every_reason_is_reported_at_once(toy, tmp_path):
    tokenizer = toy.prepared.tokenizer
    bundle = make_bundle(
        tokenizer, attention_width=3, residual=False, positions="concatenated", d_k=9
    )
    with pytest.raises(ConfigError) as error:
        write(bundle, tmp_path, quantization="int4")
    reasons = " ".join(error.value.reasons)
    assert len(error.value.reasons) == 5
    for word in ("attention_width", "residual", "concatenated", "4 heads of 9", "int4"):
        assert word in reasons
    assert list(tmp_path.iterdir()) == []


def test_heads_that_do_not_divide_the_width_are_rejected(toy):
    bundle = make_bundle(toy.prepared.tokenizer, num_heads=5, d_k=4, d_v=4)
    (reason,) = unsupported_reasons(bundle)
    assert "5 heads" in reason


def test_an_option_that_is_unknown_here_is_rejected(toy, monkeypatch):
    known = converter.SUPPORTED_OPTIONS - {"num_decoder_layers"}
    monkeypatch.setattr(converter, "SUPPORTED_OPTIONS", known)
    bundle = make_bundle(toy.prepared.tokenizer, num_decoder_layers=1)
    assert unsupported_reasons(bundle) == ["num_decoder_layers = 1 is not supported"]


def test_another_kind_of_model_is_rejected(toy):
    tokenizer = toy.prepared.tokenizer
    model = get_model_kind("rnn-seq2seq").model_class(tokenizer.src_vocab_size, d_model=16)
    (reason,) = unsupported_reasons(Bundle(model, tokenizer, {}))
    assert "rnn-seq2seq" in reason


@pytest.mark.parametrize(
    "reported", [None, "{", "[]", "{}", '{"format_version": 1}', '{"format_version": "x"}']
)
def test_a_folder_of_something_else_is_rejected(tmp_path, reported):
    if reported is not None:
        (tmp_path / "attendo.json").write_text(reported, encoding="utf-8")
    with pytest.raises(InputError, match="is not a CTranslate2 folder of Attendo"):
        read_info(tmp_path)


def test_a_newer_folder_is_rejected(toy, tmp_path):
    write(make_bundle(toy.prepared.tokenizer), tmp_path)
    path = tmp_path / "attendo.json"
    info = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(info | {"format_version": 99}), encoding="utf-8")
    with pytest.raises(InputError, match="format 99") as error:
        read_info(tmp_path)
    assert "update" in error.value.hint
