"""Hostile clients, and clients that are there when the server ends; used by `serving_load`.

Everything goes to 127.0.0.1, with a fixed number of connections and for a fixed time. Attackers run
in a process of their own, and connect again as soon as they are disconnected:
python -m benchmarks.serving_hostile idle 8765 5000 10
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from attendo.serving.transport.listener import raise_file_limit
from benchmarks.serving_fuzz import HOST, make_request

HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
TINY_CHUNKS = b"1\r\na\r\n" * 10_000
LARGE_CHUNK = b"10000\r\n" + b"a" * 65_536 + b"\r\n"
ATTACKS = {
    "idle": 5_000, "heads": 500, "tiny-chunks": 4, "endless-body": 4, "wrong-keys": 4,
    "no-keys": 4, "wrong-keys-abort": 4, "metrics": 4, "nested-json": 4, "stalled-bodies": 200,
}  # fmt: skip
"""Every attack with its number of connections."""
KEYED = {"wrong-keys", "no-keys", "wrong-keys-abort"}
"""Attacks on a server that asks for keys."""
WRONG_KEY = make_request(
    "GET", "/metrics", Connection="keep-alive", Authorization="Bearer wrong-key"
)
REQUESTS = {
    "wrong-keys": WRONG_KEY,
    "wrong-keys-abort": WRONG_KEY,
    **dict.fromkeys(
        ("no-keys", "metrics"), make_request("GET", "/metrics", Connection="keep-alive")
    ),
    "nested-json": make_request(
        "POST", "/translate", b"[" + b"[]," * 600_000 + b"[]]", Connection="keep-alive"
    ),
}
"""Attacks that repeat one request."""
MAX_BODY_BYTES = 2_000_000
STALLED_HEAD = HEAD + f"Content-Length: {MAX_BODY_BYTES}\r\n\r\n".encode()
RAMP_SECONDS = 4.0
"""Time in which an attack builds up before it is measured."""
STREAM_TEXT = "나는 학생이다. 사자는 강하다. 왕자는 공주를 구했다. 소녀는 사자를 구했다."
STREAM_ROUNDS = 9
CONNECT_BATCH = 200
RETRY_SECONDS = 0.01


async def attack(kind: str, port: int, count: int, seconds: float) -> None:
    """Run an attack with `count` connections for some seconds."""
    raise_file_limit()
    until = time.perf_counter() + seconds
    tasks = []
    for index in range(count):
        tasks.append(asyncio.ensure_future(_keep_attacking(kind, port, until)))
        if index % CONNECT_BATCH == CONNECT_BATCH - 1:
            await asyncio.sleep(RETRY_SECONDS)
    await asyncio.gather(*tasks)


async def _keep_attacking(kind: str, port: int, until: float) -> None:
    while time.perf_counter() < until:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(max(0.0, until - time.perf_counter())):
                await _attack_once(kind, port)
        await asyncio.sleep(RETRY_SECONDS)


async def _attack_once(kind: str, port: int) -> None:
    """Attack over one connection until the server closes it."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        if kind == "idle":
            await reader.read()
        elif kind == "heads":
            writer.write(HEAD)
            while not reader.at_eof():
                writer.write(b"X-A: b\r\n")
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1024), 0.5)
        elif kind in REQUESTS:
            while not reader.at_eof():
                writer.write(REQUESTS[kind])
                if kind.endswith("-abort"):  # without waiting for the response
                    await asyncio.sleep(0)
                    return
                await reader.read(65_536)
        elif kind == "stalled-bodies":
            writer.write(STALLED_HEAD)
            writer.write(b"a" * (MAX_BODY_BYTES - 1))
            await reader.read()
        else:
            writer.write(CHUNKED)
            while not reader.at_eof():
                writer.write(TINY_CHUNKS if kind == "tiny-chunks" else LARGE_CHUNK)
                await writer.drain()
                await asyncio.sleep(0)
    finally:
        writer.transport.abort()


def probe(port: int, seconds: float, *, key: str = "") -> list[float]:
    """Translate a text again and again over new connections; return the times in milliseconds."""
    body = json.dumps({"text": "나는 학생이다."}).encode()
    headers = {"Content-Type": "application/json", "Connection": "close"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    until, found = time.perf_counter() + seconds, []
    while time.perf_counter() < until:
        start = time.perf_counter()
        try:
            connection = http.client.HTTPConnection(HOST, port, timeout=seconds)
            connection.request("POST", "/v1/translate", body, headers)
            is_good = connection.getresponse().status == 200
            connection.close()
        except (OSError, http.client.HTTPException):
            is_good = False
        elapsed = 1000 * (time.perf_counter() - start)
        found.append(elapsed if is_good else float("inf"))
        if not is_good:
            time.sleep(RETRY_SECONDS)
    return found


def measure_attack(port: int, kind: str, count: int, *, seconds: float, key: str) -> str:
    """Return what an attack does to the latency of another client, in one line.

    It is compared with the time before and after: other programs may use the machine, too.
    """
    before = probe(port, seconds, key=key)
    words = [sys.executable, "-m", "benchmarks.serving_hostile", kind, str(port), str(count)]
    attacker = subprocess.Popen([*words, str(RAMP_SECONDS + seconds + 1)])
    try:
        time.sleep(RAMP_SECONDS)
        during = probe(port, seconds, key=key)
    finally:
        attacker.wait()
    after = probe(port, seconds, key=key)
    medians = [statistics.median(one) for one in (before, during, after)]
    ratio = medians[1] / statistics.mean((medians[0], medians[2]))
    failed = sum(one == float("inf") for one in during)
    return (
        f"{kind} x {count}: median {medians[0]:.1f} ms before, {medians[1]:.1f} ms during, "
        f"{medians[2]:.1f} ms after (ratio {ratio:.2f}), {failed} of {len(during)} failed"
    )


def measure_latency(port: int, *, rounds: int = 60) -> list[str]:
    """Compare kept-alive connections with new ones, and count the reads of a stream.

    Nagle's algorithm would delay every response but the first on a connection by 40 ms, and send
    the events of a stream together.
    """
    kept = http.client.HTTPConnection(HOST, port)
    times: dict[str, list[float]] = {"kept": [], "new": []}
    for _ in range(rounds):
        for name in times:
            start = time.perf_counter()
            connection = kept if name == "kept" else http.client.HTTPConnection(HOST, port)
            connection.request("GET", "/health")
            connection.getresponse().read()
            times[name].append(1000 * (time.perf_counter() - start))
            if name == "new":
                connection.close()
    medians = {name: statistics.median(found) for name, found in times.items()}
    ratio = medians["kept"] / medians["new"]
    asyncio.run(count_reads(port))  # loads the model with the native decoder
    counts = [asyncio.run(count_reads(port)) for _ in range(STREAM_ROUNDS)]
    num_events, num_reads = (statistics.median(column) for column in zip(*counts, strict=True))
    return [
        f"GET /health: kept-alive {medians['kept']:.2f} ms, new connection {medians['new']:.2f} ms "
        f"(ratio {ratio:.2f})",
        f"POST /v1/stream, kept-alive: {num_events:g} events in {num_reads:g} reads",
    ]


async def count_reads(port: int, text: str = STREAM_TEXT) -> tuple[int, int]:
    """Return how many events a stream has, and in how many reads they arrive."""
    reader, writer = await asyncio.open_connection(HOST, port)
    health = make_request("GET", "/health", Connection="keep-alive")
    body = json.dumps({"text": text}).encode()
    writer.write(health)
    await reader.readuntil(b"}")
    writer.write(make_request("POST", "/v1/stream", body, Connection="close"))
    received, num_reads = b"", 0
    while part := await reader.read(65_536):
        received += part
        num_reads += 1
    writer.close()
    return received.count(b"event: "), num_reads


@dataclass
class EndTally:
    """What happened to requests around the end of the server."""

    outcomes: Counter[str] = field(default_factory=Counter)

    def describe(self) -> str:
        """Return the counts in one line."""
        lost = sum(count for name, count in self.outcomes.items() if name.startswith("lost"))
        return f"{dict(self.outcomes)}; requests lost: {lost}"


async def run_until_end(port: int, clients: int, *, keep_alive: bool, tally: EndTally) -> None:
    """Send requests until the server refuses connections."""
    await asyncio.gather(*(_ask_until_end(port, keep_alive, tally) for _ in range(clients)))


async def _ask_until_end(port: int, keep_alive: bool, tally: EndTally) -> None:
    body = json.dumps({"text": "나는 학생이다."}).encode()
    connection = "keep-alive" if keep_alive else "close"
    request = make_request("POST", "/v1/translate", body, Connection=connection)
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    while True:
        if streams is None:
            try:
                streams = await asyncio.wait_for(asyncio.open_connection(HOST, port), 5)
            except ConnectionRefusedError:
                tally.outcomes["clients refused at the end"] += 1
                return
            except TimeoutError:
                tally.outcomes["connections that hang"] += 1
                return
        reader, writer = streams
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            tally.outcomes["lost: closed"] += 1
            head = b"connection: close"
        except ConnectionError:
            tally.outcomes["lost: reset"] += 1
            head = b"connection: close"
        else:
            tally.outcomes[head.split(b" ")[1].decode()] += 1
        if b"connection: close" in head:
            writer.close()
            streams = None


if __name__ == "__main__":
    asyncio.run(attack(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
