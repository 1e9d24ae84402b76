"""Without a GPU the tests of our kernels run too: by Triton's interpreter, in their own process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

IS_CI = os.environ.get("CI") == "true"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (IS_CI or find_spec("triton")), reason="triton is not installed"),
]
MINUTES = 10


@pytest.mark.parametrize(
    ("file", "num_tests"),
    [("kernels/test_training_kernels.py", 39), ("kernels/test_decode_step.py", 31)],
)
def test_kernels_say_what_the_plain_path_says(repository, file, num_tests):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # A compiler is asked for because kernels on a GPU are launched by what it builds.
    own = {"TRITON_INTERPRET": "1", "CC": "cc", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/unit/{file}"],
        cwd=repository,
        env={**kept, **own},
        capture_output=True,
        text=True,
        check=False,
        timeout=MINUTES * 60,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = re.search(r"(\d+) passed", ended.stdout)
    assert found, ended.stdout
    assert int(found[1]) >= num_tests
