"""Facts about this machine, read in milliseconds without loading a tensor library."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from attendo.core.errors import installed_distribution

COMPILERS = ("c++", "g++", "clang++")


class Requirement(NamedTuple):
    """A library that Attendo uses: its installed version, or None."""

    name: str
    version: str | None


class SystemInfo(NamedTuple):
    """The facts that `attendo doctor` shows."""

    system: str
    python: str
    cpu: str
    cores: int
    """Cores that this process may use, given its affinity and container limits."""
    memory_gib: float | None
    free_disk_gib: float
    gpus: list[str]
    threads: str | None
    """OMP_NUM_THREADS, if it is set."""
    compiler: str | None
    """The C++ compiler that `torch.compile` needs on a CPU."""
    needed: list[Requirement]
    extras: dict[str, list[Requirement]]


def inspect_system() -> SystemInfo:
    """Return the facts about this machine."""
    needed, extras = read_requirements()
    return SystemInfo(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_version()} ({sys.executable})",
        cpu=_cpu_name(),
        cores=usable_cores(),
        memory_gib=None if (size := memory_bytes()) is None else size / 2**30,
        free_disk_gib=shutil.disk_usage(Path.cwd()).free / 2**30,
        gpus=list_gpus(),
        threads=os.environ.get("OMP_NUM_THREADS"),
        compiler=next(
            (compiler_path for name in COMPILERS if (compiler_path := shutil.which(name))), None
        ),
        needed=needed,
        extras=extras,
    )


def usable_cores() -> int:
    """Return the number of cores that this process may use, given a container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))


def list_gpus() -> list[str]:
    """Return the names of the NVIDIA GPUs, from the driver's files or from nvidia-smi."""
    info_files = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    matches = [re.search(r"Model:\s*(.+)", path.read_text(encoding="utf-8")) for path in info_files]
    names = [match[1].strip() for match in matches if match]
    tool = shutil.which("nvidia-smi")
    if names or not tool:
        return names
    try:
        listing = subprocess.run(  # noqa: S603 - a fixed command found on the PATH
            [tool, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in listing.stdout.splitlines() if line.strip()]


def read_requirements() -> tuple[list[Requirement], dict[str, list[Requirement]]]:
    """Return the requirements of the installed package, and those of each extra."""
    needed: list[Requirement] = []
    extras: dict[str, list[Requirement]] = {}
    try:
        lines = metadata.requires(installed_distribution()) or []
    except metadata.PackageNotFoundError:  # run from the source tree, not installed
        lines = []
    for line in lines:
        match = re.match(r"[A-Za-z0-9._-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        if not match or (extra and extra[1] == "all"):  # the union of the others
            continue
        group = extras.setdefault(extra[1], []) if extra else needed
        group.append(Requirement(match[0], installed_version(match[0])))
    return needed, extras


def installed_version(name: str) -> str | None:
    """Return the version of an installed library without importing it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    match = re.search(r"model name\s*:\s*(.+)", text)
    return match[1].strip() if match else platform.processor() or "unknown"


def memory_bytes() -> int | None:
    """Return the memory that this process may use, given a container's limit."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return size
    return min(size, int(limit)) if limit.isdigit() else size
