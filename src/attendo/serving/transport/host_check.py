"""The Host header of a request: a server on a loopback address answers only to its own names.

A page of another site can point its own name at 127.0.0.1 (DNS rebinding). The browser then treats
this server as part of that site, and only the Host header shows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attendo.serving.config import ServeConfig

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
ANY = "*"
HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^:\[\]@/]+))(?::\d*)?")


def allowed_hosts(config: ServeConfig) -> frozenset[str] | None:
    """Return the names that requests may address; None if all are allowed."""
    if ANY in config.hosts or (config.is_public and not config.hosts):
        return None
    names = (*LOOPBACK_NAMES, config.host, *config.hosts)
    return frozenset(host_name(f"[{name}]" if name.count(":") > 1 else name) for name in names)


def host_name(header: str) -> str:
    """Return the name in a Host header, without port; a header that is not a host is returned.

    >>> host_name("LocalHost:8765"), host_name("[::1]:80"), host_name("example.org.")
    ('localhost', '::1', 'example.org')
    >>> host_name("localhost:80@example.org"), host_name("[::1]example.org")
    ('localhost:80@example.org', '[::1]example.org')
    """
    header = header.strip().lower()
    found = HOST.fullmatch(header)
    if found is None:
        return header
    return (found["address"] or found["name"]).removesuffix(".")
