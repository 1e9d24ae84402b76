"""Print which tests and folders take the most CPU time, child processes included.

Run: PYTHONPATH=tests python -m pytest -p support.cpu_time [--cpu-time 50] ...

Unlike the wall time of `--durations`, it hardly depends on what else the machine does. Fixtures
count for the test that makes them. Children of the fork server count when they have ended.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
FOLDER_PARTS = 3
_seconds_before: list[float] = []


def cpu_seconds() -> float:
    """Return the CPU time of this process and of everything that it has started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = sum(map(_seconds_of, _descendants(os.getpid())))
    return time.process_time() + ended.ru_utime + ended.ru_stime + running


def _descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from _descendants(child)


def _seconds_of(pid: int) -> float:
    """Return the CPU time of a process, and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-time", type=int, default=30, help="Number of tests that are listed.")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    _seconds_before[:] = [cpu_seconds()]
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    now = cpu_seconds()
    report.cpu_seconds = now - _seconds_before[0]  # xdist sends it with the report
    _seconds_before[:] = [now]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tests: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for report in (one for reports in terminalreporter.stats.values() for one in reports):
        seconds = getattr(report, "cpu_seconds", 0.0)
        if seconds:
            tests[report.nodeid] += seconds
            parts = Path(report.nodeid.partition("::")[0]).parts
            folders["/".join(parts[:FOLDER_PARTS])] += seconds
    terminalreporter.section(f"CPU time: {tests.total():.0f} s in tests")
    most = terminalreporter.config.getoption("--cpu-time")
    for name, seconds in [*folders.most_common(), ("", 0.0), *tests.most_common(most)]:
        terminalreporter.write_line(f"{seconds:8.1f} s  {name}" if name else "")
