"""The web application in a real browser, on a real server with a model that was really trained."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_the_pages_of_a_live_server(browse, address, learnt, running):
    said = browse(
        "live.spec.ts",
        SERVE_URL=address,
        SERVE_SOURCE=learnt.src,
        SERVE_TARGET=learnt.tgt,
        SERVE_RUN=running.name,
    )
    assert "5 passed" in said
