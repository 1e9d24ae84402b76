from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from attendo.core import device as devices
from attendo.core.device import default_device, resolve_device_type, use_passive_waiting
from attendo.core.errors import InputError

SHOW = "; import os; print(os.environ.get('OMP_WAIT_POLICY'))"


@pytest.mark.parametrize(
    ("code", "given", "policy"),
    [
        ("import attendo", None, "PASSIVE"),
        ("import attendo.cli.main", None, "PASSIVE"),
        ("import attendo", "ACTIVE", "ACTIVE"),
    ],
)
def test_the_policy_is_set_before_pytorch_is_imported(code, given, policy):
    environment = {name: text for name, text in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": given} if given else {}
    done = subprocess.run(
        [sys.executable, "-c", code + SHOW], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == [policy]


def test_it_is_too_late_once_pytorch_is_imported(monkeypatch):
    assert "torch" in sys.modules  # imported by the fixtures of all tests
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    use_passive_waiting()
    assert "OMP_WAIT_POLICY" not in os.environ


@pytest.mark.parametrize(
    ("has_cuda", "has_mps", "expected"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_the_best_device_is_chosen(monkeypatch, has_cuda, has_mps, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has_mps)
    assert default_device() == expected


def test_a_device_that_is_not_there_is_an_error():
    if torch.backends.mps.is_available():
        pytest.skip("this machine has an Apple GPU")
    with pytest.raises(InputError, match="device 'mps' is not available"):
        devices.resolve_device("mps")


def test_without_pytorch_the_cpu_computes(monkeypatch):
    monkeypatch.setattr(devices, "has_torch", lambda: False)
    assert resolve_device_type(None) == "cpu"
    assert resolve_device_type("cpu") == "cpu"
    with pytest.raises(ImportError, match="PyTorch is not installed"):
        resolve_device_type("cuda")
