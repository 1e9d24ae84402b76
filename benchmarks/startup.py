"""Startup time of commands that need no tensors. Goal: under half a second.

Run: make bench, or python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = (["--version"], ["--help"], ["doctor"])
TARGET_SECONDS = 0.5
REPEATS = 7


def measure(arguments: list[str]) -> float:
    """Return the median seconds of some runs, after one that fills the disk cache."""
    times = []
    for _ in range(REPEATS + 1):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "attendo", *arguments], check=True, capture_output=True
        )
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main() -> None:
    """Print one line per command."""
    for arguments in COMMANDS:
        seconds = measure(arguments)
        verdict = "within" if seconds < TARGET_SECONDS else "MISSES"
        print(
            f"attendo {arguments[0]:10s} {seconds:6.3f} s  "
            f"{verdict} the target of {TARGET_SECONDS} s"
        )


if __name__ == "__main__":
    main()
