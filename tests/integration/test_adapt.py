"""From corrections over HTTP to a new model in the running server, and back: `attendo adapt`."""

from __future__ import annotations

import json
import random
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from support.live_server import LiveServer

import attendo
from attendo.bundle import get_weights, load_bundle, save_bundle
from attendo.core.errors import ConfigError, InputError
from attendo.core.model_versions import PublishedModel
from attendo.data.corpus_config import Pair
from attendo.tasks.translation.adaptation import AdaptRequest, _mix, _Schedule, adapt_model
from attendo.tasks.translation.corrections import write_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fork_server import ForkServer

PATIENCE = 600.0
WORDS = [f"w{number}" for number in range(8)]
NUM_CORRECTIONS = 60
SETTINGS = (
    "model.num_layers=1", "model.d_model=64", "model.d_ff=128", "model.num_heads=4",
    "model.dropout=0.0", "data.tokenizer.kind=word", "data.tokenizer.shared=false",
    "data.check=false", "train.batch_tokens=512", "train.warmup_steps=60", "train.peak_lr=0.003",
    "train.average_checkpoints=1", "train.bleu_sentences=0",
)  # fmt: skip
FINE_TUNING = ("train.peak_lr=0.01", "train.warmup_steps=10")
"""A rate at which so small a model learns in 200 steps."""


def make_lines(count: int, seed: int) -> list[tuple[str, str]]:
    """Return sentences whose translation is in capitals; some end with one of two other words."""
    chooser = random.Random(seed)  # noqa: S311
    sentences = [
        [*chooser.choices(WORDS, k=chooser.randint(3, 5)), chooser.choice(["note", "hint", "w0"])]
        for _ in range(count)
    ]
    return [(" ".join(one), " ".join(one).upper()) for one in sentences]


def make_corrections() -> list[tuple[str, str]]:
    """Return sentences that begin with "note note", which is to become HINT."""
    chooser = random.Random(5)  # noqa: S311
    texts = {" ".join(chooser.choices(WORDS, k=3)) for _ in range(2 * NUM_CORRECTIONS)}
    chosen = sorted(texts)[:NUM_CORRECTIONS]
    return [(f"note note {text}", f"HINT {text.upper()}") for text in chosen]


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """The folder of a run that has learnt to write in capitals."""
    folder = tmp_path_factory.mktemp("base")
    for name, lines in (("train", make_lines(600, 1)), ("dev", make_lines(60, 2))):
        for side, texts in zip(("src", "tgt"), zip(*lines, strict=True), strict=True):
            (folder / f"{name}.{side}").write_text("".join(f"{text}\n" for text in texts))
    attendo.train(
        out=folder / "run", src=folder / "train.src", tgt=folder / "train.tgt",
        dev_src=folder / "dev.src", dev_tgt=folder / "dev.tgt", src_lang="en", tgt_lang="ko",
        preset="tiny", steps=500, settings=SETTINGS, device="cpu", threads=1, reporter=None,
    )  # fmt: skip
    return folder / "run"


@pytest.fixture(scope="module")
def store(base, fork_server: ForkServer) -> Iterator[Path]:
    """A translation memory that clients have filled over HTTP."""
    path = base.parent / "memory.db"
    server = LiveServer(fork_server, base, "--memory", path, "--engine", "attendo")
    try:
        for source, target in make_corrections():
            body = {"source_text": source, "target_text": target, "model": "run", "author": "Kim"}
            answer = server.ask("POST", "/v1/corrections", body)
            assert answer.status == 200, answer.body
    finally:
        server.close()
    return path


def request_for(base: Path, store: Path, out: Path, **fields) -> AdaptRequest:
    settings = {
        "settings": FINE_TUNING,
        "steps": 200,
        "max_drop": 200.0,
        "device": "cpu",
        "threads": 1,
    }
    return AdaptRequest(model=base, corrections=store, out=out, **{**settings, **fields})


def test_a_running_server_takes_the_new_model_and_goes_back(base, store, tmp_path, fork_server):
    out = tmp_path / "published"
    PublishedModel(out).path.mkdir()
    PublishedModel(out).publish(base / "model", {})
    unseen, right = "note note w1 w7 w1", "HINT W1 W7 W1"
    assert unseen not in {src for src, _ in make_corrections()}
    server = LiveServer(
        fork_server, out, "--engine", "attendo", "--set", "watch_seconds=0.1"
    )  # fmt: skip
    try:
        translate = {"text": unseen, "beam_size": 4}

        def wait_for(expected) -> None:
            deadline = time.monotonic() + PATIENCE
            while True:
                answer = server.ask("POST", "/v1/translate", translate).json
                if expected(answer["translations"][0]["text"]):
                    return
                assert time.monotonic() < deadline, answer
                time.sleep(0.05)

        wait_for(lambda text: text != right)
        result = adapt_model(request_for(base, store, out))
        assert result.reasons == []
        assert result.num_corrections == NUM_CORRECTIONS
        dev, held_back = result.comparisons
        assert (dev.num_lines, held_back.num_lines) == (60, pytest.approx(6, abs=6))
        assert held_back.after.chrf > held_back.before.chrf + 3
        wait_for(lambda text: text == right)
        notes = json.loads((out / "model" / "adaptation.json").read_text())
        assert notes["scores"]["dev"]["lines"] == 60
        process = fork_server.start(["adapt", str(out), "--rollback"])
        assert process.communicate(PATIENCE)[0].startswith("restored version 0001")
        wait_for(lambda text: text != right)
    finally:
        server.close()


def test_a_model_that_lost_too_much_is_not_published(base, store, tmp_path, fork_server):
    out = tmp_path / "published"
    process = fork_server.start(
        [
            "adapt", str(base), "--corrections", str(store), "--out", str(out), "--steps", "5",
            "--max-drop", "-200",
        ]
    )  # fmt: skip
    output, error = process.communicate(PATIENCE)
    assert process.returncode == 1, error
    assert "the new model was not published: chrF on dev fell from" in error  # 60 lines: no BLEU
    assert "--max-drop" in error
    assert "dev (60 lines): BLEU" in output
    assert "95 % interval of the change in chrF: " in output
    assert not (out / "model").exists()
    assert (out / "adapt" / "run" / "model" / "bundle.json").exists()


def test_a_run_is_adapted_in_its_own_folder_from_its_first_model(base, store, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(base, run)
    for number in (1, 2):
        result = adapt_model(request_for(run, store, run, steps=5))
        assert result.model_dir == run / "model"
        assert result.previous == run / "versions" / f"000{number}"
    config = json.loads((run / "adapt" / "run" / "config.json").read_text())
    assert config["model"]["init_from"] == str((run / "versions" / "0001").resolve())


def test_bug_relative_paths_to_the_data_must_hold_elsewhere(base, store, tmp_path, monkeypatch):
    project = tmp_path / "project"
    run = project / "runs" / "run"
    shutil.copytree(base, run)
    (project / "data").mkdir()
    config = json.loads((run / "config.json").read_text())
    for corpus in (*config["data"]["corpora"], config["data"]["dev"]):
        for side in ("src", "tgt"):
            path = Path(corpus[side])
            shutil.copy(path, project / "data" / path.name)
            corpus[side] = f"data/{path.name}"
    (run / "config.json").write_text(json.dumps(config))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = adapt_model(request_for(run, store, run, steps=5))
    assert result.comparisons[0].num_lines == 60
    assert result.num_replayed > 0


def test_a_run_that_has_split_off_its_dev_set_is_measured_on_it(base, store, tmp_path):
    run = tmp_path / "run"
    attendo.train(
        out=run, src=base.parent / "train.src", tgt=base.parent / "train.tgt", src_lang="en",
        tgt_lang="ko", preset="tiny", steps=5, settings=(*SETTINGS, "data.dev_size=50"),
        device="cpu", threads=1, reporter=None,
    )  # fmt: skip
    result = adapt_model(request_for(run, store, tmp_path / "out", steps=5))
    (dev, _) = result.comparisons
    replayed = (tmp_path / "out" / "adapt" / "replay.src").read_text().splitlines()
    measured = (tmp_path / "out" / "adapt" / "dev.src").read_text().splitlines()
    assert dev.num_lines == len(measured) > 0
    assert not set(replayed) & set(measured)


def test_a_mixture_is_between_the_two_models(base, tmp_path):
    old = load_bundle(base / "model")
    new = load_bundle(base / "model")
    with torch.no_grad():
        for parameter in new.model.parameters():
            parameter += 1.0
    save_bundle(
        tmp_path / "new", new.model, new.tokenizer, about={**new.about, "dev": {"bleu": 1.0}}
    )
    mixed = load_bundle(_mix(base / "model", tmp_path / "new", 0.25, tmp_path / "mixture"))
    for name, weight in get_weights(mixed.model).items():
        torch.testing.assert_close(weight, get_weights(old.model)[name] + 0.25)
    assert "dev" not in mixed.about  # it is not that of the mixture
    assert mixed.about["tgt_lang"] == "ko"


@pytest.mark.parametrize(("share", "steps"), [(0.5, 100), (0.9, 141)])
def test_the_steps_follow_from_the_corrections(base, tmp_path, share, steps):
    files = write_pairs(tmp_path, "corrections", [Pair(*one) for one in make_corrections()])
    # 60 sources of 5 words and the end symbol, in 20 epochs of batches with 512 tokens.
    assert _Schedule.fit(base / "model", files, share) == (512, steps)


def test_what_is_missing_is_named_before_anything_is_written(base, store, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out"
    with pytest.raises(InputError, match="is not a model folder"):
        adapt_model(request_for(model, store, out))
    shutil.copytree(base / "model", model)
    with pytest.raises(ConfigError, match="does not name a dev set"):
        adapt_model(request_for(model, store, out))
    dev = (base.parent / "dev.src", base.parent / "dev.tgt")
    with pytest.raises(ConfigError, match="the training data of"):
        adapt_model(request_for(model, store, out, dev=dev))
    with pytest.raises(InputError, match="does not exist"):
        adapt_model(request_for(base, tmp_path / "no.db", out))
    assert not out.exists()
