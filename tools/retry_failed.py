"""Run the tests that have just failed once more, one after another: `python tools/retry_failed.py`.

For CI, where other work on the machine can make a test fail that is right. At most `MAX_FAILED`
tests are tried again; those that pass now are named, so that somebody looks at them. A test that
fails twice fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
MAX_FAILED = 5


def main() -> int:
    """Return 0 if every test that failed passes now, else 1."""
    failed = list(json.loads(LAST_FAILED.read_text("utf-8"))) if LAST_FAILED.exists() else []
    if not 0 < len(failed) <= MAX_FAILED:
        return 1
    command = [sys.executable, "-m", "pytest", "-m", "slow or not slow", "-q", *failed]
    is_good = subprocess.run(command, check=False).returncode == 0  # noqa: S603
    print(f"failed among all tests, {'passed' if is_good else 'and again'} alone:")
    print(*(f"  {name}" for name in failed), sep="\n")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
