"""Check a learner's file in a process of its own, with a time limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from attendo.lessons.blocks import LocalizedText
from attendo.lessons.prose import Prose
from attendo.lessons.track.steps import last_step

prose = Prose("attendo.lessons.track")

CHECKER = "attendo.lessons.track.check_file"
TIME_LIMIT = 120.0
"""Seconds, with the import of PyTorch; the finished file takes about five."""


class CheckResult(NamedTuple):
    """What one test found."""

    step: int
    check: str
    reason: LocalizedText | None
    """Why it does not pass."""
    expected: str = ""
    found: str = ""

    @property
    def title(self) -> LocalizedText:
        """What is tested."""
        return prose(f"check-{self.check}")


class Report(NamedTuple):
    """The results of all tests that were run."""

    results: tuple[CheckResult, ...]

    @property
    def step(self) -> int:
        """The step of the last test: the current one."""
        return self.results[-1].step

    @property
    def passes(self) -> bool:
        """Whether every test passes."""
        return all(one.reason is None for one in self.results)


def run_checks(path: Path, *, time_limit: float = TIME_LIMIT) -> Report:
    """Run the tests of all steps that the file has, up to the first that does not pass."""
    with TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        try:
            done = subprocess.run(  # noqa: S603 - the learner's own code
                [sys.executable, "-P", "-m", CHECKER, str(path.resolve()), str(result)],
                timeout=time_limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _broken(path, prose("too-long", seconds=time_limit))
        if not result.exists():
            return _broken(path, prose("process-ended", code=done.returncode))
        return read_report(json.loads(result.read_text(encoding="utf-8")))


def _broken(path: Path, reason: LocalizedText) -> Report:
    step = last_step(path.read_text(encoding="utf-8")) or 1
    return Report((CheckResult(step, "file", reason),))


def read_report(results: list[dict[str, object]]) -> Report:
    """Return the results that `check_file` has written."""
    return Report(tuple(_read_result(one) for one in results))


def _read_result(result: dict[str, object]) -> CheckResult:
    reason = result["reason"]
    words = LocalizedText(**reason) if isinstance(reason, dict) else None
    details = (str(result.get(name, "")) for name in ("expected", "found"))
    return CheckResult(int(str(result["step"])), str(result["check"]), words, *details)
