"""Corpora and checkpoints in an object store: an S3 server on this machine."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
import torch
from support.object_store import bucket, object_store_address

from attendo.bundle import load_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.run_folder import RunFolder
from attendo.tasks import remote_inputs
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.training.progress import NullReporter

__all__ = ["bucket", "object_store_address"]

s3fs = pytest.importorskip("s3fs")

SETTINGS = {
    "data.tokenizer.kind": "word",
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "model.num_layers": 1,
    "train.max_steps": 8,
    "train.save_every": 2,
    "train.validate_every": 4,
    "train.log_every": 2,
    "train.warmup_steps": 20,
    "train.batch_tokens": 192,
    "train.keep_last": 3,
    "train.average": "last",
    "train.average_checkpoints": 3,
    "train.bleu_sentences": 3,
}


class StopAt(NullReporter):
    """Raises an error when a step is reported; keeps the messages and stages."""

    def __init__(self, step: int | None = None) -> None:
        self.at = step
        self.messages: list[str] = []
        self.stages: list[str] = []

    def message(self, text: str) -> None:
        self.messages.append(str(text))

    def stage(self, name: str, _done: int, _total: int | None) -> None:
        self.stages.append(name)

    def step(self, step, _total, _figures) -> None:
        if step == self.at:
            raise MemoryError("killed")


@pytest.fixture(autouse=True)
def _cache(toy, monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))
    monkeypatch.setattr(remote_inputs, "cache_dir", lambda: tmp_path / "cache")


@pytest.fixture
def corpus(bucket, toy) -> dict[str, str]:
    """The two sides of the toy corpus, in the bucket."""
    filesystem = s3fs.S3FileSystem()
    for side, path in (("src", toy.src), ("tgt", toy.tgt)):
        filesystem.put_file(str(path), f"{bucket}/text/a.{side}")
    return {"src": f"{bucket}/text/a.src", "tgt": f"{bucket}/text/a.tgt"}


def make_config(corpus: dict[str, Any], reporter=None, **changes: Any):
    settings = SETTINGS | {key.replace("__", "."): value for key, value in changes.items()}
    pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    request = TrainRequest(settings=pairs, **{name: [one] for name, one in corpus.items()})
    return request.check(reporter=reporter)


def weights(folder) -> dict[str, torch.Tensor]:
    return dict(load_bundle(folder).model.named_parameters())


def test_a_run_goes_on_from_the_object_store_on_another_machine(bucket, corpus, toy, tmp_path):
    undisturbed = train_run(make_config({"src": toy.src, "tgt": toy.tgt}), tmp_path / "undisturbed")
    storage = f"{bucket}/runs/mine"
    with pytest.raises(MemoryError, match="killed"):
        train_run(make_config(corpus), tmp_path / "out", storage=storage, reporter=StopAt(6))
    left = RunFolder(tmp_path / "out").checkpoint_steps()
    assert left == [2, 4]
    shutil.rmtree(tmp_path / "out")
    reporter = StopAt()
    done = train_run(make_config(corpus), tmp_path / "new", storage=storage, reporter=reporter)
    assert f"fetched step 4 from {storage}" in reporter.messages
    assert "resuming from step 4" in reporter.messages
    ours, theirs = weights(done.model_dir), weights(undisturbed.model_dir)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    third = train_run(make_config(corpus), tmp_path / "third", storage=storage, reporter=reporter)
    assert any("already finished" in one for one in reporter.messages)
    assert (third.model_dir / "model.safetensors").read_bytes() == (
        done.model_dir / "model.safetensors"
    ).read_bytes()


def test_another_run_is_not_overwritten(bucket, corpus, tmp_path):
    storage = f"{bucket}/runs/mine"
    with pytest.raises(MemoryError):
        train_run(make_config(corpus), tmp_path / "out", storage=storage, reporter=StopAt(4))
    other = make_config(corpus, model__d_ff=48)
    with pytest.raises(ConfigError, match=rf"{storage} contains another run") as caught:
        train_run(other, tmp_path / "other", storage=storage)
    assert "--storage" in str(caught.value.hint)
    assert not (tmp_path / "other").exists()
    train_run(other, tmp_path / "other", storage=storage, force=True)
    found = s3fs.S3FileSystem().cat_file(f"{storage}/config.json")
    assert json.loads(found)["model"]["d_ff"] == 48


def test_a_corpus_is_downloaded_once_per_version(bucket, corpus, toy):
    reporter = StopAt()
    config = make_config(corpus, reporter)
    assert [one.read_bytes() for one in config.paths] == [
        toy.src.read_bytes(),
        toy.tgt.read_bytes(),
    ]
    assert {f"fetching {one}" for one in corpus.values()} <= set(reporter.stages)
    reporter.stages.clear()
    assert make_config(corpus, reporter).paths == config.paths
    assert not any("fetching" in one for one in reporter.stages)
    content = toy.src.read_text(encoding="utf-8").upper()
    s3fs.S3FileSystem().pipe_file(corpus["src"], content.encode())
    assert make_config(corpus).paths[0].read_text(encoding="utf-8") == content


def test_a_pattern_is_one_corpus_per_file(bucket, corpus, toy):
    filesystem = s3fs.S3FileSystem()
    for side in ("src", "tgt"):
        filesystem.copy(corpus[side], f"{bucket}/text/b.{side}")
    patterns = {"src": f"{bucket}/text/*.src", "tgt": f"{bucket}/text/*.tgt"}
    corpora = make_config(patterns).text_data.corpora
    assert [[path.name for path in one.paths] for one in corpora] == [
        ["a.src", "a.tgt"], ["b.src", "b.tgt"],
    ]  # fmt: skip
    filesystem.rm(f"{bucket}/text/b.tgt")
    filesystem.invalidate_cache()
    with pytest.raises(ConfigError, match=r"matches 2 files, .* 1"):
        make_config(patterns)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [("text/missing.src", "does not exist"), ("text", "is a folder"),
     ("nothing/*.src", "no file matches")],
)  # fmt: skip
def test_what_cannot_be_read_is_named(bucket, corpus, wrong, expected):
    address = f"{bucket}/{wrong}"
    with pytest.raises(InputError, match=expected) as caught:
        make_config({**corpus, "src": address})
    assert address in str(caught.value)


def test_a_download_that_ends_early_is_not_kept(bucket, corpus, monkeypatch, tmp_path):
    read = s3fs.core.S3File._fetch_range

    def cut(self, start, end):
        return read(self, start, end)[:10] if start == 0 else b""

    with monkeypatch.context() as patch:
        patch.setattr(s3fs.core.S3File, "_fetch_range", cut)
        with pytest.raises(AttendoError, match=r"a\.src"):
            make_config(corpus)
    assert not list((tmp_path / "cache").rglob("a.src*"))
    assert make_config(corpus).paths[0].stat().st_size > 10


def test_missing_credentials_are_named(bucket, corpus, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(InputError, match="credentials") as caught:
        make_config(corpus)
    assert "AWS_ACCESS_KEY_ID" in str(caught.value.hint)
