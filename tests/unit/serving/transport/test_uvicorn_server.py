"""The server over real sockets, in this process."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from attendo.serving.app import create_app
from attendo.serving.transport import authorization, connection_table, protocol, uvicorn_server
from attendo.serving.transport.listener import accept_waiting, block_new_connections, open_socket
from attendo.serving.transport.uvicorn_server import HttpServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE = 120.0
BODY = json.dumps({"text": "hallo"}).encode()
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = POST + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY


class Running:
    """A server on a free port."""

    def __init__(self, server: HttpServer, listener: socket.socket) -> None:
        self.server, self.listener = server, listener
        self.port = listener.getsockname()[1]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, raw: bytes) -> bytes:
        """Send bytes, and read until the server closes the connection."""
        reader, writer = await self.connect()
        writer.write(raw)
        received = await reader.read()
        writer.close()
        return received


@pytest.fixture
def run_server(make_service):
    """Run a scenario against a server; settings as for `ServeConfig`."""

    @asynccontextmanager
    async def start(**settings: Any) -> AsyncIterator[Running]:
        service = make_service(port=0, log_requests=False, batch_wait_ms=0, **settings)
        listener = open_socket(service.config)
        server = HttpServer(create_app(service.config, service), service.config)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[listener])
        try:
            yield Running(server, listener)
        finally:
            server.force_exit = True
            for connection in list(server.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)
            await server.lifespan.shutdown()
            for one in server.servers:
                one.close()
            listener.close()

    def run(scenario: Any, **settings: Any) -> None:
        async def main() -> None:
            async with asyncio.timeout(PATIENCE), start(**settings) as running:
                await scenario(running)

        asyncio.run(main())

    return run


def test_accepted_connections_do_not_delay_small_packets(make_service):
    """Found in review: answers on kept-alive connections were 40 ms late."""
    delays: list[int] = []

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            accepted = transport.get_extra_info("socket")
            delays.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def run() -> None:
        listener = open_socket(make_service(port=0).config)
        server = await asyncio.get_running_loop().create_server(Protocol, sock=listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        assert await reader.read() == b""
        writer.close()
        server.close()

    asyncio.run(run())
    assert delays != []
    assert all(delays)


def test_a_connection_without_a_request_is_closed(run_server):
    async def scenario(running: Running) -> None:
        assert await running.exchange(b"") == b""
        received = await running.exchange(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert received.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in received.lower()

    run_server(scenario, head_timeout=0.5)  # time enough for what is sent at once


def test_a_kept_connection_with_a_slow_second_head_is_closed(run_server):
    async def scenario(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(GET)
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        writer.write(b"GET /heal")
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()

    run_server(scenario, head_timeout=0.5)  # time enough for what is sent at once


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 5000 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000, b"431"),
        (GET[:-2] + b"X: " + b"a" * 33_000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"a" * 33_000 + GET[11:], b"431"),
        (CHUNKED + b"1\r\na\r\n" * 5000, b"400"),
        (GET * 200, b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (GET.replace(b"Host: localhost\r\n", b""), b"400"),
        (GET.replace(b"Host:", b"Host: evil.example\r\nHost:"), b"400"),
    ],
    ids=[
        "headers",
        "head",
        "whole head",
        "address",
        "tiny chunks",
        "pipelined",
        "not http",
        "no host",
        "two hosts",
    ],
)
def test_a_request_that_costs_too_much_is_rejected_as_json(run_server, raw, status):
    async def scenario(running: Running) -> None:
        received = await running.exchange(raw)
        last = received.rpartition(b"HTTP/1.1 ")[2]
        assert last.startswith(status)
        assert set(json.loads(last.partition(b"\r\n\r\n")[2])) == {"error"}

    run_server(scenario)


@pytest.mark.parametrize(
    ("raw", "status", "timeout"),
    [
        (CHUNKED + b"2000\r\n" + b"a" * 0x2000 + b"\r\n", b"413", PATIENCE),
        (POST + b"Content-Length: 9000\r\n\r\n" + b"a" * 8000, b"413", PATIENCE),
        (POST + b"Content-Length: 100\r\n\r\n" + b"a" * 10, b"408", 0.5),
    ],
    ids=["chunked", "length", "slow"],
)
def test_a_rejected_body_ends_the_connection(run_server, monkeypatch, raw, status, timeout):
    monkeypatch.setattr("attendo.serving.transport.request_body.DISCARD_SECONDS", 0.05)

    async def scenario(running: Running) -> None:
        received = await running.exchange(raw)
        assert received.startswith(b"HTTP/1.1 " + status)
        assert b"connection: close" in received.lower()
        assert received.endswith(b"}")

    run_server(scenario, max_body_bytes=4096, max_file_bytes=1024, timeout=timeout)


def test_endless_bodies_that_are_sent_again_and_again_are_not_read(run_server, monkeypatch):
    """They kept the event loop busy: each was read to the limit, and discarded to the limit."""
    monkeypatch.setattr(authorization, "REJECTIONS_PER_MINUTE", 2)
    monkeypatch.setattr(authorization, "REJECTION_SECONDS", 0.01)
    discarded = []

    async def discard(*_: Any, **__: Any) -> None:
        discarded.append(True)

    monkeypatch.setattr("attendo.serving.transport.middleware.discard_body", discard)

    async def scenario(running: Running) -> None:
        for _ in range(5):
            received = await running.exchange(POST + b"Content-Length: 9000\r\n\r\n")
            assert received.startswith(b"HTTP/1.1 413")
            assert received.endswith(b"}")
        assert len(discarded) == 2

    run_server(scenario, max_body_bytes=4096, max_file_bytes=1024)


def test_what_is_rejected_again_and_again_is_not_read(run_server, monkeypatch):
    """Four clients with bodies of tiny chunks kept the event loop busy."""
    monkeypatch.setattr(connection_table, "REFUSALS_PER_MINUTE", 2)
    monkeypatch.setattr(protocol, "DISCARD_SECONDS", 0.2)
    received = []
    receive = protocol.HttpProtocol.data_received

    def count(protocol: Any, data: bytes) -> None:
        if protocol._is_refused:
            received.append(len(data))
        receive(protocol, data)

    monkeypatch.setattr(protocol.HttpProtocol, "data_received", count)

    async def send(running: Running) -> int:
        received.clear()
        reader, writer = await running.connect()
        writer.write(b"?\r\n\r\n")
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 400")
        writer.write(b"a" * 1000)
        async with asyncio.timeout(PATIENCE):
            while len(running.server.table):
                await asyncio.sleep(0.01)
        writer.close()
        return sum(received)

    async def scenario(running: Running) -> None:
        assert [await send(running) for _ in range(4)] == [1000, 1000, 0, 0]

    run_server(scenario)


def test_trailers_are_no_headers(run_server):
    """Found in review: fields after a body in the same packet were taken for headers."""

    async def scenario(running: Running) -> None:
        chunks = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n"
        closing = CHUNKED.replace(b"Host:", b"Connection: close\r\nHost:")
        received = await running.exchange(closing + chunks + b"Content-Encoding: gzip\r\n\r\n")
        assert received.startswith(b"HTTP/1.1 200 ")

    run_server(scenario)


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_request_to_upgrade_is_answered_with_its_body(run_server, is_chunked):
    """Java's HttpClient asks for HTTP/2 in each request: its bodies were lost."""
    whole = WHOLE
    if is_chunked:
        whole = CHUNKED + f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n"
    whole = whole.replace(b"Host:", UPGRADE + b"Host:")

    async def scenario(running: Running) -> None:
        reader, writer = await running.connect()
        for part in (whole + whole, whole[:150], whole[150:-5], whole[-5:]):
            writer.write(part)
            await asyncio.sleep(0.01)
        writer.write(GET.replace(b"1.1", b"1.0"))
        received = await reader.read()
        writer.close()
        assert received.count(b"HTTP/1.1 200 ") == 4
        assert received.count(b'"translations":[{"text":"HALLO"') == 3

    run_server(scenario)


@pytest.mark.parametrize("following", [b"?\r\n\r\n", GET * 30], ids=["not http", "too many"])
def test_a_response_is_whole_before_the_next_request_is_refused(run_server, shouter, following):
    """The error was written in the middle of the response, or instead of it."""

    async def scenario(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(WHOLE + following)
        while not shouter.has_started.is_set():
            await asyncio.sleep(0)
        shouter.may_go.set()
        received = await reader.read()
        writer.close()
        first, _, second = received.partition(b"}HTTP/1.1 ")
        assert first.startswith(b"HTTP/1.1 200 ")
        assert b"HALLO" in first
        assert second.startswith(b"400 ")
        assert received.endswith(b"}")

    shouter.may_go.clear()
    run_server(scenario)


def test_a_client_that_is_gone_is_noticed_if_it_has_sent_another_request(run_server, shouter):
    async def scenario(running: Running) -> None:
        _, writer = await running.connect()
        writer.write(WHOLE + GET)
        while not shouter.has_started.is_set():
            await asyncio.sleep(0)
        writer.transport.abort()
        while running.server.server_state.tasks:
            await asyncio.sleep(0.01)
        shouter.may_go.set()

    shouter.may_go.clear()
    run_server(scenario)


def test_stalled_bodies_yield_to_other_requests(run_server):
    """Found in review: the sum of bodies that were announced and not sent had no limit."""

    async def scenario(running: Running) -> None:
        stalled = [await running.connect() for _ in range(4)]
        for _, writer in stalled:
            writer.write(POST + b"Content-Length: 2000\r\n\r\n" + b"a" * 1500)
        refused = await stalled[0][0].read()
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in refused.lower()
        assert b"connection: close" in refused.lower()
        assert b"HALLO" in await running.exchange(WHOLE.replace(b"1.1", b"1.0"))
        for _, writer in stalled:
            writer.close()

    run_server(scenario, max_body_bytes=4096, max_file_bytes=1024, max_bodies_bytes=5000)


def test_a_client_that_stops_sending_gets_its_answer(run_server):
    async def scenario(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(WHOLE)
        writer.write_eof()
        assert b"HALLO" in await reader.read()
        writer.close()

    run_server(scenario)


def test_a_disconnected_client_is_noticed(run_server, shouter):
    async def scenario(running: Running) -> None:
        _, writer = await running.connect()
        shouter.may_go.clear()
        writer.write(WHOLE)
        while not shouter.has_started.is_set():
            await asyncio.sleep(0)
        writer.close()
        while running.server.server_state.connections:
            await asyncio.sleep(0.01)
        shouter.may_go.set()

    run_server(scenario)


def test_an_address_has_a_limit_and_idle_connections_yield(run_server):
    async def scenario(running: Running) -> None:
        idle = [await running.connect() for _ in range(5)]
        assert (await idle[0][0].read(), await idle[1][0].read()) == (b"", b"")
        assert len(running.server.table) == 3
        assert await running.exchange(GET.replace(b"1.1", b"1.0")) != b""
        for _, writer in idle:
            writer.close()

    run_server(scenario, max_connections_per_address=3, proxies="")


def test_all_connections_have_a_limit_and_requests_at_work_stay(run_server, shouter):
    async def scenario(running: Running) -> None:
        shouter.may_go.clear()
        busy = [await running.connect() for _ in range(2)]
        for _, writer in busy:
            writer.write(WHOLE)
        while len(running.server.server_state.tasks) < 2:
            await asyncio.sleep(0)
        refused = await running.exchange(b"")
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in refused.lower()
        shouter.may_go.set()
        for reader, writer in busy:
            await reader.readuntil(b"HALLO")
            writer.close()

    run_server(scenario, max_connections=2)


def test_the_end_loses_no_request(run_server, monkeypatch):
    """Found in review: at the end, kept-alive and just accepted connections were reset."""
    monkeypatch.setattr(uvicorn_server, "EXIT_SECONDS", 10 * PATIENCE)

    async def scenario(running: Running) -> None:
        running.server._captured_signals.append(signal.SIGTERM)
        reader, writer = await running.connect()
        writer.write(GET)
        assert b"connection: close" not in (await reader.readuntil(b"}")).lower()
        waiting = []
        for _ in range(5):  # the loop has no turn to accept these
            client = socket.create_connection(("127.0.0.1", running.port), PATIENCE)
            client.sendall(GET)
            waiting.append(client)
        ending = asyncio.ensure_future(running.server.shutdown([running.listener]))
        while not running.server._app.state.service.closing.is_set():
            await asyncio.sleep(0)
        writer.write(WHOLE)  # a request on a connection that was idle
        last = (await reader.read()).lower()
        assert b"connection: close" in last
        assert b"hallo" in last
        writer.close()
        await ending
        for client in waiting:
            client.settimeout(PATIENCE)
            assert b"connection: close" in client.recv(65_536).lower()
            client.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", running.port), PATIENCE)

    run_server(scenario)


def test_requests_that_outlast_the_grace_period_get_an_error(run_server, shouter, monkeypatch):
    monkeypatch.setattr(uvicorn_server, "HANDSHAKE_SECONDS", 0.0)
    monkeypatch.setattr(uvicorn_server, "EXIT_SECONDS", 10 * PATIENCE)

    async def scenario(running: Running) -> None:
        shouter.may_go.clear()
        asking = asyncio.ensure_future(running.exchange(WHOLE))
        while not shouter.has_started.is_set():
            await asyncio.sleep(0)
        ending = asyncio.ensure_future(running.server.shutdown([running.listener]))
        assert b"HTTP/1.1 503 " in await asking
        shouter.may_go.set()
        await ending

    run_server(scenario, grace=0.1)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
def test_a_hangup_looks_at_the_model_folders(run_server, monkeypatch):
    monkeypatch.setattr("attendo.serving.service.RELOAD_SECONDS", 0.0)

    async def scenario(running: Running) -> None:
        looks: list[int] = []
        registry = running.server._app.state.service.registry
        monkeypatch.setattr(registry, "reload_changed", lambda: looks.append(1))
        signal.raise_signal(signal.SIGHUP)
        while len(looks) < 2:
            await asyncio.sleep(0)
        assert b" 200 " in await running.exchange(GET.replace(b"1.1", b"1.0"))

    run_server(scenario)


def test_connections_that_were_started_are_taken_and_new_ones_wait(make_service):
    listener = open_socket(make_service(port=0).config)
    with listener:
        listener.listen(10)
        with socket.create_connection(listener.getsockname(), PATIENCE) as started:
            block_new_connections(listener)
            (accepted,) = accept_waiting(listener)
            started.sendall(b"x")
            accepted.setblocking(True)
            assert accepted.recv(1) == b"x"
            accepted.close()


def test_networks_are_trusted_by_address_name_or_all():
    def table(trusted: str) -> connection_table.ConnectionTable:
        limits = connection_table.ConnectionLimits(1, 1, 1.0, 1, trusted)
        return connection_table.ConnectionTable(limits)

    assert table("*")._is_trusted("192.0.2.1")
    assert table("a-name, 10.0.0.0/8")._is_trusted("10.1.2.3")
    assert not table("a-name, 10.0.0.0/8")._is_trusted("192.0.2.1")
    assert not table("")._is_trusted("a-name")
