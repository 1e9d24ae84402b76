"""Measure an installation without PyTorch: size, start-up, memory, and an idle model.

Run it with the Python of a fresh virtual environment, which has nothing but what was installed:

    python3 -m venv light
    light/bin/pip install -c constraints.txt './packaging/light[serve,ctranslate2]'
    light/bin/python benchmarks/light_install.py MODEL [--idle 15]

It needs only the standard library. Everything runs on this machine, over loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from importlib import metadata
from pathlib import Path

NOT_COUNTED = {"pip"}
"""Every environment has it."""
REPEATS = 5
SETTLED = 4
"""Equal measurements, half a second apart."""
TEXT = "왕자는 공주를 구했다."


def main() -> None:
    """Print the figures as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path, help="a model folder or an export")
    parser.add_argument("--idle", type=float, default=15.0, help="seconds until it is unloaded")
    options = parser.parse_args()
    sizes = installed_bytes()
    figures = {
        "installed_mb": round(sum(sizes.values()) / 1e6, 1),
        "largest_mb": {name: round(size / 1e6, 1) for name, size in list(sizes.items())[:4]},
        "has_torch": "torch" in sizes,
        **measure_command(options.model),
        **measure_server(options.model, options.idle),
    }
    print(json.dumps(figures, indent=2, ensure_ascii=False))


def installed_bytes() -> dict[str, int]:
    """Return the bytes of the files of each distribution, the largest first."""
    sizes: dict[str, int] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        paths = (Path(str(distribution.locate_file(one))) for one in distribution.files or ())
        size = sum(path.lstat().st_size for path in paths if path.is_file())
        if name not in NOT_COUNTED:
            sizes[name] = size
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1]))


def measure_command(model: Path) -> dict[str, float]:
    """Return the seconds and the memory of `attendo translate` with one sentence."""
    command = [sys.executable, "-m", "attendo", "translate", str(model), TEXT]
    seconds = []
    for _ in range(1 + REPEATS):  # the first one converts the model and compiles the modules
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    return {"translate_seconds": round(statistics.median(seconds[1:]), 2)}


def measure_server(model: Path, idle_seconds: float) -> dict[str, float]:
    """Return the seconds until a server is ready, and its memory while the model is idle."""
    command = [sys.executable, "-m", "attendo", "serve", str(model), "--port", "0"]
    command += ["--set", f"idle_seconds={idle_seconds}"]
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            ready = time.perf_counter() - start
            address = (re.match(r"http://\S+", line) or [""])[0]
            first = ask(address)
            before = settled_mb(process.pid)  # with the tables of the language detector
            while "attendo_model_loaded{" not in (page := get(address, "/metrics")) or is_loaded(
                page
            ):
                time.sleep(0.2)
            idle = settled_mb(process.pid)
            again = ask(address)
            return {
                "server_ready_seconds": round(ready, 2),
                "first_request_seconds": round(first, 3),
                "server_mb": before,
                "idle_server_mb": idle,
                "request_that_loads_seconds": round(again, 3),
            }
        finally:
            process.terminate()


def ask(address: str) -> float:
    """Translate one sentence; return the seconds."""
    body = json.dumps({"q": TEXT, "source": "auto", "target": "en"}).encode()
    headers = {"Content-Type": "application/json"}
    start = time.perf_counter()
    request = urllib.request.Request(f"{address}/translate", body, headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - on loopback
        answer.read()
    return time.perf_counter() - start


def get(address: str, path: str) -> str:
    """Return a page of the server."""
    with urllib.request.urlopen(address + path, timeout=60) as answer:  # noqa: S310
        text: str = answer.read().decode()
    return text


def is_loaded(page: str) -> bool:
    """Return whether the metrics say that a model is loaded."""
    return bool(re.search(r"^attendo_model_loaded\{.*\} 1\.0$", page, re.MULTILINE))


def settled_mb(pid: int) -> float:
    """Return the resident memory of a process once it stays the same."""
    sizes = [resident_mb(pid)]
    while len(sizes) < SETTLED or max(sizes[-SETTLED:]) - min(sizes[-SETTLED:]) > 1.0:
        time.sleep(0.5)
        sizes.append(resident_mb(pid))
    return sizes[-1]


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process on Linux."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


if __name__ == "__main__":
    main()
