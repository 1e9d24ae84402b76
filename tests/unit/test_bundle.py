from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import safetensors.torch
import torch

from attendo.architectures.registry import STORED_KINDS
from attendo.bundle import (
    FORMAT_VERSION,
    INDEX_FILE,
    WEIGHTS_FILE,
    build_model,
    get_weights,
    load_bundle,
    load_model,
    save_bundle,
    set_weights,
)
from attendo.core.errors import AttendoError, ConfigError, InputError

if TYPE_CHECKING:
    from pathlib import Path

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def saved(toy, tmp_path) -> Path:
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    return tmp_path / "model"


def change_index(folder: Path, **changes: object) -> None:
    index = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
    (folder / INDEX_FILE).write_text(json.dumps(index | changes), encoding="utf-8")


def change_weights(folder: Path, change) -> None:
    weights = safetensors.torch.load_file(folder / WEIGHTS_FILE)
    change(weights)
    safetensors.torch.save_file(weights, folder / WEIGHTS_FILE)


@pytest.mark.parametrize("kind", ["prepared", "separate"])
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "tie_embeddings": "none"}])
def test_round_trip_gives_the_same_logits(toy, tmp_path, kind, options):
    tokenizer = getattr(toy, kind).tokenizer
    model = build_model("transformer", {**SIZES, **options}, tokenizer).eval()
    about = {"src_lang": "ko", "note": "왕자"}
    save_bundle(tmp_path / "model", model, tokenizer, about=about)
    found = load_bundle(tmp_path / "model")
    src_ids = torch.tensor(tokenizer.encode_src(["ka to mi", "so lu re"]))
    tgt_ids = torch.tensor([[2, 5, 6], [2, 7, 4]])
    with torch.no_grad():
        assert torch.equal(found.model(src_ids, tgt_ids), model(src_ids, tgt_ids))
    assert found.tokenizer.fingerprint == tokenizer.fingerprint
    assert found.about == about
    assert not found.model.training
    assert found.model.config == model.config


SMALL = {
    "transformer": SIZES | {"positions": "learned"},
    "rnn-seq2seq": {"d_model": 16, "num_layers": 2},
    "rnn-attention": {"d_model": 16, "cell": "gru"},
    "conv-s2s": {"d_model": 16, "num_layers": 2},
    "decoder": SIZES,
    "encoder": SIZES | {"positions": "concatenated"},
    "series": SIZES | {"num_features": 2, "num_targets": 1, "vocab_size": 4},
}


def build(kind: str, **options):
    return STORED_KINDS[kind].model_class(**{"vocab_size": 23, **SMALL[kind], **options})


def reload(model, folder: Path):
    """Return the model as it is loaded from a folder."""
    folder.mkdir()
    safetensors.torch.save_file(get_weights(model), folder / WEIGHTS_FILE)
    return load_model(folder, {"kind": model.kind, "config": model.config.model_dump(mode="json")})


def test_every_kind_is_tested():
    assert set(SMALL) == set(STORED_KINDS)


@pytest.mark.parametrize("kind", SMALL)
def test_a_loaded_model_is_equal_to_the_saved_one(tmp_path, kind):
    model = build(kind)
    loaded = reload(model, tmp_path / "model")
    state, expected = loaded.state_dict(), model.state_dict()
    assert list(state) == list(expected)
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert all(p.device.type == "cpu" and p.is_leaf for p in loaded.parameters())
    src = torch.randn(2, 5, 2) if kind == "series" else torch.randint(4, 23, (2, 5))
    tgt = torch.randn(2, 3, 1) if kind == "series" else torch.randint(4, 23, (2, 3))
    model.eval(), loaded.eval()
    with torch.no_grad():
        assert torch.equal(loaded(src, tgt), model(src, tgt))


@pytest.mark.parametrize("kind", SMALL)
def test_models_have_no_tensors_but_parameters(kind):
    """A model folder has the parameters only."""
    for module in build(kind).modules():
        assert not list(module.buffers(recurse=False))
        tensors = [name for name, value in vars(module).items() if torch.is_tensor(value)]
        assert not tensors


@pytest.mark.parametrize("tie", ["three-way", "decoder", "none"])
@pytest.mark.parametrize("kind", ["transformer", "rnn-seq2seq", "conv-s2s", "decoder", "encoder"])
def test_tied_parameters_stay_tied(tmp_path, kind, tie):
    model = build(kind, tie_embeddings=tie)
    loaded = reload(model, tmp_path / "model")
    sizes = [len({id(p) for p in one.parameters()}) for one in (model, loaded)]
    assert sizes[0] == sizes[1]
    is_tied = tie == "three-way" or (tie == "decoder" and kind != "encoder")
    embedding = (
        loaded.src_embedding if tie == "three-way" else getattr(loaded, "tgt_embedding", None)
    )
    assert is_tied == (embedding is not None and loaded.output.weight is embedding.weight)


@pytest.mark.parametrize("kind", ["transformer", "rnn-attention", "conv-s2s"])
def test_a_loaded_model_can_be_trained(tmp_path, kind):
    """The kernels of an RNN and a normalized weight must see the loaded parameters."""
    loaded = reload(build(kind, dropout=0.0), tmp_path / "model").train()
    ids = torch.randint(4, 23, (2, 5))
    before = loaded(ids, ids)
    before.sum().backward()
    assert all(p.grad is not None for p in loaded.parameters())
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.mul_(0.5)
    assert not torch.equal(loaded(ids, ids), before)


def test_weights_are_aligned_copies_in_the_model_s_dtype(tmp_path):
    model = build("transformer").bfloat16()
    folder = tmp_path / "model"
    loaded = reload(model, folder)
    for name, parameter in loaded.named_parameters():
        assert parameter.dtype == torch.float32
        assert parameter.data_ptr() % 64 == 0
        assert parameter.is_contiguous()
        assert torch.equal(parameter, model.get_parameter(name).float())
    before = {name: value.clone() for name, value in get_weights(loaded).items()}
    path = folder / WEIGHTS_FILE
    with path.open("r+b") as file:  # the same file, not a new one in its place
        file.write(b"\xff" * path.stat().st_size)
    assert all(torch.equal(value, before[name]) for name, value in get_weights(loaded).items())


def test_loading_does_not_import_the_compiler(tmp_path, repository):
    """That would take seconds; some operations on the meta device do so."""
    for kind in SMALL:
        model = build(kind)
        reload(model, tmp_path / kind)
        config = model.config.model_dump(mode="json")
        (tmp_path / kind / "index").write_text(json.dumps({"kind": kind, "config": config}))
    code = (
        "import json, pathlib, sys\n"
        "from attendo.bundle import load_model\n"
        "for folder in pathlib.Path(sys.argv[1]).iterdir():\n"
        "    load_model(folder, json.loads((folder / 'index').read_text()))\n"
        "    assert 'torch._dynamo' not in sys.modules, folder"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, cwd=repository)


def test_loading_leaves_the_random_state_alone(saved):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_bundle(saved)
    assert torch.equal(torch.rand(3), expected)


def test_separate_vocabularies_have_a_size_each(toy):
    separate, shared = toy.separate.tokenizer, toy.prepared.tokenizer
    model = build_model("transformer", SIZES, separate)
    assert not separate.is_shared
    assert model.src_embedding.weight.size(0) == separate.src_vocab_size
    assert model.output.weight is model.tgt_embedding.weight
    assert model.src_embedding.weight is not model.tgt_embedding.weight
    model = build_model("transformer", SIZES, shared)
    assert model.src_embedding.weight is model.output.weight
    assert "output.weight" not in get_weights(model)


def test_a_run_folder_is_understood(saved):
    assert load_bundle(saved.parent).about == load_bundle(str(saved)).about


def test_an_older_one_yields(saved, toy):
    before = load_bundle(saved).model
    other = build_model("transformer", SIZES, toy.prepared.tokenizer)
    assert not torch.equal(other.output.weight, before.output.weight)
    save_bundle(saved, other, toy.prepared.tokenizer)
    assert torch.equal(load_bundle(saved).model.output.weight, other.output.weight)
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("name", [".model.fresh", ".model.older", "..model.fresh.partial"])
def test_what_a_killed_process_left_is_replaced(saved, toy, name):
    left = saved.parent / name
    left.mkdir()
    (left / "stale").write_text("x")
    save_bundle(saved, load_bundle(saved).model, toy.prepared.tokenizer)
    assert [path.name for path in saved.parent.iterdir()] == ["model"]
    assert not (saved / "stale").exists()


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), safetensors.SafetensorError("No space left")]
)
def test_full_disk_leaves_the_older_one(saved, toy, monkeypatch, error):
    before = load_bundle(saved).model

    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(AttendoError, match="No space left"):
        save_bundle(
            saved, build_model("transformer", SIZES, toy.prepared.tokenizer), toy.prepared.tokenizer
        )
    assert torch.equal(load_bundle(saved).model.output.weight, before.output.weight)
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_a_newer_format_is_rejected(saved):
    change_index(saved, format_version=FORMAT_VERSION + 1)
    with pytest.raises(InputError, match=f"format {FORMAT_VERSION + 1}") as raised:
        load_bundle(saved)
    assert raised.value.hint == "update Attendo"


def test_an_unknown_kind_is_rejected(saved, toy):
    change_index(saved, kind="rnn")
    with pytest.raises(InputError, match="of unknown kind 'rnn'"):
        load_bundle(saved)
    with pytest.raises(ConfigError, match="no model kind 'rnn'"):
        build_model("rnn", SIZES, toy.prepared.tokenizer)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda w: w.pop("src_embedding.weight"), r"1 missing \(src_embedding.weight"),
        (lambda w: w.update(strange=torch.zeros(1)), r"1 unknown \(strange"),
        (
            lambda w: w.update({"src_embedding.weight": torch.zeros(3, 3)}),
            r"1 of another shape \(src_embedding.weight",
        ),
    ],
)
def test_tensors_that_do_not_fit_raise_an_error(saved, change, problem):
    change_weights(saved, change)
    with pytest.raises(InputError, match=problem) as raised:
        load_bundle(saved)
    assert str(saved) in raised.value.reason


def test_all_that_does_not_fit_is_reported_at_once(make_model):
    model = make_model()
    weights = get_weights(model)
    weights["stranger"] = weights.pop("src_embedding.weight")
    with pytest.raises(InputError, match=r"1 missing .*; 1 unknown"):
        set_weights(model, weights)


def test_another_tokenizer_is_reported(saved, toy):
    for path in saved.glob("tokenizer*"):
        path.unlink()
    toy.separate.tokenizer.save(saved)
    assert toy.separate.tokenizer.src_vocab_size != toy.prepared.tokenizer.src_vocab_size
    with pytest.raises(InputError, match="tokens, the model"):
        load_bundle(saved)


def test_no_model_folder(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="is not a model folder") as raised:
            load_bundle(path)
        assert "OUT/model" in raised.value.hint


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format_version": "new", "config": {}, "about": {}}']
)
def test_a_damaged_index_is_reported(saved, content):
    (saved / INDEX_FILE).write_text(content)
    with pytest.raises(InputError, match=f"{INDEX_FILE} is damaged"):
        load_bundle(saved)
    (saved / INDEX_FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=f"{INDEX_FILE} is damaged"):
        load_bundle(saved)


@pytest.mark.parametrize("size", [None, 0, 40, -1])
def test_damaged_weights_are_reported(saved, size):
    data = (saved / WEIGHTS_FILE).read_bytes()
    (saved / WEIGHTS_FILE).unlink()
    if size is not None:
        (saved / WEIGHTS_FILE).write_bytes(data[:size])
    with pytest.raises(InputError, match="cannot be read"):
        load_bundle(saved)


def test_nothing_in_it_can_run_code(saved, repository):
    assert {path.suffix for path in saved.iterdir()} == {".json", ".safetensors", ".model"}
    pattern = re.compile(r"(import|from) (pickle|dill|joblib|shelve)|torch\.(load|save)\(")
    users = [
        path.name
        for path in (repository / "src").rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert users == [
        "safe_pickle.py"
    ]  # where weights of other toolkits are read, nothing but those
    text = (repository / "src/attendo/interop/safe_pickle.py").read_text(encoding="utf-8")
    assert set(re.findall(r"pickle\.\w+", text)) == {"pickle.UnpicklingError"}
    calls = re.findall(r"torch\.load\((.*)\)", text)
    assert calls == ['path, map_location="cpu", weights_only=True']


def test_a_folder_of_format_1_still_loads(saved):
    """Written before models came from elsewhere: none of the options that those brought."""
    expected = load_bundle(saved)
    index = json.loads((saved / INDEX_FILE).read_text(encoding="utf-8"))
    later = ("output_bias", "scale_embeddings", "num_decoder_heads", "decoder_d_ff")
    config = {key: value for key, value in index["config"].items() if key not in later}
    assert len(config) == len(index["config"]) - len(later)
    change_index(saved, format_version=1, config=config)
    found = load_bundle(saved)
    assert found.model.config == expected.model.config
    weights, before = get_weights(found.model), get_weights(expected.model)
    assert all(torch.equal(weights[name], before[name]) for name in before)
