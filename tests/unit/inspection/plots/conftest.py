from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from attendo.plotting import style

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def _coarse_pixels() -> Iterator[None]:
    """Draw fewer pixels: what a figure shows does not depend on them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "DPI", 40)
        yield
