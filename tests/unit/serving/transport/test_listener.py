"""The listening socket and the limit of open files."""

from __future__ import annotations

import pytest

from attendo.serving.transport.listener import RESERVED_FILES, format_address, raise_file_limit

resource = pytest.importorskip("resource")


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one(monkeypatch):
    """Found in review: at the usual 1,024 files idle connections stopped the server."""
    limits = [(1024, 65_536)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    assert raise_file_limit() == 65_536 - RESERVED_FILES
    assert limits[-1] == (65_536, 65_536)


def test_a_limit_that_cannot_be_raised_leaves_space_for_other_files(monkeypatch):
    def refuse(_, _limit):
        raise OSError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 200))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_file_limit() == 50


def test_the_address_of_a_public_server_can_be_opened_in_a_browser():
    assert format_address("0.0.0.0", 9119) == "http://127.0.0.1:9119"  # noqa: S104
