"""Downloads one file over HTTP(S), resuming a partial download.

The bytes are written to a partial file; a second file stores the URL and the version (ETag or date)
that the server reported, so that a download resumes only if the remote file has not changed. A
failed connection is retried after growing delays, as long as attempts make progress.

This is hand-written because corpora have gigabytes: download libraries such as pooch do not resume
a partial file, nor limit its size or check the free disk space first.
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
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Report = Callable[[int, int | None], None]
    Progress = Callable[[str, int, int | None], None]

MAX_FILE_BYTES = 16 * 2**30
CHUNK_BYTES = 2**16
RESERVED_BYTES = 64 * 2**20
"""Disk space that must remain free after a download."""
USER_AGENT = "Mozilla/5.0 (compatible; Attendo; corpus download)"
RETRYABLE_STATUS = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Status codes of temporary errors."""


class FetchError(AttendoError):
    """A corpus could not be fetched; existing files are unchanged."""


class MissingRemoteError(FetchError):
    """The server or mirror does not have the file."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts without progress, and the delay and timeout in seconds."""

    max_attempts: int = 5
    initial_delay: float = 1.0
    timeout: float = 30.0

    def sleep(self, num_failures: int) -> None:
        """Sleep; the delay doubles with each failure."""
        time.sleep(self.initial_delay * 2 ** (num_failures - 1))


class _SafeRedirectHandler(HTTPRedirectHandler):
    """Follows redirects to HTTP(S) only, and never from HTTPS to HTTP."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        allowed = ("https",) if req.type == "https" else ("http", "https")
        if urlsplit(newurl).scheme not in allowed:
            raise FetchError(
                message("{url} redirects to {newurl}", url=req.full_url, newurl=newurl),
                hint="use another mirror",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    url: str,
    partial: Path,
    *,
    max_bytes: int = MAX_FILE_BYTES,
    retry: RetryPolicy | None = None,
    progress: Report | None = None,
) -> None:
    """Download a file, resuming at the end of `partial`.

    Args:
        url: An http or https URL.
        partial: The file to write; what it already contains is kept if the version matches.
        max_bytes: Maximum size of the file.
        retry: How often and after which delays to retry.
        progress: Called with the number of bytes so far, and the total if known.

    Raises:
        FetchError: If the download fails, is too large or does not fit on the disk.

    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(message("'{url}' is not a URL", url=url), hint="use http:// or https://")
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
                    message(
                        "cannot download {url}: {detail}", url=url, detail=_describe_error(error)
                    ),
                    hint="check the connection and run the command again, it will resume; "
                    "without a network, give a folder with --mirror",
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
                return  # the previous attempt was complete
        if error.code == 416:
            discard_partial(partial)
            raise ConnectionError("the remote file has changed") from None
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
    """Write the response to the file and yield the size after each chunk."""
    with partial.open("ab" if done else "wb") as file:
        while chunk := response.read(CHUNK_BYTES):
            try:
                file.write(chunk)
            except OSError as error:
                reason = message(
                    "cannot write {partial}: {detail}", partial=partial, detail=error.strerror
                )
                raise FetchError(reason, hint="free some space, or choose another folder") from None
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
    """Store the version of the file; if it is unknown, the next attempt starts over."""
    etag = response.headers.get("ETag", "")
    version = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    path = _version_path(partial)
    if version:
        path.write_text(f"{url}\n{version}", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def discard_partial(partial: Path) -> None:
    """Delete a partial file and its stored version."""
    partial.unlink(missing_ok=True)
    _version_path(partial).unlink(missing_ok=True)


def check_space(url: str, partial: Path, done: int, total: int | None, max_bytes: int) -> None:
    """Raise an error if a file exceeds the limit or, if its size is known, the free disk space."""
    if max(done, total or 0) > max_bytes:
        discard_partial(partial)
        raise FetchError(
            message(
                "{url} is larger than the expected {max_bytes:,} bytes",
                url=url,
                max_bytes=max_bytes,
            ),
            hint="the file may have changed; open the URL in a browser",
        )
    if total is not None:
        free = shutil.disk_usage(partial.parent).free
        if total - done + RESERVED_BYTES > free:
            raise FetchError(
                message(
                    "{url} needs {total:,} bytes, {parent} has {free:,} free",
                    url=url,
                    total=total - done,
                    parent=partial.parent,
                    free=free,
                ),
                hint="free some space, or choose another folder",
            )


def _raise_if_permanent(url: str, error: Exception) -> None:
    if not isinstance(error, HTTPError) or error.code in RETRYABLE_STATUS:
        return
    if error.code in (404, 410):
        raise MissingRemoteError(
            message("{url} does not exist ({code})", url=url, code=error.code),
            hint="it may have moved; use a mirror",
        ) from None
    raise FetchError(
        message("{url} returned {code} {reason}", url=url, code=error.code, reason=error.reason),
        hint="use a mirror, or download it manually",
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
