from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from attendo.lessons.lesson import Lesson

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="session")
def _cached_blocks() -> Iterator[None]:
    """Compute a lesson once per set of inputs: its blocks are immutable."""
    compute = Lesson.blocks
    cached: dict[tuple[Any, str], list[Any]] = {}

    def blocks(self: Lesson, values: Any = None) -> list[Any]:
        inputs = json.dumps(dict(values or {}), sort_keys=True, default=repr)
        key = self.build_blocks, inputs
        if key not in cached:
            cached[key] = compute(self, values)
        return list(cached[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lesson, "blocks", blocks)
        yield
