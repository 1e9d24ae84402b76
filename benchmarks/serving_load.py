"""Load test of `attendo serve`: latency, throughput, memory, malformed requests, hostile clients.

Starts the server on a free port and sends HTTP requests from this process; on a small machine the
clients use part of the same cores. Goals: 200 clients for a minute with no error but 503, batching
at least 3 times as fast as one text at a time, memory after 10,000 requests within 10 % of that
after 1,000, and 10,000 malformed requests without a 5xx.

Hostile clients (idle connections, slow heads, tiny chunks, endless bodies, wrong keys) must not
make others more than twice as slow, and the end of the server must not lose a request.

Run: python -m benchmarks.serving_load runs/ko-en [--compare] [--memory] [--fuzz 10000] [--latency]
     [--hostile] [--end] [--engine attendo] [--clients 200] [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.bench.serving import ServerProcess
from attendo.synthetic.everyday import synthesize_pairs
from benchmarks import serving_hostile
from benchmarks.serving_fuzz import (
    HOST,
    MARKER,
    RawRequest,
    exchange,
    find_faults,
    handwritten_requests,
    make_json,
    random_requests,
    run_schemathesis,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TARGET_RATIO, TARGET_GROWTH = 3.0, 1.10
NUM_BEFORE, NUM_AFTER = 1_000, 10_000
"""Numbers of requests after which the memory is measured."""
START_SECONDS = 120.0
WARM_SECONDS = 3.0
NUM_SENTENCES = 500
FUZZERS = 8
KEY = "a-key-of-the-benchmark"
HOSTILE_SECONDS = 8.0
NUM_END_CLIENTS = 80
END_AFTER_SECONDS = 4.0


class Server(ServerProcess):
    """`attendo serve` in a subprocess, with its memory and translations of one text."""

    def __init__(self, model: Path, *options: str, threads: int | None = None) -> None:
        extra = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
        super().__init__(model, *options, environment=extra)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.url.rpartition(":")[2])

    @property
    def is_alive(self) -> bool:
        """Whether the server is still running."""
        return self.process.poll() is None

    def measure_memory(self) -> int:
        """Return the resident memory of the server and its children, in bytes."""
        import psutil  # type: ignore[import-untyped]

        parent = psutil.Process(self.process.pid)
        return sum(one.memory_info().rss for one in (parent, *parent.children(recursive=True)))

    def translate(self, text: str) -> str:
        """Return the translation of one text."""
        response = exchange(self.port, RawRequest("", make_json("/v1/translate", {"text": text})))
        return str(json.loads(response.body)["translations"][0]["text"])


@dataclass
class Tally:
    """Status codes and response times of all clients."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    begin: float = 0.0
    """Requests that began earlier are not counted."""
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
        """Translations per second."""
        return len(self.seconds) / max(self.end - self.begin, 1e-9)

    def percentile(self, share: float) -> float:
        """Return a percentile of the response time."""
        ordered = sorted(self.seconds) or [float("nan")]
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def describe(self) -> str:
        """Return a summary in one line."""
        others = {k: v for k, v in sorted(self.statuses.items()) if k not in (200, 503)}
        return (
            f"{len(self.seconds):,} translations, {self.throughput:.1f}/s, "
            f"p50 {1000 * self.percentile(0.5):.0f} ms, p99 {1000 * self.percentile(0.99):.0f} ms, "
            f"503s {self.statuses[503]}, other errors {others or 'none'}"
        )


def make_requests(texts: Sequence[str]) -> list[bytes]:
    """Return requests that keep the connection open."""
    return [
        make_json("/v1/translate", {"text": text}).replace(b"Connection: close\r\n", b"")
        for text in texts
    ]


async def send_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, raw: bytes
) -> int:
    """Send one request on an open connection, read the response, return its status."""
    writer.write(raw)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    size = re.search(r"content-length: (\d+)", head)
    await reader.readexactly(int(size[1]) if size else 0)
    return int(head.split(" ", 2)[1])


async def run_client(port: int, requests: Iterator[bytes], tally: Tally, until: float) -> None:
    """Send requests one after another until the time is over or there are no more."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        for raw in requests:
            began = time.perf_counter()
            if began >= until:
                return
            try:
                status = await send_request(reader, writer, raw)
            except (OSError, asyncio.IncompleteReadError):
                tally.add(0, began)
                reader, writer = await asyncio.open_connection(HOST, port)
                continue
            tally.add(status, began)
            if status == 503:
                await asyncio.sleep(1.0)  # the delay of Retry-After
    finally:
        writer.close()


async def run_load(port: int, texts: Sequence[str], *, clients: int, seconds: float) -> Tally:
    """Run all clients for some seconds, after a warm-up."""
    now = time.perf_counter()
    tally = Tally(begin=now + WARM_SECONDS)
    until = tally.begin + seconds
    requests = make_requests(texts)
    await asyncio.gather(
        *(
            run_client(port, islice(cycle(requests), index * 7, None), tally, until)
            for index in range(clients)
        )
    )
    tally.end = time.perf_counter()
    return tally


async def run_count(port: int, texts: Sequence[str], *, count: int, clients: int = 16) -> Tally:
    """Send `count` requests."""
    tally = Tally(begin=time.perf_counter())
    shared = islice(cycle(make_requests(texts)), count)
    await asyncio.gather(*(run_client(port, shared, tally, float("inf")) for _ in range(clients)))
    tally.end = time.perf_counter()
    return tally


def engine_words(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the option of the server that names its engine, if one is chosen."""
    return ("--engine", options.engine) if options.engine else ()


def measure_load(options: argparse.Namespace, texts: Sequence[str]) -> None:
    """Print latency and throughput; with `--compare` also without batching."""
    kinds = {"batched": (), "unbatched": ("--batch-size", "1")}
    found = {}
    for name in ("batched", "unbatched") if options.compare else ("batched",):
        with Server(options.model, *engine_words(options), *kinds[name]) as server:
            load = run_load(server.port, texts, clients=options.clients, seconds=options.seconds)
            found[name] = asyncio.run(load)
        print(f"{name}, {options.clients} clients, {options.seconds:g} s:")
        print(f"  {found[name].describe()}")
    if options.compare:
        ratio = found["batched"].throughput / max(found["unbatched"].throughput, 1e-9)
        verdict = "reaches" if ratio >= TARGET_RATIO else "MISSES"
        print(f"batched / unbatched: {ratio:.2f}  {verdict} the target of {TARGET_RATIO}")


def measure_memory(options: argparse.Namespace, texts: Sequence[str]) -> None:
    """Print the memory after 1,000 and after 10,000 requests."""
    resident, sent = {}, 0
    with Server(options.model, *engine_words(options)) as server:
        for count in (NUM_BEFORE, NUM_AFTER):
            tally = asyncio.run(run_count(server.port, texts, count=count - sent))
            sent = count
            resident[count] = server.measure_memory()
            print(f"after {count:,} requests: {resident[count] / 1e6:.1f} MB ({tally.describe()})")
    growth = resident[NUM_AFTER] / resident[NUM_BEFORE]
    verdict = "within" if growth <= TARGET_GROWTH else "MISSES"
    print(f"growth: {growth:.3f}  {verdict} the target of {TARGET_GROWTH}")


def measure_latency(options: argparse.Namespace) -> None:
    """Print the latency of kept-alive connections, and how a stream arrives."""
    with Server(options.model, *engine_words(options)) as server:
        server.translate("나는 학생이다.")
        for line in serving_hostile.measure_latency(server.port):
            print(line)


def measure_hostile(options: argparse.Namespace) -> None:
    """Print what hostile clients do to the latency of others."""
    for kind, count in serving_hostile.ATTACKS.items():
        keys = ("--api-key", KEY) if kind in serving_hostile.KEYED else ()
        with Server(options.model, *engine_words(options), *keys) as server:
            print(
                serving_hostile.measure_attack(
                    server.port, kind, count, seconds=HOSTILE_SECONDS, key=KEY if keys else ""
                )
            )
            print(f"  log: {len(server.read_log()) / 1e6:.2f} MB, alive: {server.is_alive}")


def measure_end(options: argparse.Namespace) -> None:
    """Print what is lost when the server is terminated under load."""
    for workers in ("1", "2"):
        for keep_alive in (True, False):
            words = ("--workers", workers, "--set", "grace=10", *engine_words(options))
            with Server(options.model, *words) as server:
                tally = serving_hostile.EndTally()
                timer = threading.Timer(END_AFTER_SECONDS, server.process.terminate)
                timer.start()
                clients = serving_hostile.run_until_end(
                    server.port, NUM_END_CLIENTS, keep_alive=keep_alive, tally=tally
                )
                asyncio.run(clients)
                start = time.perf_counter()
                code = server.process.wait(START_SECONDS)
                waited = time.perf_counter() - start
            kind = "kept-alive" if keep_alive else "new connections"
            print(f"SIGTERM, {workers} processes, {NUM_END_CLIENTS} clients, {kind}:")
            print(f"  {tally.describe()}; exit code {code}, {waited:.1f} s after the last client")


def fuzz(options: argparse.Namespace) -> None:
    """Send malformed requests of every kind, and print the faults of the responses."""
    text = synthesize_pairs(1, seed=3)[0].ko
    words = engine_words(options)
    with (
        tempfile.TemporaryDirectory() as runs,
        Server(options.model, "--runs", runs, *words) as server,
    ):
        before = server.translate(text)
        made = run_schemathesis(server.port, examples=max(1, options.fuzz // 120))
        by_hand = list(handwritten_requests())
        count = max(options.fuzz - made.num_requests - len(by_hand), 0)
        requests = [*by_hand, *islice(random_requests(options.seed), count)]
        statuses: Counter[int] = Counter()

        def send(request: RawRequest) -> list[str]:
            response = exchange(server.port, request)
            statuses[response.status] += 1
            return find_faults(request, response)

        with ThreadPoolExecutor(FUZZERS) as pool:
            faults = [
                *made.faults,
                *(fault for faults_of_one in pool.map(send, requests) for fault in faults_of_one),
            ]
        is_same = server.is_alive and server.translate(text) == before
        log = server.read_log()
        faults += [f"{sign!r} in the log" for sign in ("Traceback", MARKER) if sign in log]
        counts = {status or "closed": number for status, number in sorted(statuses.items())}
        print(
            f"{made.num_requests + len(requests):,} malformed requests ({made.num_requests:,} by "
            f"schemathesis, {len(by_hand):,} handwritten, {count:,} random); responses: {counts}"
        )
        print(f"faults: {len(faults)}; the server still translates: {is_same}")
        for fault in faults[:20]:
            print(f"  {fault}")


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--engine", help="engine of the server; attendo uses slots")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--compare", action="store_true", help="compare with unbatched translation")
    parser.add_argument(
        "--memory", action="store_true", help="measure memory after 1,000 and 10,000 requests"
    )
    parser.add_argument(
        "--fuzz", type=int, default=0, metavar="N", help="send N malformed requests"
    )
    parser.add_argument("--latency", action="store_true", help="compare kept-alive connections")
    parser.add_argument("--hostile", action="store_true", help="measure under hostile clients")
    parser.add_argument("--end", action="store_true", help="count what is lost at the end")
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
    modes = {"latency": measure_latency, "hostile": measure_hostile, "end": measure_end}
    for name, measure in modes.items():
        if getattr(options, name):
            measure(options)
    if options.compare or not (
        options.memory or options.fuzz or any(map(vars(options).get, modes))
    ):
        measure_load(options, texts)


if __name__ == "__main__":
    main()
