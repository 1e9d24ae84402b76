"""What every test starts from: a fixed seed, and small models."""

from __future__ import annotations

import os
import re
import signal
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

for profile, num_examples in (("quick", 15), ("thorough", 200)):
    hypothesis.settings.register_profile(
        profile, deadline=None, max_examples=num_examples, derandomize=True
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
os.environ["ATTENDO_LANG"] = "en"  # whatever the system speaks; processes of tests have it too

REPOSITORY = Path(__file__).parent.parent
SIZES = {"vocab_size": 23, "d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}


LONGEST_FIRST = ("tests/web/", "tests/integration/", "tests/unit/kernels/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take long, so that no worker waits for one at the end."""

    def rank(item: pytest.Item) -> int:
        folders = enumerate(LONGEST_FIRST)
        return next(
            (position for position, name in folders if item.nodeid.startswith(name)),
            len(LONGEST_FIRST),
        )

    items.sort(key=rank)


AVOIDABLE_SKIPS = re.compile("could not import|not installed|not built")
"""Reasons of skips that fail in CI, where all packages are installed; a missing GPU may skip."""


def fail_avoidable_skip(report: Any) -> Any:
    is_skip = report.outcome == "skipped" and not hasattr(report, "wasxfail")
    if is_skip and os.environ.get("CI") == "true" and AVOIDABLE_SKIPS.search(str(report.longrepr)):
        report.outcome, report.longrepr = "failed", f"not allowed in CI: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return fail_avoidable_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return fail_avoidable_skip((yield))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Restore SIGHUP for each test and its processes: pytest may have been started by nohup."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
