"""Marian folders that cannot be used: each is refused for what is wrong with it, all at once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from attendo.bundle import FORMAT_VERSION
from attendo.core.errors import ConfigError, InputError
from attendo.interop.import_model import import_model
from attendo.interop.marian import model_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(make_marian) -> Path:
    return make_marian().folder


def change_json(path: Path, **changes: Any) -> None:
    told = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(told | changes), encoding="utf-8")


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def refusal(folder: Path, kind: type[Exception] = InputError) -> str:
    with pytest.raises(kind) as raised:
        model_folder.read(folder)
    return str(raised.value)


def test_all_missing_unknown_and_ill_shaped_tensors_are_named(folder):
    missing = ["model.encoder.layers.1.fc1.weight", "model.shared.weight"]
    wrong = ["model.decoder.layers.0.encoder_attn.q_proj.weight", "final_logits_bias"]
    strange = ["model.encoder.layernorm_embedding.weight", "model.encoder.layers.2.fc1.bias"]

    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name in missing:
            del tensors[name]
        for name in wrong:
            tensors[name] = torch.zeros(3, 3)
        tensors |= {name: torch.zeros(2) for name in strange}

    change_tensors(folder, change)
    said = refusal(folder)
    assert "6 tensors not as its config says" in said
    for name in missing:
        assert f"missing: {name}" in said
    for name in strange:
        assert f"unknown: {name}" in said
    assert re.search(r"of another shape: final_logits_bias has .*\(3, 3\), not \(1, \d+\)", said)
    assert f"{wrong[0]} has the shape (3, 3), not (16, 16)" in said


def test_matrices_that_are_one_must_be_equal(folder):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["lm_head.weight"] = tensors["model.shared.weight"] + 1

    change_tensors(folder, change)
    said = refusal(folder)
    assert "model.shared.weight, lm_head.weight are one by its config, and differ" in said


def test_positions_that_are_no_sinusoids(folder):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.encoder.embed_positions.weight"] = torch.randn(128, 16)

    change_tensors(folder, change)
    assert "other positions than sinusoids in halves" in refusal(folder)


class Trap:
    """What a stranger could put into a pickle: a call of his own when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (type(self.mark).touch, (self.mark,))


def test_a_pickle_that_needs_code_is_refused_and_not_run(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    mark = tmp_path / "it ran"
    torch.save({"model.shared.weight": torch.zeros(2), "extra": Trap(mark)},
               folder / "pytorch_model.bin")  # fmt: skip
    said = refusal(folder)
    assert "pickle that would run code" in said
    assert "save_file" in said  # the safe way
    assert not mark.exists()
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert mark.exists()  # the trap was a real one


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and nothing more", b"<html></html>"])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_damaged_weights(folder, name, content):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    said = refusal(folder)
    assert name in said
    assert "copy" in said


def test_no_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "holds neither model.safetensors nor pytorch_model.bin" in refusal(folder)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm"])
def test_a_missing_or_broken_file_is_named(folder, name):
    (folder / name).write_bytes(b"{]")
    assert "SentencePiece" in refusal(folder) or name in refusal(folder)
    (folder / name).unlink()
    assert f"{name} is missing" in refusal(folder)


def change_vocabulary(folder: Path, change: Callable[[dict[str, int]], None]) -> None:
    table = json.loads((folder / "vocab.json").read_text("utf-8"))
    change(table)
    (folder / "vocab.json").write_text(json.dumps(table), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (lambda table: table.popitem(), ["pieces with ids up to", "no <pad>"]),
        (lambda table: table.update(new=len(table)), ["pieces with ids up to"]),
        (lambda table: table.update({"<unk>": 5}), ["pieces with ids up to"]),
        (lambda table: table.pop("<unk>"), ["no <unk>"]),
        (
            lambda table: table.update({"</s>": table["<s>"], "<s>": table["</s>"]}),
            ["</s> is", "0 in config.json"],
        ),
    ],
    ids=["too few", "too many", "twice", "no unknown", "another end"],
)
def test_a_vocabulary_that_does_not_match(folder, change, reasons):
    change_vocabulary(folder, change)
    said = refusal(folder)
    assert "the vocabulary does not match the model" in said
    for reason in reasons:
        assert reason in said


def test_one_vocabulary_for_two_sizes(make_marian):
    folder = make_marian(share_encoder_decoder_embeddings=False, separate=True).folder
    change_json(folder / "tokenizer_config.json", separate_vocabs=False)
    assert "one vocabulary for both sides, but vocab_size" in refusal(folder)


def test_settings_that_cannot_be_used_are_all_named(folder):
    change_json(folder / "config.json", activation_function="mish", d_model=0, eos_token_id=[0, 1])
    said = refusal(folder, ConfigError)
    for name in ("activation_function", "d_model", "eos_token_id"):
        assert name in said


def test_another_model_is_named(folder):
    change_json(folder / "config.json", model_type="bart")
    assert "type 'bart', not marian" in refusal(folder)


@pytest.fixture
def own(folder, tmp_path) -> Path:
    """A folder that we wrote."""
    written = tmp_path / "own"
    written.mkdir()
    model_folder.write(model_folder.read(folder), written)
    return written


def test_a_newer_format_is_refused(own):
    told = json.loads((own / "config.json").read_text("utf-8"))["attendo"]
    change_json(own / "config.json", attendo=told | {"format_version": FORMAT_VERSION + 1})
    said = refusal(own)
    assert f"newer Attendo (format {FORMAT_VERSION + 1})" in said
    assert "update Attendo" in said


def test_a_folder_of_ours_that_was_changed(own):
    change_json(own / "config.json", activation_function="relu", decoder_layers=1)
    said = refusal(own)
    assert "activation_function is 'relu', Attendo wrote 'swish'" in said
    assert "decoder_layers is 1, Attendo wrote 2" in said


def test_a_folder_of_ours_whose_own_part_is_damaged(own):
    change_json(own / "config.json", attendo={"format_version": 1})
    assert "is damaged" in refusal(own)


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("marian", {}, "does not say what it is"),
        ("hff:marian", {}, "did you mean 'hf'"),
        ("hf:nowhere", {}, "nowhere is no folder"),
        ("fairseq:nowhere.pt", {}, "nowhere.pt is no file"),
        ("hf:.", {"dictionaries": ["dict.en.txt"]}, "hf: takes no dictionaries"),
        ("fairseq:pyproject.toml", {"code": "fra"}, "fairseq: takes no code"),
    ],
)
def test_a_source_that_cannot_be_read(tmp_path, repository, monkeypatch, source, options, said):
    monkeypatch.chdir(repository)
    with pytest.raises(InputError, match=re.escape(said)):
        import_model(source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(folder, tmp_path):
    import_model(f"hf:{folder}", tmp_path / "model")
    before = (tmp_path / "model" / "bundle.json").read_bytes()
    with pytest.raises(InputError, match="exists already"):
        import_model(f"hf:{folder}", tmp_path / "model")
    assert (tmp_path / "model" / "bundle.json").read_bytes() == before
