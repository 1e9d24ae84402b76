"""A toy corpus, prepared once for all: the words of a sentence, turned round and in capitals."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import torch
from support.uppercase_model import uppercaser

from attendo.data.config import DataConfig
from attendo.data.pipeline import PreparedData, prepare_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["uppercaser"]

WORDS = ("ka", "to", "mi", "re", "so", "lu")
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


class Toy(NamedTuple):
    src: Path
    tgt: Path
    cache: Path
    prepared: PreparedData
    separate: PreparedData
    """The same with a vocabulary for each side."""


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Toys are quicker so, above all on cores that others use too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("toy")
    draw = random.Random(1)  # noqa: S311 - a toy
    texts = [draw.choices(WORDS, k=draw.randint(2, 9)) for _ in range(200)]
    src, tgt = folder / "toy.src", folder / "toy.tgt"
    src.write_text("".join(" ".join(words) + "\n" for words in texts), encoding="utf-8")
    turned = (" ".join(reversed(words)).upper() for words in texts)
    tgt.write_text("".join(f"{line}\n" for line in turned), encoding="utf-8")
    made = [
        prepare_data(
            DataConfig(
                corpora=({"src": src, "tgt": tgt},), tokenizer={"kind": "word", "shared": shared}
            ),
            folder / "cache",
        )
        for shared in (True, False)
    ]
    return Toy(src, tgt, folder / "cache", *made)


@pytest.fixture
def without_font(monkeypatch) -> Iterator[None]:
    """A machine that has only matplotlib's own fonts."""
    from attendo.plotting import fonts

    caches = (fonts.font_families, fonts._warn)
    for cached in caches:
        cached.cache_clear()
    monkeypatch.setattr(fonts, "_installed_korean_font", lambda: None)
    monkeypatch.setattr(fonts, "_bundled_korean_font", lambda: None)
    yield
    for cached in caches:
        cached.cache_clear()
