"""The listening socket: its options, its address, and how it is closed without losing a request."""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.serving.config import ServeConfig

UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - a lookup
"""Addresses that mean every interface, and one at which a browser reaches them."""
RESERVED_FILES = 128
"""Open files besides connections: models, logs, threads."""
SO_ATTACH_FILTER = 26
"""Linux: a packet filter (BPF) on a socket."""
FLAGS_OFFSET, SYN, SYN_ACK = 13, 0x02, 0x12
"""Position of the flags in a TCP header, and the flags of a connection request."""
LOAD_BYTE, AND, JUMP_EQUAL, RETURN = 0x30, 0x54, 0x15, 0x06
"""Instructions of classic BPF."""


def open_socket(config: ServeConfig) -> socket.socket:
    """Bind the address, or raise an `InputError`."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on connections whose protocol is named; they inherit it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
    except OSError as error:
        listener.close()
        reason = message(
            "cannot listen on {host} port {port}: {detail}",
            host=config.host,
            port=config.port,
            detail=error.strerror or error,
        )
        raise InputError(
            reason, hint="choose another --port (0 picks a free one) or --host"
        ) from None
    listener.set_inheritable(True)
    return listener


def format_address(host: str, port: int) -> str:
    """Return a URL that a browser on this machine can open.

    >>> format_address("127.0.0.1", 8765), format_address("::", 80)
    ('http://127.0.0.1:8765', 'http://[::1]:80')
    """
    reachable = UNSPECIFIED.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def raise_file_limit() -> int:
    """Raise the soft limit of open files to the hard one; return how many connections fit."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    return max(files - RESERVED_FILES, files // 2, 1)


def block_new_connections(listener: socket.socket) -> None:
    """Ignore new connection requests; those whose handshake has begun still get through.

    The system would accept connections until the socket is closed, and reset those that no process
    has taken. Only Linux can do this; elsewhere nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    instructions = [
        (LOAD_BYTE, 0, 0, FLAGS_OFFSET),
        (AND, 0, 0, SYN_ACK),
        (JUMP_EQUAL, 0, 1, SYN),
        (RETURN, 0, 0, 0),  # drop the packet
        (RETURN, 0, 0, 0xFFFFFFFF),
    ]
    program = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    )
    pointer = struct.pack("HP", len(instructions), ctypes.addressof(program))
    with suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, pointer)


def accept_waiting(listener: socket.socket) -> list[socket.socket]:
    """Return the connections that the system has accepted for this socket, without waiting."""
    listener.setblocking(False)
    connections: list[socket.socket] = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            connections.append(connection)
    return connections
