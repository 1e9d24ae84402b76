"""ONNX Runtime gives what the model gives: every option, every step, any batch and length."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, get_args

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from attendo.bundle import Bundle, build_model
from attendo.core.errors import ConfigError, InputError, MissingExtraError
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search
from attendo.interop.onnx import export as interop
from attendo.model.config import TransformerConfig
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from attendo.interop.onnx.reference import OnnxReference

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
CONFIGS = {
    "paper": {},
    "pre-norm": {"norm": "pre", "layer_norm_eps": 1e-3},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish"},
    "learned": {"positions": "learned", "max_length": 40},
    "concatenated": {"positions": "concatenated"},
    "no places": {"positions": "none"},
    "halves": {"position_layout": "halves"},
    "fairseq": {"position_layout": "fairseq"},
    "tensor2tensor, odd width": {
        "d_model": 15,
        "num_heads": 3,
        "position_layout": "tensor2tensor",
    },
    "concatenated halves": {"positions": "concatenated", "position_layout": "halves"},
    "restricted": {"attention_width": 4},
    "no scale": {"scale": False, "scale_embeddings": False},
    "no residual": {"residual": False},
    "no bias": {"bias": False},
    "own head sizes": {"d_k": 3, "d_v": 5},
    "odd width": {"d_model": 15, "num_heads": 3},
    "odd width, halves": {"d_model": 15, "num_heads": 3, "position_layout": "halves"},
    "tied decoder": {"tie_embeddings": "decoder", "output_bias": True},
    "nothing tied": {"tie_embeddings": "none", "output_bias": True},
    "other decoder": {"num_decoder_layers": 1, "num_decoder_heads": 2, "decoder_d_ff": 24},
}
SHAPES = ((1, 1, 1), (3, 7, 5), (2, 30, 33))
"""Batch, source and target; one session runs them all."""
SYMBOLS = SpecialIds(START_ID, END_ID, PAD_ID, UNK_ID)


@pytest.fixture
def make_bundle(toy):
    """Make a model whose every weight counts: biases and norms are not left as they begin."""

    def make(kind: str = "transformer", *, separate: bool = False, **options) -> Bundle:
        tokenizer = (toy.separate if separate else toy.prepared).tokenizer
        sizes = SIZES if kind == "transformer" else {"d_model": 16, "num_layers": 1}
        model = build_model(kind, {**sizes, **options}, tokenizer).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, mean=0.3 * (parameter.dim() == 1), std=0.3)
        return Bundle(model, tokenizer, {"src_lang": "ko", "tgt_lang": "en"})

    return make


@pytest.fixture
def export(tmp_path):
    """Write a bundle and open it again."""

    def make(bundle: Bundle) -> OnnxReference:
        assert interop.unsupported_reasons(bundle) == []
        interop.write(bundle, tmp_path)
        return interop.load_reference(tmp_path)

    return make


def draw_ids(batch: int, length: int, vocab_size: int) -> torch.Tensor:
    """Draw rows that get shorter and shorter, padded."""
    ids = torch.randint(END_ID + 1, vocab_size, (batch, length))
    for row in range(batch):
        ids[row, length - row * (length // batch) :] = PAD_ID
    return ids


def assert_equal(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("separate", [False, True], ids=["one vocabulary", "two"])
@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)
def test_every_step_gives_our_logits(make_bundle, export, options, separate):
    bundle = make_bundle(separate=separate, **options)
    ours, theirs = bundle.model, export(bundle)
    for batch, length, steps in SHAPES:
        src_ids = draw_ids(batch, length, ours.config.vocab_size)
        states = [model.start(model.encode(src_ids)) for model in (ours, theirs)]
        for step in range(steps):
            ids = torch.randint(1, ours.tgt_vocab_size, (batch,))
            (expected, states[0]), (found, states[1]) = (
                model.step(ids, state) for model, state in zip((ours, theirs), states, strict=True)
            )
            assert_equal(found, expected)
            if step == 2:  # beams are copied, moved and dropped: another number of rows
                index = torch.tensor([batch - 1, 0, 0, batch - 1])
                states = [m.reorder(s, index) for m, s in zip((ours, theirs), states, strict=True)]
                batch = len(index)


@torch.no_grad()
@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)
def test_all_positions_at_once_give_our_logits(make_bundle, export, options):
    bundle = make_bundle(**options)
    ours, theirs = bundle.model, export(bundle)
    src, tgt = (
        [[*torch.randint(4, ours.tgt_vocab_size, (length,)).tolist(), END_ID] for length in lengths]
        for lengths in ((1, 9, 25), (12, 1, 20))
    )
    found = theirs.logits(src, tgt)
    for one, source, target in zip(found, src, tgt, strict=True):
        heard = torch.tensor([[START_ID, *target[:-1]]])
        assert_equal(one, ours(torch.tensor([source]), heard)[0])


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"attention_width": 4}], ids=["full", "restricted"])
def test_several_new_positions_do_not_see_ahead(make_bundle, export, tmp_path, options):
    bundle = make_bundle(**options)
    export(bundle)
    encoder, decoder = (
        onnxruntime.InferenceSession(tmp_path / name) for name in ("encoder.onnx", "decoder.onnx")
    )
    src_ids, tgt_ids = draw_ids(2, 6, 10), torch.randint(4, 10, (2, 9))
    names = [value.name for value in encoder.get_outputs()]
    feeds = dict(zip(names, encoder.run(names, {"src_ids": src_ids.numpy()}), strict=True))
    for layer in range(2):
        for kind in ("key", "value"):
            feeds[f"past_{kind}_{layer}"] = np.zeros((2, 4, 0, 4), dtype=np.float32)
    names, parts = [value.name for value in decoder.get_outputs()], []
    for part in tgt_ids.split([2, 4, 3], dim=1):
        found = dict(zip(names, decoder.run(names, {"ids": part.numpy(), **feeds}), strict=True))
        parts.append(torch.from_numpy(found.pop("logits")))
        feeds |= {f"past_{name}": values for name, values in found.items()}
    assert feeds["past_key_1"].shape == (2, 4, 9, 4)
    assert_equal(torch.cat(parts, dim=1), bundle.model(src_ids, tgt_ids))


@torch.no_grad()
def test_far_positions_are_as_exact_as_near_ones(make_bundle, export):
    bundle = make_bundle(num_layers=1)
    src_ids = torch.randint(4, 10, (1, 3000))
    theirs = export(bundle)
    found, _ = theirs.step(torch.tensor([5]), theirs.start(theirs.encode(src_ids)))
    assert_equal(found, bundle.model(src_ids, torch.tensor([[5]]))[:, 0])


@torch.no_grad()
def test_a_source_of_padding_alone_is_read_as_ours_is(make_bundle, export):
    bundle = make_bundle()
    src_ids = torch.tensor([[4, 5, 6], [PAD_ID] * 3])
    theirs = export(bundle)
    found, _ = theirs.step(torch.tensor([5, 5]), theirs.start(theirs.encode(src_ids)))
    assert_equal(found, bundle.model(src_ids, torch.tensor([[5], [5]]))[:, 0])


@pytest.mark.parametrize("beam_size", [1, 4])
def test_searches_find_the_same_ids(toy, export, beam_size):
    options = {**SIZES, "tie_embeddings": "none", "output_bias": True}
    model = build_model("transformer", options, toy.prepared.tokenizer).eval()
    with torch.no_grad():  # some translations end early, some late, some not
        model.output.weight.normal_()
        model.output.bias.zero_()[END_ID] = 0.5
    bundle = Bundle(model, toy.prepared.tokenizer, {})
    src = [[*torch.randint(4, 10, (length,)).tolist(), END_ID] for length in range(1, 21)]
    found = export(bundle).translate(src, beam_size)
    batch = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in src], True)
    expected = search(bundle.model, batch, SYMBOLS, DecodingOptions(beam_size=beam_size))
    best = [one.hypotheses[0] for one in expected]
    assert found == [[*one.ids, END_ID] if one.is_finished else one.ids for one in best]
    assert {one.is_finished for one in best} == {True, False}
    assert len(set(map(len, found))) > 6


def test_the_folder_describes_its_content(make_bundle, export, tmp_path):
    bundle = make_bundle(separate=True, d_k=3, num_decoder_layers=1)
    export(bundle)
    info = json.loads((tmp_path / "onnx.json").read_text(encoding="utf-8"))
    assert (info["pad_id"], info["unk_id"], info["start_id"], info["end_id"]) == (0, 1, 2, 3)
    assert info["decoding"] == {"beam_size": 4, "alpha": 0.6, "max_extra_tokens": 50}
    assert (info["src_lang"], info["max_positions"]) == ("ko", None)
    size = bundle.tokenizer.tgt_vocab_size
    assert info["graphs"]["decoder.onnx"]["outputs"]["logits"] == f"float32 (rows, length, {size})"
    for name, reported in info["graphs"].items():
        graph = onnx.load(tmp_path / name)
        onnx.checker.check_model(graph, full_check=True)
        assert graph.ir_version == info["ir_version"] == 8
        assert [(one.domain, one.version) for one in graph.opset_import] == [("", info["opset"])]
        assert info["opset"] == 17
        assert {node.domain for node in graph.graph.node} == {""}
        session = onnxruntime.InferenceSession(tmp_path / name)
        for side, values in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
            shapes = {one.name: f"({', '.join(map(str, one.shape))})" for one in values}
            assert {key: text.split(" ", 1)[1] for key, text in reported[side].items()} == shapes
    assert reported["inputs"]["past_key_0"] == "float32 (rows, 4, past_length, 3)"
    assert "past_key_1" not in reported["inputs"]
    for key in ("src", "tgt"):
        assert (tmp_path / info["tokenizer"][key]).is_file()


def test_a_shared_matrix_is_kept_once(make_bundle, export, tmp_path):
    bundle = make_bundle(d_model=20)
    export(bundle)
    size = {bundle.tokenizer.tgt_vocab_size, 20}
    weights = onnx.load(tmp_path / "decoder.onnx").graph.initializer
    assert [one.name for one in weights if set(one.dims) == size] == ["tgt_embedding.weight"]


def test_a_model_in_half_precision_and_training_is_written_in_float32(make_bundle, export):
    bundle = make_bundle(dropout=0.5)
    half = bundle._replace(model=bundle.model.bfloat16().train())
    src, tgt = [[4, 5, 6, END_ID]], [[7, 8, END_ID]]
    (found,) = export(half).logits(src, tgt)
    exact = half.model.float().eval()
    assert_equal(found, exact(torch.tensor(src), torch.tensor([[START_ID, 7, 8]]))[0].detach())


def test_what_is_too_large_for_one_file_is_in_another(make_bundle, export, tmp_path, monkeypatch):
    monkeypatch.setattr(interop, "MAX_FILE_BYTES", 1000)
    bundle = make_bundle(num_heads=2)
    (found,) = export(bundle).logits([[4, 5, END_ID]], [[6, END_ID]])
    expected = bundle.model(torch.tensor([[4, 5, END_ID]]), torch.tensor([[START_ID, 6]]))[0]
    assert_equal(found, expected.detach())
    assert {"encoder.onnx.data", "decoder.onnx.data"} <= {path.name for path in tmp_path.iterdir()}


def test_every_value_of_every_option_is_tried_above():
    tried = [TransformerConfig(vocab_size=8, **{**SIZES, **one}) for one in CONFIGS.values()]
    for name, field in TransformerConfig.model_fields.items():
        for value in get_args(field.annotation):
            if isinstance(value, str):
                assert value in {getattr(config, name) for config in tried}, name
        if field.annotation is bool:
            assert {getattr(config, name) for config in tried} == {True, False}, name
    assert set(TransformerConfig.model_fields) == interop.SUPPORTED_OPTIONS | set(
        interop.SUPPORTED_VALUES
    )


@pytest.mark.parametrize("kind", ["rnn-seq2seq", "rnn-attention", "conv-s2s"])
def test_baselines_are_rejected(make_bundle, tmp_path, kind):
    bundle = make_bundle(kind)
    assert interop.unsupported_reasons(bundle) == [
        f"models of kind '{kind}' cannot be exported to ONNX: only the Transformer can"
    ]
    with pytest.raises(ConfigError, match=kind):
        interop.write(bundle, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_options_of_the_future_are_rejected_all_at_once(make_bundle, tmp_path):
    class Future(TransformerConfig):
        rotary: bool = False
        experts: int = 1
        window: int = 0
        activation: str = "relu"

    bundle = make_bundle()
    bundle.model.config = Future(
        **{**bundle.model.config.model_dump(), "rotary": True, "experts": 8, "activation": "mish"}
    )
    with pytest.raises(ConfigError) as raised:
        interop.write(bundle, tmp_path, quantization="int8")
    reported = str(raised.value)
    assert len(raised.value.reasons) == 4
    assert all(word in reported for word in ("rotary = True", "experts = 8", "mish", "'int8'"))
    assert "window" not in reported


def test_a_missing_library_names_the_extra(make_bundle, export, tmp_path, monkeypatch):
    bundle = make_bundle()
    export(bundle)
    for library, extra, use in (
        ("onnx", "interop", lambda: interop.write(bundle, tmp_path)),
        ("onnxruntime", "onnx", lambda: interop.load_reference(tmp_path)),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtraError, match=f"{library} is not installed") as raised:
            use()
        assert f"attendo[{extra}]" in raised.value.hint


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"format_version": "new"}'])
def test_another_folder_is_rejected(tmp_path, content):
    if content is not None:
        (tmp_path / "onnx.json").write_text(content)
    with pytest.raises(InputError, match="is not an Attendo ONNX folder"):
        interop.load_reference(tmp_path)


def test_a_newer_format_is_rejected(tmp_path):
    (tmp_path / "onnx.json").write_text('{"format_version": 99}')
    with pytest.raises(InputError, match="99") as raised:
        interop.load_reference(tmp_path)
    assert raised.value.hint == "update Attendo"


def test_a_json_with_missing_values_is_rejected(tmp_path):
    (tmp_path / "onnx.json").write_text('{"format_version": 1, "end_id": 3, "pad_id": 0}')
    with pytest.raises(InputError, match="does not contain start_id, unk_id, max_positions"):
        interop.load_reference(tmp_path)


def test_a_damaged_graph_is_reported(make_bundle, export, tmp_path):
    export(make_bundle())
    (tmp_path / "decoder.onnx").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"decoder\.onnx"):
        interop.load_reference(tmp_path)
    (tmp_path / "encoder.onnx").unlink()
    with pytest.raises(InputError, match=r"encoder\.onnx"):
        interop.load_reference(tmp_path)


def test_more_positions_than_learned_are_rejected_as_in_ours(make_bundle, export):
    bundle = make_bundle(positions="learned", max_length=5)
    theirs = export(bundle)
    sources, targets = [[4, 5, 6, 7, END_ID]], [[4, 5, 6, 7, END_ID]]
    assert theirs.logits(sources, targets)[0].shape[0] == 5
    for src, tgt in ((sources, [[4, *targets[0]]]), ([[4, *sources[0]]], targets)):
        with pytest.raises(InputError, match="6 positions is longer than the 5 learned"):
            theirs.logits(src, tgt)
        with pytest.raises(InputError, match="6 positions is longer than the 5 learned"):
            bundle.model(torch.tensor(src), torch.tensor(tgt))
