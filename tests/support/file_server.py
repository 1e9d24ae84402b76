"""A local HTTP server that can fail on demand, and archives made by hand."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Server(ThreadingHTTPServer):
    """Files in a dict, with ranges and versions; `faults` are played once each, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.faults: list[int | str] = []
        self.requests: list[tuple[str, str | None]] = []
        self.has_versions = True
        self.has_lengths = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Range")))
        fault = self.server.faults.pop(0) if self.server.faults else None
        content = self.server.files.get(self.path)
        if isinstance(fault, int) or content is None:
            self.answer(fault or 404, {}, b"")
        elif fault is not None and fault != "cut":
            self.answer(302, {"Location": fault}, b"")
        else:
            self.send_file(content, is_cut=fault == "cut")

    def send_file(self, content: bytes, *, is_cut: bool) -> None:
        version = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        headers = {"ETag": version} if self.server.has_versions else {}
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        if self.headers.get("If-Range", version) != version:
            start = 0
        if start and start >= len(content):
            self.answer(416, {"Content-Range": f"bytes */{len(content)}"}, b"")
            return
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        if self.server.has_lengths:
            headers["Content-Length"] = str(len(body))
        self.answer(206 if start else 200, headers, body[: len(body) // 2] if is_cut else body)

    def answer(self, code: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def pack_zip(members: dict[str, bytes], *, link: str | None = None) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if name == link:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, content)
    return raw.getvalue()


def pack_tar(members: dict[str, bytes], *, link: str | None = None, mode: str = "w:gz") -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if name == link:
                info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/hostname", 0
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


@pytest.fixture
def make_zip():
    return pack_zip


@pytest.fixture
def make_tar():
    return pack_tar
