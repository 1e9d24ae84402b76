"""Settings of the interpreter are those of before when the last user has left."""

from __future__ import annotations

import gc
import sys

import pytest

from attendo.core.interpreter import GPU_SWITCH_SECONDS, NUM_NEW_OBJECTS, favor_throughput


@pytest.fixture(autouse=True)
def settings():
    before = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(before[0])
    gc.set_threshold(*before[1])


def test_the_settings_are_restored_by_the_last_one():
    sys.setswitchinterval(0.005)
    gc.set_threshold(700, 10, 10)
    outer, inner = favor_throughput(drives_gpu=False), favor_throughput(drives_gpu=True)
    outer.__enter__()
    assert sys.getswitchinterval() == pytest.approx(0.005)
    assert gc.get_threshold()[0] == NUM_NEW_OBJECTS
    inner.__enter__()
    assert sys.getswitchinterval() == pytest.approx(GPU_SWITCH_SECONDS, rel=0.02)
    outer.__exit__(None, None, None)
    assert gc.get_threshold()[0] == NUM_NEW_OBJECTS
    inner.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(0.005)
    assert gc.get_threshold()[0] == 700


def test_settings_of_the_user_that_go_further_are_kept():
    gc.set_threshold(0)
    sys.setswitchinterval(0.00005)
    with favor_throughput(drives_gpu=True):
        assert gc.get_threshold()[0] == 0
        assert sys.getswitchinterval() == pytest.approx(0.00005, rel=0.05)
