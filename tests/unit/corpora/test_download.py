from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest

from attendo.core.errors import InputError
from attendo.corpora import download
from attendo.corpora.download import FetchError, MissingRemoteError, RetryPolicy

if TYPE_CHECKING:
    from pathlib import Path

QUICK = RetryPolicy(max_attempts=3, initial_delay=0.0, timeout=5.0)
BIG = os.urandom(300_000)


def get(server: Any, folder: Path, **options: object) -> bytes:
    """Download /big."""
    partial = folder / ".big.partial"
    download.download(f"{server.url}/big", partial, **{"retry": QUICK, **options})
    return partial.read_bytes()


def test_a_cut_download_continues_where_it_stopped(server, tmp_path):
    server.files["/big"] = BIG
    server.faults = ["cut", "cut"]
    assert get(server, tmp_path) == BIG
    assert [asked for _, asked in server.requests] == [None, "bytes=150000-", "bytes=225000-"]


def test_a_later_run_continues_too(server, tmp_path):
    server.files["/big"] = BIG
    server.faults = ["cut"]
    with pytest.raises(FetchError, match=r"closed after 150,000 of 300,000[\s\S]*it will resume"):
        get(server, tmp_path, retry=RetryPolicy(max_attempts=1))
    assert get(server, tmp_path) == BIG
    assert server.requests[-1] == ("/big", "bytes=150000-")
    assert [path.name for path in tmp_path.iterdir()] == [".big.partial"]


def test_a_file_that_changed_meanwhile_is_not_mixed(server, tmp_path):
    server.files["/big"] = BIG
    server.faults = ["cut"]
    with pytest.raises(FetchError):
        get(server, tmp_path, retry=RetryPolicy(max_attempts=1))
    server.files["/big"] = BIG[::-1]
    assert get(server, tmp_path) == BIG[::-1]


def test_a_partial_file_of_another_address_is_not_used(server, tmp_path):
    server.files["/big"] = BIG
    (tmp_path / ".big.partial").write_bytes(b"something else")
    version = f'http://127.0.0.1/other\n"{hashlib.sha256(BIG).hexdigest()[:8]}"'
    (tmp_path / ".big.partial.version").write_text(version)
    assert get(server, tmp_path) == BIG


def test_a_file_without_a_version_starts_again(server, tmp_path):
    server.has_versions = False
    server.files["/big"] = BIG
    server.faults = ["cut"]
    assert get(server, tmp_path) == BIG
    assert [asked for _, asked in server.requests] == [None, None]


def test_a_download_that_was_whole_already_is_taken(server, tmp_path):
    server.files["/big"] = BIG
    (tmp_path / ".big.partial").write_bytes(BIG)
    version = f'{server.url}/big\n"{hashlib.sha256(BIG).hexdigest()[:8]}"'
    (tmp_path / ".big.partial.version").write_text(version)
    assert get(server, tmp_path) == BIG
    (tmp_path / ".big.partial").write_bytes(BIG + b"x")
    (tmp_path / ".big.partial.version").write_text(version)
    assert get(server, tmp_path) == BIG


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.files["/big"] = BIG
    server.faults = [503, 429]
    assert get(server, tmp_path) == BIG
    assert len(server.requests) == 3


def test_pauses_grow(monkeypatch):
    pauses = []
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    for failures in (1, 2, 3):
        RetryPolicy(initial_delay=0.5).sleep(failures)
    assert pauses == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(("code", "kind"), [(404, MissingRemoteError), (403, FetchError)])
def test_a_final_answer_is_not_asked_for_twice(server, tmp_path, code, kind):
    server.faults = [code] * 3
    with pytest.raises(kind, match=str(code)):
        get(server, tmp_path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("directory", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
def test_only_http_is_followed(server, tmp_path, directory):
    server.faults = [directory]
    server.files["/big"] = BIG
    with pytest.raises(FetchError):
        get(server, tmp_path)
    with pytest.raises(InputError, match="is not a URL"):
        download.download(directory, tmp_path / "x")
    assert not (tmp_path / ".big.partial").exists()


def test_a_redirect_within_http_is_followed(server, tmp_path):
    server.files = {"/big": b"old", "/new": BIG}
    server.faults = [f"{server.url}/new"]
    assert get(server, tmp_path) == BIG


@pytest.mark.parametrize("has_lengths", [True, False])
def test_a_file_that_is_too_large_is_rejected(server, tmp_path, has_lengths):
    server.has_lengths = has_lengths
    server.files["/big"] = BIG
    assert get(server, tmp_path, max_bytes=300_000) == BIG
    (tmp_path / ".big.partial").unlink()
    with pytest.raises(FetchError, match="larger than the expected 299,999 bytes"):
        get(server, tmp_path, max_bytes=299_999)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_reported_before_anything_is_written(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "RESERVED_BYTES", 2**62)
    server.files["/big"] = BIG
    with pytest.raises(FetchError, match=r"needs 300,000 bytes[\s\S]*free some space"):
        get(server, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_redirect_never_gives_up_encryption():
    request = download.Request("https://127.0.0.1/x")
    redirects = download._SafeRedirectHandler()
    with pytest.raises(FetchError, match="redirects to http://"):
        redirects.redirect_request(request, None, 302, "", {}, "http://127.0.0.1/x")
    followed = redirects.redirect_request(request, None, 302, "", {}, "https://127.0.0.1/y")
    assert followed.full_url == "https://127.0.0.1/y"
