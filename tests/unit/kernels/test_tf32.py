"""PyTorch's switch is on for a while, and is afterwards as it was, by either of its names."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest
import torch

from attendo.kernels.tf32 import is_tf32_enabled, supports_tf32, use_tf32

MATMUL = torch.backends.cuda.matmul


@pytest.fixture(autouse=True)
def _as_before():
    yield
    torch.set_float32_matmul_precision("highest")
    MATMUL.fp32_precision = "none"


def set_by_old_name(is_wanted: bool) -> None:
    torch.set_float32_matmul_precision("high" if is_wanted else "highest")


def set_by_new_name(is_wanted: bool) -> None:
    MATMUL.fp32_precision = "tf32" if is_wanted else "ieee"


@pytest.mark.parametrize("was_on", [True, False])
@pytest.mark.parametrize("set_before", [set_by_old_name, set_by_new_name])
def test_it_is_afterwards_as_it_was(set_before, was_on):
    set_before(was_on)
    before = MATMUL.fp32_precision
    with use_tf32():
        assert is_tf32_enabled()
        with use_tf32():
            assert is_tf32_enabled()
        assert is_tf32_enabled()
    assert is_tf32_enabled() is was_on
    assert MATMUL.fp32_precision == before
    if not was_on or set_before is set_by_old_name:
        assert torch.get_float32_matmul_precision() == ("high" if was_on else "highest")


def test_an_error_turns_it_back_too():
    with pytest.raises(ValueError, match="so"), use_tf32():
        raise ValueError("so")
    assert not is_tf32_enabled()
    assert MATMUL.fp32_precision == "none"


def test_the_last_thread_that_leaves_turns_it_back():
    inside, left = Barrier(2, timeout=120), Barrier(2, timeout=120)
    seen = []

    def stay() -> None:
        with use_tf32():
            inside.wait()
            left.wait()
            seen.append(is_tf32_enabled())

    thread = Thread(target=stay)
    thread.start()
    with use_tf32():
        inside.wait()
    left.wait()
    thread.join()
    assert seen == [True]
    assert not is_tf32_enabled()


def test_a_cpu_has_none():
    assert not supports_tf32(torch.device("cpu"))
