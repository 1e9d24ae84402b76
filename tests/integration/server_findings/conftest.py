"""Servers of a small model without training: what it says is of no matter here."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.live_server import LiveServer

from attendo.bundle import build_model, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
KEY = "a-long-random-key"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    paths = [folder / name for name in ("ko", "en")]
    for path in paths:
        lines = [getattr(pair, path.name) for pair in synthesize_pairs(300, seed=1)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = train_tokenizer(*paths, TokenizerConfig(vocab_size=700), num_pairs=300, seed=1)
    model = build_model("transformer", SIZES, tokenizer)
    about = {"src_lang": "ko", "tgt_lang": "en", "max_src_tokens": 60}
    save_bundle(folder / "ko-en", model, tokenizer, about=about)
    return folder / "ko-en"


@pytest.fixture(scope="module")
def server(model_folder, fork_server) -> Iterator[LiveServer]:
    server = LiveServer(fork_server, model_folder)
    yield server
    server.close()


@pytest.fixture(scope="module")
def slot_server(model_folder, fork_server) -> Iterator[LiveServer]:
    """The PyTorch decoder, with few slots."""
    server = LiveServer(fork_server, model_folder, "--engine", "attendo", "--set", "slots=4")
    yield server
    server.close()


@pytest.fixture
def keyed_server(model_folder, fork_server) -> Iterator[LiveServer]:
    server = LiveServer(fork_server, model_folder, ATTENDO_API_KEYS=KEY)
    yield server
    server.close()


@pytest.fixture
def doomed_folder(model_folder, tmp_path) -> Path:
    return shutil.copytree(model_folder, tmp_path / "ko-en")
