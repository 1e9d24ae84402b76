"""Fairness of `attendo serve`: how long small requests wait while another client sends heavy ones.

Starts the server on a free port of the loopback interface. For each kind of heavy request one
client (127.0.0.2) sends it once, and another one (127.0.0.1) sends small requests, one after
another, until the heavy one is answered or `--seconds` are over. Goal: no small request takes
longer than a second.

Run: python -m benchmarks.serving_fairness runs/quickstart/ko-en [--only nbest file-line ...]
     [--seconds 12] [--set max_request_characters=1000000]
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.synthetic.everyday import synthesize_pairs
from benchmarks.serving_load import Server

if TYPE_CHECKING:
    from collections.abc import Callable

TARGET_SECONDS = 1.0
HEAVY_ADDRESS, SMALL_ADDRESS = "127.0.0.2", "127.0.0.1"
TIMEOUT = 60.0
PAUSE = 0.05
"""Seconds between two small requests."""
LINE_BREAK = "\r\n"


class Body(NamedTuple):
    """Route, content type and body of a request."""

    path: str
    content: bytes
    content_type: str = "application/json"


@dataclass
class Tally:
    """The small requests that were sent during a heavy one."""

    seconds: list[float] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    heavy_status: int | None = None
    heavy_seconds: float = 0.0

    def describe(self) -> str:
        """Return the cells of a table row."""
        if not self.seconds:
            return f"- | - | {len(self.errors)} | {self._describe_heavy()}"
        median, longest = statistics.median(self.seconds), max(self.seconds)
        return (
            f"{1000 * median:.0f} ms | {longest:.2f} s | {len(self.errors)} | "
            f"{self._describe_heavy()}"
        )

    def _describe_heavy(self) -> str:
        if self.heavy_status is None:
            return f"open after {self.heavy_seconds:.0f} s"
        return f"{self.heavy_status} after {self.heavy_seconds:.1f} s"


def make_json(path: str, body: dict[str, Any]) -> Body:
    """Return a JSON request."""
    return Body(path, json.dumps(body, ensure_ascii=False).encode())


def make_upload(text: str) -> Body:
    """Return an upload of a text file."""
    boundary = "fairness-boundary"
    fields = "".join(
        f'--{boundary}{LINE_BREAK}Content-Disposition: form-data; name="{name}"'
        f"{LINE_BREAK}{LINE_BREAK}{value}{LINE_BREAK}"
        for name, value in {"source": "ko", "target": "en"}.items()
    )
    part = (
        f'{fields}--{boundary}{LINE_BREAK}Content-Disposition: form-data; name="file"; '
        f'filename="a.txt"{LINE_BREAK}Content-Type: text/plain{LINE_BREAK}{LINE_BREAK}'
        f"{text}{LINE_BREAK}--{boundary}--{LINE_BREAK}"
    )
    return Body("/translate_file", part.encode(), f"multipart/form-data; boundary={boundary}")


def heavy_requests(scale: float) -> dict[str, Callable[[], Body]]:
    """Return the heavy requests by name; `scale` is the share of the texts of a request."""
    sentences = [pair.ko for pair in synthesize_pairs(3000, seed=5)]

    def make_text(characters: int, start: int = 0) -> str:
        text, index = "", start
        while len(text) < characters:
            text += sentences[index % len(sentences)] + " "
            index += 1
        return text[:characters].strip()

    def make_texts(count: int, characters: int) -> list[str]:
        return [make_text(characters, 7 * index) for index in range(max(1, int(count * scale)))]

    nbest = {"beam_size": 16, "n_best": 11}
    sampling = {"do_sample": True, "temperature": 100.0, "n_best": 11}
    glossary = {f"{sentence[:12]}{i}": f"term {i}" for i, sentence in enumerate(sentences[:997])}
    glossary.update({"왕자": "prince", "사자": "lion", "소녀": "girl"})
    one_line = make_text(330_000)  # 1 MB in UTF-8 is 330,000 Hangul characters and spaces
    requests: dict[str, Callable[[], Body]] = {
        "nbest": lambda: make_json("/v1/translate", {"text": make_texts(128, 1146), **nbest}),
        "nbest-confidence": lambda: make_json(
            "/v1/translate", {"text": make_texts(32, 1146), "confidence": True, **nbest}
        ),
        "sample": lambda: make_json("/v1/translate", {"text": make_texts(128, 1146), **sampling}),
        "plain128": lambda: make_json(
            "/translate", {"q": make_texts(128, 4900), "source": "ko", "target": "en"}
        ),
        "score": lambda: make_json(
            "/v1/score",
            {
                "pairs": [
                    {"source_text": text[:1000], "target_text": "I am a student. " * 20}
                    for text in make_texts(128, 1000)
                ]
            },
        ),
        "glossary": lambda: make_json(
            "/v1/translate", {"text": make_texts(20, 1000), "glossary": glossary}
        ),
        "alignment": lambda: make_json(
            "/v1/translate", {"text": sentences[:128], "alignment": True, "confidence": True}
        ),
        "stream": lambda: make_json("/v1/stream", {"text": make_text(999), "confidence": True}),
        "inspect": lambda: make_json(
            "/v1/inspect",
            {"text": make_text(200), "beam_size": 16, "ablation": True, "attribution": True},
        ),
        "file-lines": lambda: make_upload(one_line.replace(". ", ".\n")),
        "file-line": lambda: make_upload(one_line),
        "file-noperiod": lambda: make_upload(one_line.replace(".", "").replace("?", "")),
        "file-nospace": lambda: make_upload(
            one_line.replace(".", "").replace("?", "").replace(" ", "")
        ),
    }
    return requests


def exchange(port: int, body: Body, source: str) -> int:
    """Send one request from a loopback address, read the answer, return its status."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=TIMEOUT, source_address=(source, 0)
    )
    try:
        connection.request(
            "POST",
            body.path,
            body.content,
            {"Content-Type": body.content_type, "Connection": "close"},
        )
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def small_requests() -> list[Body]:
    """Return the small requests: an ordinary one, and two that need the model's inside."""
    text = "나는 학생이다."
    return [
        make_json("/v1/translate", {"text": text}),
        make_json("/v1/alternatives", {"text": text, "prefix": "I am"}),
        make_json("/translate", {"q": text, "source": "ko", "target": "en"}),
        make_json("/v1/translate", {"text": text, "alignment": True, "confidence": True}),
    ]


def measure(port: int, heavy: Body | None, seconds: float) -> Tally:
    """Send small requests while a heavy one is in progress."""
    tally = Tally()
    is_done = threading.Event()
    start = time.perf_counter()

    def send_heavy() -> None:
        try:
            if heavy is not None:
                tally.heavy_status = exchange(port, heavy, HEAVY_ADDRESS)
                tally.heavy_seconds = time.perf_counter() - start
                is_done.set()
        except OSError:
            is_done.set()

    thread = threading.Thread(target=send_heavy, daemon=True)
    thread.start()
    time.sleep(2 * PAUSE)
    probes = small_requests()
    while not is_done.is_set() and time.perf_counter() - start < seconds:
        for probe in probes:
            began = time.perf_counter()
            status = exchange(port, probe, SMALL_ADDRESS)
            if status == 200:
                tally.seconds.append(time.perf_counter() - began)
            else:
                tally.errors.append(status)
        time.sleep(PAUSE)
    if tally.heavy_status is None:
        tally.heavy_seconds = time.perf_counter() - start
    return tally


def main() -> None:
    """Print a row for each kind of heavy request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="names of heavy requests")
    parser.add_argument("--seconds", type=float, default=12.0, help="at most, per heavy request")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the texts of a request")
    parser.add_argument("--set", action="append", default=[], help="settings of the server")
    options = parser.parse_args()
    requests = heavy_requests(options.scale)
    settings = [word for setting in options.set for word in ("--set", setting)]
    longest: list[float] = []
    print("| heavy request | small: median | longest | errors | heavy request |")
    print("|---|---:|---:|---:|---|")
    for name in ["none", *requests]:
        if options.only and name not in options.only:
            continue
        with Server(options.model, *settings) as server:  # a new one: no backlog of the last
            for probe in small_requests():
                exchange(server.port, probe, SMALL_ADDRESS)
            heavy = requests[name]() if name in requests else None
            tally = measure(server.port, heavy, options.seconds if heavy else 3.0)
            longest += tally.seconds
        print(f"| {name} | {tally.describe()} |", flush=True)
    if longest:
        verdict = "within" if max(longest) <= TARGET_SECONDS else "MISSES"
        print(f"longest: {max(longest):.2f} s  {verdict} the target of {TARGET_SECONDS:g} s")


if __name__ == "__main__":
    main()
