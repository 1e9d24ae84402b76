"""Without a GPU the tests of our kernels run too: by Triton's interpreter, in their own process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

IS_CI = os.environ.get("CI") == "true"
pytestmark = pytest.mark.skipif(
    not (IS_CI or find_spec("triton")), reason="triton is not installed"
)
FILES = ("test_training_kernels.py", "test_decode_step.py")
MINUTES = 10


@pytest.mark.parametrize("marked", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_kernels_equal_the_reference_path(repository, marked):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # A compiler is asked for because kernels on a GPU are launched by what it builds.
    own = {"TRITON_INTERPRET": "1", "CC": "cc", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    paths = [f"tests/unit/kernels/{name}" for name in FILES]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marked, *paths],
        cwd=repository,
        env={**kept, **own},
        capture_output=True,
        text=True,
        check=False,
        timeout=MINUTES * 60,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
