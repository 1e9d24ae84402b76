from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.half_trained import save_half_trained

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(toy, tmp_path_factory) -> Path:
    """A model that has half learned to reverse words and write them in capitals."""
    directory = tmp_path_factory.mktemp("models") / "toy"
    save_half_trained(directory, toy.prepared.tokenizer)
    return directory
