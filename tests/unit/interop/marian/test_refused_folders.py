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
    reported = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(reported | changes), encoding="utf-8")


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
    printed = refusal(folder)
    assert "6 tensors do not match the config" in printed
    for name in missing:
        assert f"missing: {name}" in printed
    for name in strange:
        assert f"unknown: {name}" in printed
    assert re.search(r"wrong shape: final_logits_bias has .*\(3, 3\), not \(1, \d+\)", printed)
    assert f"{wrong[0]} has the shape (3, 3), not (16, 16)" in printed


def test_matrices_that_are_one_must_be_equal(folder):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["lm_head.weight"] = tensors["model.shared.weight"] + 1

    change_tensors(folder, change)
    printed = refusal(folder)
    assert "model.shared.weight, lm_head.weight are tied in its config but differ" in printed


def test_positions_that_are_not_sinusoids(folder):
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


def test_a_pickle_that_needs_code_is_rejected_and_not_run(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    mark = tmp_path / "it ran"
    torch.save({"model.shared.weight": torch.zeros(2), "extra": Trap(mark)},
               folder / "pytorch_model.bin")  # fmt: skip
    printed = refusal(folder)
    assert "pickle that would run code" in printed
    assert "save_file" in printed  # the safe way
    assert not mark.exists()
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert mark.exists()  # the trap was a real one


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and nothing more", b"<html></html>"])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_damaged_weights(folder, name, content):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    printed = refusal(folder)
    assert name in printed
    assert "copy" in printed


def test_no_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "contains neither model.safetensors nor pytorch_model.bin" in refusal(folder)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm"])
def test_a_missing_or_broken_file_is_named(folder, name):
    (folder / name).write_bytes(b"{]")
    assert "SentencePiece" in refusal(folder) or name in refusal(folder)
    (folder / name).unlink()
    assert f"missing {name}" in refusal(folder)


def test_all_missing_files_are_named_in_one_error_with_one_hint(folder):
    for name in ("config.json", "vocab.json", "target.spm"):
        (folder / name).unlink()
    reported = refusal(folder)
    assert "missing config.json, vocab.json, target.spm" in reported
    assert reported.count("hint:") == 1
    assert "JSON" not in reported


@pytest.mark.parametrize("name", ["../model.safetensors", "other.bin", 7])
def test_shards_outside_the_folder_or_of_another_kind_are_rejected(folder, name):
    (folder / "model.safetensors").rename(folder.parent / "model.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"model.shared.weight": name}}))
    assert "does not name the files" in refusal(folder)
    index.write_text(json.dumps({"weight_map": {"model.shared.weight": "lost.safetensors"}}))
    assert "lost.safetensors are missing" in refusal(folder)


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
    printed = refusal(folder)
    assert "the vocabulary does not match the model" in printed
    for reason in reasons:
        assert reason in printed


def test_one_vocabulary_for_two_sizes(make_marian):
    folder = make_marian(share_encoder_decoder_embeddings=False, separate=True).folder
    change_json(folder / "tokenizer_config.json", separate_vocabs=False)
    assert "one vocabulary for both sides, but vocab_size" in refusal(folder)


def test_settings_that_cannot_be_used_are_all_named(folder):
    change_json(folder / "config.json", activation_function="mish", d_model=0, eos_token_id=[0, 1])
    printed = refusal(folder, ConfigError)
    for name in ("activation_function", "d_model", "eos_token_id"):
        assert name in printed


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


def test_a_newer_format_is_rejected(own):
    reported = json.loads((own / "config.json").read_text("utf-8"))["attendo"]
    change_json(own / "config.json", attendo=reported | {"format_version": FORMAT_VERSION + 1})
    printed = refusal(own)
    assert f"newer Attendo (format {FORMAT_VERSION + 1})" in printed
    assert "update Attendo" in printed


def test_a_folder_of_ours_that_was_changed(own):
    change_json(own / "config.json", activation_function="relu", decoder_layers=1)
    printed = refusal(own)
    assert "activation_function is 'relu', Attendo wrote 'swish'" in printed
    assert "decoder_layers is 1, Attendo wrote 2" in printed


def test_a_folder_of_ours_whose_own_part_is_damaged(own):
    change_json(own / "config.json", attendo={"format_version": 1})
    assert "is damaged" in refusal(own)


@pytest.mark.parametrize(
    ("source", "options", "printed"),
    [
        ("marian", {}, "has no format prefix"),
        ("hff:marian", {}, "did you mean 'hf'"),
        ("hf:nowhere", {}, "nowhere is not a folder"),
        ("fairseq:nowhere.pt", {}, "nowhere.pt is not a file"),
        ("hf:.", {"dictionaries": ["dict.en.txt"]}, "hf: does not support dictionaries"),
        ("fairseq:pyproject.toml", {"code": "fra"}, "fairseq: does not support code"),
    ],
)
def test_a_source_that_cannot_be_read(tmp_path, repository, monkeypatch, source, options, printed):
    monkeypatch.chdir(repository)
    with pytest.raises(InputError, match=re.escape(printed)):
        import_model(source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(folder, tmp_path):
    import_model(f"hf:{folder}", tmp_path / "model")
    before = (tmp_path / "model" / "bundle.json").read_bytes()
    with pytest.raises(InputError, match="already exists"):
        import_model(f"hf:{folder}", tmp_path / "model")
    assert (tmp_path / "model" / "bundle.json").read_bytes() == before
