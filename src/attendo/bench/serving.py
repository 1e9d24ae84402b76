"""Speed of a server: closed-loop clients, each of which sends its next request after its answer.

The server runs in a process of its own, or elsewhere (`url`). Clients keep their connections open.
On a small machine they use part of the same cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

from attendo.core.config import Config
from attendo.core.errors import AttendoError, ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

HEADERS = ("clients", "requests/s", "sentences/s", "p50 ms", "p95 ms", "p99 ms", "errors", "resets")
DEFAULT_LOADS = ("1", "16x64", "64", "200", "512")
ROUTE = "/v1/translate"
START_SECONDS = 300.0
WARM_SECONDS = 2.0
RETRY_SECONDS = 1.0
"""The delay after a status 503."""
NUM_TEXTS = 500
MANY_CONNECTIONS = 8192
ADDRESS = re.compile(r"http://[^\s/]+:\d+")
LATE_CAPTURES = re.compile(r"^attendo_graph_captures_after_warm_up{[^}]*} ([\d.]+)", re.MULTILINE)
CAPTURES = re.compile(r"^attendo_graph_captures{[^}]*} ([\d.]+)", re.MULTILINE)


class Load(NamedTuple):
    """Clients, and the sentences of each request."""

    num_clients: int
    num_texts: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text form.

        >>> Load.parse("16x64"), Load.parse("200")
        (Load(num_clients=16, num_texts=64), Load(num_clients=200, num_texts=1))
        """
        match = re.fullmatch(r"\s*(\d+)(?:\s*x\s*(\d+))?\s*", text)
        numbers = [int(one) for one in match.groups(default="1")] if match else [0]
        if min(numbers) < 1:
            raise ConfigError(
                message("'{text}' is not a number of clients", text=text),
                hint="write clients, or clients x sentences per request, e.g. 200 or 16x64",
            )
        return cls(*numbers)

    def __str__(self) -> str:
        return f"{self.num_clients}" + (f" x {self.num_texts}" if self.num_texts > 1 else "")


class ServingBenchConfig(Config):
    """What is measured."""

    model: Path | None = None
    """A model folder, which a server of its own serves."""
    url: str | None = None
    """The address of a running server."""
    loads: tuple[str, ...] = DEFAULT_LOADS
    """Clients, or clients x sentences per request."""
    seconds: float = 10.0
    """Of each load, after a warm-up."""
    engine: str = "auto"
    """Of the server, if it is our own."""
    settings: tuple[str, ...] = ()
    """Further settings of the server, as for `attendo serve --set`."""
    texts: Path | None = None
    """Sentences to translate; by default synthetic Korean or English ones."""


@dataclass
class Tally:
    """Statuses and response times of one load."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    num_resets: int = 0
    begin: float = 0.0
    """Requests that began earlier are not counted."""
    end: float = 0.0

    def add(self, status: int, began: float) -> None:
        """Count one request; status 0 is a connection that was closed."""
        if began < self.begin:
            return
        if status:
            self.statuses[status] += 1
        else:
            self.num_resets += 1
        if status == 200:
            self.seconds.append(time.perf_counter() - began)

    def percentile(self, share: float) -> float:
        """Return a percentile of the response time, in milliseconds."""
        ordered = sorted(self.seconds) or [float("nan")]
        return 1000 * ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def to_json(self, load: Load) -> dict[str, Any]:
        """Return the figures as JSON."""
        per_second = len(self.seconds) / max(self.end - self.begin, 1e-9)
        return {
            "clients": str(load),
            "requests_per_second": per_second,
            "sentences_per_second": per_second * load.num_texts,
            "p50_ms": self.percentile(0.5),
            "p95_ms": self.percentile(0.95),
            "p99_ms": self.percentile(0.99),
            "errors": {str(key): count for key, count in self.statuses.items() if key != 200},
            "resets": self.num_resets,
        }


class ServerProcess:
    """`attendo serve` in a process of its own, on a free port.

    Args:
        model: the model folder.
        options: of `attendo serve`.
        environment: more variables of its environment.

    """

    def __init__(
        self, model: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="attendo-bench-")
        self._log_path = Path(self._folder.name) / "log"
        words = [sys.executable, "-m", "attendo", "serve", str(model), "--port", "0", *options]
        with self._log_path.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own command line
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            )
        self.url = ""

    def __enter__(self) -> Self:
        for line in self.process.stdout or ():
            if found := ADDRESS.search(line):
                self.url = found[0]
                return self
        log = self.read_log()[-2000:]
        self.__exit__()
        raise AttendoError(
            message("the server did not start: {log}", log=log.strip()),
            hint="run attendo serve with the same model",
        )

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._folder.cleanup()

    def read_log(self) -> str:
        """Return what the server has written to stderr."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")


def benchmark_serving(config: ServingBenchConfig, *, log: Callable[[str], None]) -> dict[str, Any]:
    """Measure all loads, and return the report as JSON."""
    if (config.model is None) == (config.url is None):
        raise ConfigError(
            message("give a model folder or --url"), hint="attendo bench serve runs/ko-en"
        )
    loads = [Load.parse(text) for text in config.loads]
    with contextlib.ExitStack() as stack:
        url = config.url or ""
        if config.model is not None:
            options = ["--engine", config.engine]
            for one in (
                "log_requests=false",
                f"max_connections_per_address={MANY_CONNECTIONS}",
                f"max_queue={MANY_CONNECTIONS}",
                *config.settings,
            ):
                options += ["--set", one]
            url = stack.enter_context(ServerProcess(config.model, *options)).url
        address = (urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 80)
        return asyncio.run(_measure_all(config, loads, address, log))


async def _measure_all(
    config: ServingBenchConfig,
    loads: Sequence[Load],
    address: tuple[str, int],
    log: Callable[[str], None],
) -> dict[str, Any]:
    texts = _read_texts(config, json.loads(await _get(address, "/v1/models")))
    cases = []
    for load in loads:
        tally = await run_load(address, texts, load, seconds=config.seconds)
        cases.append(tally.to_json(load))
        log(format_case(cases[-1]))
    metrics = await _get(address, "/metrics")
    return {
        "kind": "attendo bench serve",
        "server": config.url or str(config.model),
        "engine": config.engine if config.url is None else "",
        "seconds": config.seconds,
        "num_texts": len(texts),
        "cores": os.cpu_count(),
        "graph_captures": _sum_of(CAPTURES, metrics),
        "graph_captures_after_warm_up": _sum_of(LATE_CAPTURES, metrics),
        "cases": cases,
    }


def _read_texts(config: ServingBenchConfig, models: Any) -> list[str]:
    if config.texts is not None:
        lines = config.texts.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip()]
    from attendo.synthetic.everyday import synthesize_pairs

    listed = models.get("models") or [{}]
    is_english = str(listed[0].get("source", "ko")).startswith("en")
    pairs = synthesize_pairs(NUM_TEXTS, seed=2)
    return [pair.en if is_english else pair.ko for pair in pairs]


def _sum_of(pattern: re.Pattern[str], metrics: str) -> int | None:
    """Return the sum of a metric over the models; None if there is none."""
    found = pattern.findall(metrics)
    return int(sum(map(float, found))) if found else None


async def run_load(
    address: tuple[str, int], texts: Sequence[str], load: Load, *, seconds: float
) -> Tally:
    """Run all clients for some seconds, after a warm-up."""
    tally = Tally(begin=time.perf_counter() + WARM_SECONDS)
    until = tally.begin + seconds
    requests = _make_requests(address, texts, load)
    await asyncio.gather(
        *(
            _run_client(address, islice(cycle(requests), index * 7, None), tally, until)
            for index in range(load.num_clients)
        )
    )
    tally.end = time.perf_counter()
    return tally


def _make_requests(address: tuple[str, int], texts: Sequence[str], load: Load) -> list[bytes]:
    repeated = cycle(texts)
    bodies = [
        {"text": next(repeated) if load.num_texts == 1 else list(islice(repeated, load.num_texts))}
        for _ in texts
    ]
    return [_make_request(address, "POST", ROUTE, json.dumps(body)) for body in bodies]


def _make_request(address: tuple[str, int], method: str, path: str, body: str = "") -> bytes:
    data = body.encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def _run_client(
    address: tuple[str, int], requests: Iterator[bytes], tally: Tally, until: float
) -> None:
    """Send requests one after another until the deadline."""
    connection = None
    for raw in requests:
        began = time.perf_counter()
        if began >= until:
            break
        try:
            if connection is None:
                connection = await asyncio.open_connection(*address)
            status, _ = await _exchange(*connection, raw)
        except (OSError, asyncio.IncompleteReadError):
            tally.add(0, began)
            if connection is not None:
                connection[1].close()
            connection = None
            await asyncio.sleep(0.05)
            continue
        tally.add(status, began)
        if status == 503:
            await asyncio.sleep(RETRY_SECONDS)
    if connection is not None:
        connection[1].close()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, raw: bytes
) -> tuple[int, bytes]:
    """Send a request on an open connection; return status and body."""
    writer.write(raw)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    size = re.search(r"content-length: (\d+)", head)
    body = await reader.readexactly(int(size[1]) if size else 0)
    return int(head.split(" ", 2)[1]), body


async def _get(address: tuple[str, int], path: str) -> str:
    try:
        reader, writer = await asyncio.open_connection(*address)
        status, body = await _exchange(reader, writer, _make_request(address, "GET", path))
        writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        raise AttendoError(
            message("no server answers at {host}:{port}", host=address[0], port=address[1]),
            hint="start it with attendo serve",
        ) from error
    if status != 200:
        raise AttendoError(message("{path}: status {status}", path=path, status=status))
    return body.decode()


def format_case(case: dict[str, Any]) -> str:
    """Return the figures of a load as one line."""
    cells = dict(zip(HEADERS, _cells(case), strict=True))
    return ", ".join(f"{name} {value}" for name, value in cells.items())


def table_rows(report: dict[str, Any]) -> list[list[str]]:
    """Return the cells of the table `HEADERS`."""
    return [_cells(case) for case in report["cases"]]


def _cells(case: dict[str, Any]) -> list[str]:
    errors = ", ".join(f"{count} x {status}" for status, count in case["errors"].items())
    return [
        case["clients"],
        f"{case['requests_per_second']:,.1f}",
        f"{case['sentences_per_second']:,.1f}",
        *(f"{case[name]:,.0f}" for name in ("p50_ms", "p95_ms", "p99_ms")),
        errors or "0",
        str(case["resets"]),
    ]
