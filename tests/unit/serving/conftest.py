"""A translator to capitals that waits and fails on request; and real folders."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.served_model import TextModelHandle
from attendo.serving.service import Service
from attendo.text.sentences import SegmentedText
from attendo.translator import Translation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
PATIENCE = 30.0
"""Seconds after which a test gives up, on however slow a machine."""


class Shouter:
    """Return the text in capitals; alternatives get numbers. "boom" breaks it."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {"src_lang": "ko", "tgt_lang": "en"}
        self.batches: list[list[str]] = []
        self.reported: list[dict[str, Any]] = []
        self.may_go = threading.Event()
        self.may_go.set()
        self.has_started = threading.Event()

    def split_text(self, text, _split, **_limits) -> SegmentedText:
        return SegmentedText((text,), ("", ""))

    def check_label(self, label) -> None:
        assert label is None

    def translate(self, texts, *, prefix=None, n_best=1, **options) -> list[Translation]:
        self.has_started.set()
        assert self.may_go.wait(PATIENCE)
        self.batches.append(list(texts))
        self.reported.append({"prefix": prefix, "n_best": n_best, **options})
        if any("boom" in text for text in texts):
            raise RuntimeError(f"secret words: {texts}")
        starts = prefix or [""] * len(texts)
        return [
            Translation(
                start + text.upper(),
                source=text,
                ids=[1] * len(text),
                alternatives=[
                    Translation(f"{text.upper()} {rank}", source=text) for rank in range(1, n_best)
                ],
            )
            for start, text in zip(starts, texts, strict=True)
        ]


@pytest.fixture(autouse=True)
def positions_instead_of_attention(monkeypatch) -> None:
    """The shouter has no attention to align words with."""
    from attendo.documents import alignment

    align = alignment._align

    def align_models_only(translator, *args):
        return None if isinstance(translator, Shouter) else align(translator, *args)

    monkeypatch.setattr(alignment, "_align", align_models_only)


@pytest.fixture
def shouter() -> Iterator[Shouter]:
    one = Shouter()
    yield one
    one.may_go.set()


@pytest.fixture
def make_service(shouter, tmp_path):
    """Make a service over the shouter; settings as for `ServeConfig`."""

    def make(**settings: Any) -> Service:
        config = ServeConfig(**{"models": [tmp_path], "watch_seconds": 0, "threads": 1, **settings})
        registry = ModelRegistry()
        registry.add(TextModelHandle("ko-en", "ko", "en", shouter, shouter.about))
        return Service(config, registry=registry)

    return make


@pytest.fixture
def make_client(make_service):
    """Make a client of an application over the shouter; to be entered."""

    def make(**settings: Any) -> TestClient:
        service = make_service(**settings)
        return TestClient(create_app(service.config, service), base_url="http://localhost")

    return make


@pytest.fixture
def write_model(toy):
    """Write a real model folder with random weights."""

    def write(folder: Path, **about: Any) -> Path:
        tokenizer = toy.prepared.tokenizer
        save_bundle(folder, build_model("transformer", SIZES, tokenizer), tokenizer, about=about)
        return folder

    return write
