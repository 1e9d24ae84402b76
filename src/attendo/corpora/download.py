"""Download one file over HTTP(S), going on where an earlier attempt stopped.

The bytes go into a partial file; beside it lies the address and what the server said about the
version (its ETag or date), so that a download goes on only if the file there is still the same. A
connection that fails is tried again, after growing pauses, until it brings nothing new.
"""

from __future__ import annotations

import http.client
import re
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from attendo.core.errors import AttendoError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Report = Callable[[int, int | None], None]
    Progress = Callable[[str, int, int | None], None]

MAX_FILE_BYTES = 16 * 2**30
CHUNK_BYTES = 2**16
RESERVED_BYTES = 64 * 2**20
"""What must stay free on the disk after a download."""
USER_AGENT = "Mozilla/5.0 (compatible; Attendo; corpus download)"
RETRYABLE_STATUS = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Answers of a server that may be better a little later."""


class FetchError(AttendoError):
    """A corpus could not be fetched; nothing that was there before is lost."""


class MissingRemoteError(FetchError):
    """The server has no such file."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient a download is: attempts without any progress, pauses and time-outs in seconds."""

    max_attempts: int = 5
    initial_delay: float = 1.0
    timeout: float = 30.0

    def sleep(self, num_failures: int) -> None:
        """Wait twice as long after each failure."""
        time.sleep(self.initial_delay * 2 ** (num_failures - 1))


class _SafeRedirectHandler(HTTPRedirectHandler):
    """Follow a redirect to HTTP(S) only, and never from HTTPS to HTTP."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        allowed = ("https",) if req.type == "https" else ("http", "https")
        if urlsplit(newurl).scheme not in allowed:
            raise FetchError(f"{req.full_url} leads to {newurl}", hint="use another mirror")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    url: str,
    partial: Path,
    *,
    max_bytes: int = MAX_FILE_BYTES,
    retry: RetryPolicy | None = None,
    progress: Report | None = None,
) -> None:
    """Bring the file at `url` to `partial`, from where it ends.

    `progress` is called with the bytes that are here, and all of them where their number is known.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"'{url}' is no address", hint="use http:// or https://")
    retry, num_failures = retry or RetryPolicy(), 0
    while True:
        size_before = _file_size(partial)
        try:
            _download_once(url, partial, max_bytes, retry.timeout, progress)
        except (OSError, http.client.HTTPException) as error:
            _raise_if_permanent(url, error)
            num_failures = 1 if _file_size(partial) > size_before else num_failures + 1
            if num_failures >= retry.max_attempts:
                raise FetchError(
                    f"cannot fetch {url}: {_describe_error(error)}",
                    hint="check the connection and run the command again, it goes on from here; "
                    "without a network, name a folder with --mirror",
                ) from None
            retry.sleep(num_failures)
        else:
            _version_path(partial).unlink(missing_ok=True)
            return


def _download_once(
    url: str, partial: Path, max_bytes: int, timeout: float, progress: Report | None
) -> None:
    headers, start = _resume_headers(url, partial)
    request = Request(url, headers=headers)  # noqa: S310 - the scheme is checked
    try:
        response = build_opener(_SafeRedirectHandler).open(request, timeout=timeout)
    except HTTPError as error:
        with error:
            if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{start}":
                return  # the last attempt had come to the end
        if error.code == 416:
            discard_partial(partial)
            raise ConnectionError("the file there has changed") from None
        raise
    with response:
        start = start if response.status == 206 else 0
        if start and _range_start(response) != start:
            discard_partial(partial)
            raise ConnectionError("the server sent another part of the file")
        total = _total_bytes(response, start)
        check_space(url, partial, start, total, max_bytes)
        _save_version(url, response, partial)
        for done in _stream_to_file(response, partial, start):
            check_space(url, partial, done, None, max_bytes)
            if progress is not None:
                progress(done, total)
    if total is not None and _file_size(partial) != total:
        raise ConnectionError(
            f"the connection closed after {_file_size(partial):,} of {total:,} bytes"
        )


def _stream_to_file(response: Any, partial: Path, done: int) -> Iterator[int]:
    """Write what comes, and give the size so far after each piece."""
    with partial.open("ab" if done else "wb") as file:
        while chunk := response.read(CHUNK_BYTES):
            try:
                file.write(chunk)
            except OSError as error:
                reason = f"cannot write {partial}: {error.strerror}"
                raise FetchError(reason, hint="make room, or choose another folder") from None
            done += len(chunk)
            yield done


def _resume_headers(url: str, partial: Path) -> tuple[dict[str, str], int]:
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    version, start = _version_path(partial), _file_size(partial)
    saved_version = version.read_text(encoding="utf-8").splitlines() if version.exists() else []
    if not start or len(saved_version) != 2 or saved_version[0] != url:
        return headers, 0
    return headers | {"Range": f"bytes={start}-", "If-Range": saved_version[1]}, start


def _save_version(url: str, response: Any, partial: Path) -> None:
    """Remember the version of the file; without a sure sign of it the next attempt starts anew."""
    etag = response.headers.get("ETag", "")
    version = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    path = _version_path(partial)
    if version:
        path.write_text(f"{url}\n{version}", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def discard_partial(partial: Path) -> None:
    """Remove a partial file and what is known about it."""
    partial.unlink(missing_ok=True)
    _version_path(partial).unlink(missing_ok=True)


def check_space(url: str, partial: Path, done: int, total: int | None, max_bytes: int) -> None:
    """Refuse what is too large for the limit, or (when the size is known) for the disk."""
    if max(done, total or 0) > max_bytes:
        discard_partial(partial)
        raise FetchError(
            f"{url} is larger than the {max_bytes:,} bytes that are expected",
            hint="the address may have changed; look there with a browser",
        )
    if total is not None:
        free = shutil.disk_usage(partial.parent).free
        if total - done + RESERVED_BYTES > free:
            raise FetchError(
                f"{url} needs {total - done:,} bytes, {partial.parent} has {free:,} free",
                hint="make room, or choose another folder",
            )


def _raise_if_permanent(url: str, error: Exception) -> None:
    if not isinstance(error, HTTPError) or error.code in RETRYABLE_STATUS:
        return
    if error.code in (404, 410):
        raise MissingRemoteError(
            f"{url} does not exist ({error.code})", hint="it may have moved: use a mirror"
        ) from None
    raise FetchError(
        f"{url} answers {error.code} {error.reason}", hint="use a mirror, or fetch it by hand"
    ) from None


def _describe_error(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    return str(cause) or type(cause).__name__


def _range_start(response: Any) -> int | None:
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _total_bytes(response: Any, start: int) -> int | None:
    length = response.headers.get("Content-Length", "")
    return start + int(length) if length.isdecimal() else None


def _version_path(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.version")


def _file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
