from __future__ import annotations

import os
import sys

from attendo.core import hardware


def test_reads_the_requirements_of_the_package():
    needed, extras = hardware.read_requirements()
    assert {"torch", "pydantic", "typer"} <= {need.name for need in needed}
    assert set(extras) == {
        "plots",
        "formats",
        "documents",
        "cluster",
        "ctranslate2",
        "onnx",
        "train",
        "series",
        "metrics",
        "interop",
        "serve",
        "docs",
        "dev",
    }
    assert all(need.version for need in needed)


def test_missing_library_has_no_version():
    assert hardware.installed_version("no-such-library-of-ours") is None


def test_cores_are_those_that_the_process_may_use():
    assert 1 <= hardware.usable_cores() <= (os.cpu_count() or 1)


def test_gpus_come_from_nvidia_smi(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200'\necho 'NVIDIA H200'\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert hardware.list_gpus() == ["NVIDIA H200", "NVIDIA H200"]


def test_a_broken_driver_counts_as_no_gpu(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert hardware.list_gpus() == []


def test_doctor_reports_this_python():
    facts = hardware.inspect_system()
    assert sys.executable in facts.python
    assert facts.free_disk_gib > 0
