from __future__ import annotations

import os
from importlib import import_module

import pytest

from attendo.bench.config import TrainingBenchConfig
from attendo.bench.training import perturb_biases_and_norms
from attendo.bench.workload import make_workloads

VOCAB = 60


@pytest.fixture(scope="session")
def config():
    """A benchmark of some milliseconds; an odd number of rounds has a median that was taken."""
    return TrainingBenchConfig(
        size="tiny",
        device="cpu",
        precision="float32",
        vocab_size=VOCAB,
        batch="6x7+5",
        steps=3,
        rounds=3,
    )


@pytest.fixture
def both(config, tmp_path):
    return make_workloads(config, config.build_model(), tmp_path, num_batches=6)


@pytest.fixture(params=["ours", "theirs"])
def work(both, request):
    """The batches of `attendo train`, and those that a peer can read."""
    return getattr(both, request.param)


@pytest.fixture
def model(config):
    return perturb_biases_and_norms(config.build_model(d_model=16, d_ff=24, num_layers=2))


@pytest.fixture
def texts(tmp_path):
    """Two text files whose sentences have all kinds of lengths."""
    words = ["the", "cat", "sees", "a", "small", "dog", "near", "our", "old", "house"]
    lines = [" ".join(words[(n * k) % len(words)] for k in range(1, 3 + n % 9)) for n in range(300)]
    paths = tmp_path / "text.en", tmp_path / "text.xx"
    for path, text in zip(paths, (lines, [line[::-1].upper() for line in lines]), strict=True):
        path.write_text("".join(f"{n} {line}\n" for n, line in enumerate(text)), encoding="utf-8")
    return paths


@pytest.fixture
def need():
    """Return what imports a peer's package; in CI a missing one fails."""
    return import_module if os.environ.get("CI") == "true" else pytest.importorskip
