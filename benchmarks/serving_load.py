"""How `attendo serve` bears many clients: times, throughput, memory, and requests of bad faith.

Starts the server itself, on a free port, and speaks HTTP to it from this process: on a small
machine the clients take their share of the same cores. Goals: 200 clients for a minute with no
error but 503, batching at least 3 times as fast as one text at a time, memory after 10,000 requests
within 10 % of that after 1,000, and 10,000 ugly requests without a 5xx.

Run: python -m benchmarks.serving_load runs/ko-en [--compare] [--memory] [--fuzz 10000]
     [--clients 200] [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

from attendo.synthetic.everyday import synthesize_pairs
from benchmarks.serving_fuzz import (
    HOST,
    MARKER,
    Ugly,
    draw_ugly,
    exchange,
    judge,
    list_ugly,
    make_json,
    run_schemathesis,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GOAL_RATIO, GOAL_GROWTH = 3.0, 1.10
FEW, MANY = 1_000, 10_000
"""Requests after which the memory is looked at."""
START_SECONDS = 120.0
WARM_SECONDS = 3.0
NUM_SENTENCES = 500
FUZZERS = 8
ADDRESS = re.compile(r"http://[^:]+:(\d+)")


class Server:
    """`attendo serve` as a process of its own."""

    def __init__(self, model: Path, *options: str, threads: int | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="attendo-serving-")
        self._log_path = Path(self._folder.name) / "log"
        words = [sys.executable, "-m", "attendo", "serve", str(model), "--port", "0", *options]
        own = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
        with self._log_path.open("w") as log:
            self.process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **own}
            )
        self.port = 0

    def __enter__(self) -> Self:
        for line in self.process.stdout or ():
            if found := ADDRESS.search(line):
                self.port = int(found[1])
                return self
        raise RuntimeError(f"the server did not start:\n{self.read_log()}")

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

    @property
    def is_alive(self) -> bool:
        """Tell whether it still runs."""
        return self.process.poll() is None

    def measure_memory(self) -> int:
        """Give the bytes that it and its children hold in memory."""
        import psutil  # type: ignore[import-untyped]

        parent = psutil.Process(self.process.pid)
        return sum(one.memory_info().rss for one in (parent, *parent.children(recursive=True)))

    def read_log(self) -> str:
        """Give what it has written on the error stream."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    def translate(self, text: str) -> str:
        """Ask for one translation."""
        answer = exchange(self.port, Ugly("", make_json("/v1/translate", {"text": text})))
        return str(json.loads(answer.body)["translations"][0]["text"])


@dataclass
class Tally:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    begin: float = 0.0
    """What ended before is not counted."""
    end: float = 0.0

    def add(self, status: int, began: float) -> None:
        """Count one request."""
        now = time.perf_counter()
        if began >= self.begin:
            self.statuses[status] += 1
            if status == 200:
                self.seconds.append(now - began)

    @property
    def throughput(self) -> float:
        """Translations a second."""
        return len(self.seconds) / max(self.end - self.begin, 1e-9)

    def percentile(self, share: float) -> float:
        """Give the time within which a share of the requests was answered."""
        ordered = sorted(self.seconds) or [float("nan")]
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def describe(self) -> str:
        """Word it in one line."""
        others = {k: v for k, v in sorted(self.statuses.items()) if k not in (200, 503)}
        return (
            f"{len(self.seconds):,} translations, {self.throughput:.1f}/s, "
            f"p50 {1000 * self.percentile(0.5):.0f} ms, p99 {1000 * self.percentile(0.99):.0f} ms, "
            f"503s {self.statuses[503]}, other errors {others or 'none'}"
        )


def make_requests(texts: Sequence[str]) -> list[bytes]:
    """Write requests that keep their connection."""
    return [
        make_json("/v1/translate", {"text": text}).replace(b"Connection: close\r\n", b"")
        for text in texts
    ]


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, raw: bytes) -> int:
    """Send one request on an open connection, read the whole answer, give its status."""
    writer.write(raw)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    size = re.search(r"content-length: (\d+)", head)
    await reader.readexactly(int(size[1]) if size else 0)
    return int(head.split(" ", 2)[1])


async def run_client(port: int, requests: Iterator[bytes], tally: Tally, until: float) -> None:
    """Ask one thing after another until the time or the requests are over."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        for raw in requests:
            began = time.perf_counter()
            if began >= until:
                return
            try:
                status = await ask(reader, writer, raw)
            except (OSError, asyncio.IncompleteReadError):
                tally.add(0, began)
                reader, writer = await asyncio.open_connection(HOST, port)
                continue
            tally.add(status, began)
            if status == 503:
                await asyncio.sleep(1.0)  # as Retry-After asks
    finally:
        writer.close()


async def run_load(port: int, texts: Sequence[str], *, clients: int, seconds: float) -> Tally:
    """Let clients ask for some seconds, after some that warm up."""
    now = time.perf_counter()
    tally = Tally(begin=now + WARM_SECONDS)
    until = tally.begin + seconds
    requests = make_requests(texts)
    await asyncio.gather(
        *(
            run_client(port, islice(cycle(requests), place * 7, None), tally, until)
            for place in range(clients)
        )
    )
    tally.end = time.perf_counter()
    return tally


async def run_count(port: int, texts: Sequence[str], *, count: int, clients: int = 16) -> Tally:
    """Send so many requests."""
    tally = Tally(begin=time.perf_counter())
    shared = islice(cycle(make_requests(texts)), count)
    await asyncio.gather(*(run_client(port, shared, tally, float("inf")) for _ in range(clients)))
    tally.end = time.perf_counter()
    return tally


def measure_load(options: argparse.Namespace, texts: Sequence[str]) -> None:
    """Print times and throughput; with `--compare` also of one text at a time."""
    kinds = {"batched": (), "unbatched": ("--batch-size", "1")}
    found = {}
    for name in ("batched", "unbatched") if options.compare else ("batched",):
        with Server(options.model, *kinds[name]) as server:
            load = run_load(server.port, texts, clients=options.clients, seconds=options.seconds)
            found[name] = asyncio.run(load)
        print(f"{name}, {options.clients} clients, {options.seconds:g} s:")
        print(f"  {found[name].describe()}")
    if options.compare:
        ratio = found["batched"].throughput / max(found["unbatched"].throughput, 1e-9)
        verdict = "reaches" if ratio >= GOAL_RATIO else "MISSES"
        print(f"batched / unbatched: {ratio:.2f}  {verdict} the goal of {GOAL_RATIO}")


def measure_memory(options: argparse.Namespace, texts: Sequence[str]) -> None:
    """Print the memory after some requests and after many."""
    held, sent = {}, 0
    with Server(options.model) as server:
        for count in (FEW, MANY):
            tally = asyncio.run(run_count(server.port, texts, count=count - sent))
            sent = count
            held[count] = server.measure_memory()
            print(f"after {count:,} requests: {held[count] / 1e6:.1f} MB ({tally.describe()})")
    growth = held[MANY] / held[FEW]
    verdict = "within" if growth <= GOAL_GROWTH else "MISSES"
    print(f"growth: {growth:.3f}  {verdict} the goal of {GOAL_GROWTH}")


def fuzz(options: argparse.Namespace) -> None:
    """Send ugly requests of every kind, and print what was wrong with the answers."""
    text = synthesize_pairs(1, seed=3)[0].ko
    with tempfile.TemporaryDirectory() as runs, Server(options.model, "--runs", runs) as server:
        before = server.translate(text)
        made = run_schemathesis(server.port, examples=max(1, options.fuzz // 120))
        by_hand = list(list_ugly())
        count = max(options.fuzz - made.num_requests - len(by_hand), 0)
        requests = [*by_hand, *islice(draw_ugly(options.seed), count)]
        statuses: Counter[int] = Counter()

        def send(request: Ugly) -> list[str]:
            answer = exchange(server.port, request)
            statuses[answer.status] += 1
            return judge(request, answer)

        with ThreadPoolExecutor(FUZZERS) as pool:
            faults = [*made.faults, *(fault for own in pool.map(send, requests) for fault in own)]
        is_same = server.is_alive and server.translate(text) == before
        log = server.read_log()
        faults += [f"{sign!r} in the log" for sign in ("Traceback", MARKER) if sign in log]
        told = {status or "closed": number for status, number in sorted(statuses.items())}
        print(
            f"{made.num_requests + len(requests):,} ugly requests ({made.num_requests:,} by "
            f"schemathesis, {len(by_hand):,} by hand, {count:,} drawn); answers: {told}"
        )
        print(f"faults: {len(faults)}; the server still translates: {is_same}")
        for fault in faults[:20]:
            print(f"  {fault}")


def main() -> None:
    """Print the figures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--compare", action="store_true", help="against one text at a time")
    parser.add_argument("--memory", action="store_true", help="after 1,000 and 10,000 requests")
    parser.add_argument("--fuzz", type=int, default=0, metavar="N", help="send N ugly requests")
    parser.add_argument("--texts", type=Path, help="a file of sentences; Korean by default")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.texts:
        texts = options.texts.read_text(encoding="utf-8").splitlines()
    else:
        texts = [pair.ko for pair in synthesize_pairs(NUM_SENTENCES, seed=2)]
    if options.memory:
        measure_memory(options, texts)
    if options.fuzz:
        fuzz(options)
    if options.compare or not (options.memory or options.fuzz):
        measure_load(options, texts)


if __name__ == "__main__":
    main()
