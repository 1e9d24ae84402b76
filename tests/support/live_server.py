"""`attendo serve` in a process of its own, and raw HTTP over loopback."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from support.fork_server import ForkServer

PATIENCE = 600.0
OTHER_ADDRESS = "127.0.0.2"
"""A client of its own: 127.0.0.1 is a trusted proxy."""


class Answer(NamedTuple):
    """A response over HTTP/1.1."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class LiveServer:
    """A server on a free port, and its log."""

    def __init__(self, launcher: ForkServer, *words: str | Path, **env: str) -> None:
        self.process = launcher.start(["serve", *map(str, words), "--port", "0"], env=env)
        self.log: list[str] = []
        self._reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self._reader.start()
        line = self.process.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+) ", line)
        assert found, (line, self.log)
        self.port = int(found[1])

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """Return a connection from an address of this machine."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE, (source, 0))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        source: str = "127.0.0.1",
        **headers: str,
    ) -> Answer:
        """Send a request over a new connection; a body that is not bytes is sent as JSON."""
        with self.connect(source) as connection:
            connection.sendall(make_request(method, path, body, Connection="close", **headers))
            return read_answer(connection, method)

    def wait_for_log(self, text: str, *, count: int = 1) -> None:
        """Wait until as many lines of the log have a text."""
        deadline = monotonic() + PATIENCE
        while sum(text in line for line in list(self.log)) < count:
            assert monotonic() < deadline, self.log
            sleep(0.05)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()


def make_request(method: str, path: str, body: Any = None, **headers: str) -> bytes:
    """Return the bytes of a request; `Content_Type` stands for Content-Type."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Host": "localhost"}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + (b"" if body is None else content)


def read_answer(connection: socket.socket, method: str = "GET") -> Answer:
    """Read one response that has a Content-Length."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65_536)
        if not part:
            raise ConnectionError(received)
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    size = int(headers.get("content-length", 0)) if method != "HEAD" else 0
    while len(body) < size:
        part = connection.recv(65_536)
        if not part:
            raise ConnectionError(received)
        body += part
    return Answer(int(status.split()[1]), headers, body)
