"""The main job from end to end: files in, a model that does the job out."""

from __future__ import annotations

import json
import os
import random
import re
import tomllib
from pathlib import Path

import pytest

import attendo
from attendo.core.config import read_settings
from attendo.synthetic.everyday import synthesize_splits
from attendo.tasks.config import RunConfig
from attendo.tasks.request import TrainRequest
from attendo.tasks.translation.quickstart import SETTINGS, write_embedded_corpus

CORPORA = Path(os.environ.get("ATTENDO_CORPORA", "../shared/data"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))


def test_copy_task_is_learned(tmp_path):
    draw = random.Random(1)  # noqa: S311
    lines = [" ".join(draw.choices("abcdefgh", k=draw.randint(3, 7))) for _ in range(4000)]
    for side in ("src", "tgt"):
        (tmp_path / f"copy.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = {
        "data": {
            "corpora": [
                {
                    "src": str(tmp_path / "copy.src"),
                    "tgt": str(tmp_path / "copy.tgt"),
                    "allow_copies": True,
                }
            ],
            "cleaning": {"max_copy_words": None},
            "tokenizer": {"kind": "word", "vocab_size": 12},
            "dev_size": 100,
        },
        "model": {"d_model": 64, "d_ff": 128, "num_heads": 4, "num_layers": 2, "norm": "pre"},
    }
    (tmp_path / "copy.json").write_text(json.dumps(config), encoding="utf-8")
    settings = ["max_steps=250", "batch_tokens=768", "warmup_steps=100", "save_every=250"]
    run = attendo.train(
        config=tmp_path / "copy.json",
        out=tmp_path / "run",
        settings=[f"train.{setting}" for setting in [*settings, "average_checkpoints=1"]],
    )
    assert run.report["dev"]["accuracy"] > 0.98
    translator = attendo.Translator.load(run.model_dir)
    new = [" ".join(draw.choices("abcdefgh", k=5)) for _ in range(100)]
    assert (
        sum(printed == text for printed, text in zip(translator.translate(new), new, strict=True))
        > 90
    )


SHORTENED = """
from attendo.cli.main import run
from attendo.tasks.translation.quickstart import SETTINGS

# The last checkpoints are averaged: so early, those of 75 steps before would spoil the mean.
SETTINGS["train"].update(max_steps=300, save_every=10)
run()
"""


@pytest.mark.parametrize(
    ("num_steps", "least_bleu"), [(300, 60.0), pytest.param(900, 90.0, marks=pytest.mark.slow)]
)
def test_quickstart_learns_unseen_combinations(fork_server, tmp_path, num_steps, least_bleu):
    """The command of the README itself, with its own settings but for the number of steps."""
    arguments = ["quickstart", "--out", tmp_path / "quick", "--lang", "ko"]
    code = None if num_steps == SETTINGS["train"]["max_steps"] else SHORTENED
    done = fork_server.run(arguments, env={"COLUMNS": "200"}, code=code, timeout=1500)
    assert done.returncode == 0, done.stderr
    assert "왕자는 공주를 구했다" in done.stdout
    assert "the prince saved the princess" in done.stdout
    score = re.search(r"500\D*BLEU ([\d.]+)", done.stdout)
    assert score
    assert float(score[1]) >= least_bleu
    assert "attendo train --src my.ko --tgt my.en" in done.stdout
    run = tmp_path / "quick" / "ko-en"
    events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert {"started", "train", "validation"} <= {event["event"] for event in events}
    assert (run / "report.md").exists()
    assert list((run / "tensorboard").iterdir())
    assert len((run / "samples.jsonl").read_text().splitlines()) == num_steps // 300


def test_quickstart_trains_like_the_shipped_config(repository, tmp_path):
    shipped = tomllib.loads((repository / "configs/sample.toml").read_text(encoding="utf-8"))
    assert {name: shipped[name] for name in ("model", "train")} == SETTINGS
    splits = synthesize_splits(train=2000, dev=5, test=5)
    data = write_embedded_corpus(splits, tmp_path / "data", "ko", "en")
    assert shipped["data"]["tokenizer"] == data["tokenizer"]


def test_every_shipped_config_is_a_whole_run(repository, tmp_path):
    builds = repository / "configs" / "build"
    paths = sorted(p for p in (repository / "configs").rglob("*.toml") if p.parent != builds)
    assert len(paths) >= 4
    for path in paths:
        config = TrainRequest(config=path, src=["a.ko"], tgt=["a.en"]).build_config()
        assert isinstance(config, RunConfig)
        assert read_settings(path)["model"]["preset"] == config.model.preset


def test_the_papers_config_is_the_papers(repository):
    config = TrainRequest(
        config=repository / "configs/wmt14_base.toml", src=["a"], tgt=["b"]
    ).build_config()
    assert (config.train.beta_1, config.train.beta_2, config.train.epsilon) == (0.9, 0.98, 1e-9)
    assert (config.train.warmup_steps, config.train.batch_tokens) == (4000, 25_000)
    assert (config.train.label_smoothing, config.train.max_steps) == (0.1, 100_000)
    assert (config.train.schedule, config.train.average_checkpoints) == ("paper", 5)
    assert (config.data.tokenizer.kind, config.data.tokenizer.shared) == ("bpe", True)
    assert config.data.tokenizer.vocab_size == 37_000
    big = TrainRequest(
        config=repository / "configs/wmt14_big.toml", src=["a"], tgt=["b"]
    ).build_config()
    assert (big.train.max_steps, big.train.average_checkpoints, big.model.preset) == (
        300_000,
        20,
        "big",
    )


@pytest.mark.corpus
def test_multi30k_trains_from_its_raw_files_with_one_command(repository, fork_server, tmp_path):
    mirror = (repository / CORPORA).resolve()
    if not (mirror / "multi30k").is_dir():
        assert os.environ.get("CI") != "true", f"{mirror} is missing in CI"
        pytest.skip(f"no corpora in {mirror}: set ATTENDO_CORPORA")
    command = ["train", "--corpus", "multi30k", "--pair", "en-de"]
    command += ["--mirror", str(mirror), "--out", str(tmp_path / "run"), "--preset", "tiny"]
    settings = ["train.max_steps=2", "train.average_checkpoints=1", "train.bleu_sentences=0"]
    settings += ["model.num_layers=1", "model.d_model=16", "model.d_ff=32"]
    for setting in (*settings, "data.tokenizer.vocab_size=1000"):
        command += ["--set", setting]
    done = fork_server.run(command)
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "run/data.json").read_text(encoding="utf-8"))
    assert facts["pairs"] > 28_000
    assert facts["dev_pairs"] == 1014
    assert facts["padding"]["total"] < 0.10
    assert (tmp_path / "run/model/model.safetensors").exists()
