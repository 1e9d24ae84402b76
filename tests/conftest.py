"""What every test starts from: a fixed seed, and small models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import torch
from support.fork_server import ForkServer

from attendo import Transformer
from attendo.core.seeding import seed_everything

if TYPE_CHECKING:
    from collections.abc import Iterator

hypothesis.settings.register_profile("house", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.load_profile("house")
os.environ["ATTENDO_LANG"] = "en"  # whatever the system speaks; processes of tests have it too

REPOSITORY = Path(__file__).parent.parent
SIZES = {"vocab_size": 23, "d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files that take long: beside each other, none is waited for at the end.

    From the last to the first, as those with browsers take longest.
    """
    long = {item.path for item in items if item.get_closest_marker("slow")}
    rank = {path: -place for place, path in enumerate(sorted(long))}
    items.sort(key=lambda item: rank.get(item.path, 1))


@pytest.fixture(autouse=True)
def _same_seed() -> None:
    seed_everything(0)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep out of the user's cache what servers convert for CTranslate2."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENDO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Run `attendo` in processes of their own that need not import PyTorch anew."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def make_model():
    """Make a small model in evaluation mode; options as for `Transformer`."""

    def make(dtype: torch.dtype = torch.float32, **options: Any) -> Transformer:
        return Transformer(**{**SIZES, **options}).to(dtype).eval()

    return make


@pytest.fixture
def make_ids():
    """Draw ids without padding, or padded to mixed lengths."""

    def make(batch: int, length: int, *, lengths: list[int] | None = None) -> torch.Tensor:
        ids = torch.randint(1, SIZES["vocab_size"], (batch, length))
        for row, real in enumerate(lengths or []):
            ids[row, real:] = 0
        return ids

    return make
