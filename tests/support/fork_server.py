"""Run `attendo` in processes of their own without importing PyTorch anew for each of them.

`ForkServer` starts one process that imports PyTorch and Attendo and then waits. For each command it
forks: the child has its own standard streams, environment, working directory and signal handlers,
and can be killed like any other process. `ForkedProcess` has the part of `subprocess.Popen`'s
interface that the tests use.

The server forks before any thread has started, and with one thread per process (`OMP_NUM_THREADS`).
All children share the server's hash seed and import-time state. Tests of the start-up itself
(what is imported, `python -m attendo`, variables read while importing) need real processes.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_REQUEST_BYTES = 1 << 20
NUM_DESCRIPTORS = 3  # stdout, stderr, status
PRELOADED = (
    "torch",
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.utils.tensorboard",
    "sacrebleu",
    "uvicorn",
    "attendo.cli.main",
    "attendo.cli.train",
    "attendo.cli.evaluate",
    "attendo.cli.serve",
    "attendo.serving.app",
    "attendo.tasks.run",
    "attendo.tasks.translation.task",
    "attendo.training.distributed",
)


class SignalAt(NamedTuple):
    """Let a command send itself a signal at an exact moment, before one of its file operations.

    `event` is one of Python's audit events ("open", "os.rename", "os.mkdir", ...), `pattern` is
    matched with the path (`fnmatch`), and `count` says which of the matching events it is.
    """

    event: str
    pattern: str
    count: int = 1
    number: int = signal.SIGKILL


# -- the tests' side


class ForkedProcess:
    """A command that the fork server runs: `subprocess.Popen` as far as the tests need it."""

    def __init__(self, stdout: int, stderr: int | None, status: int) -> None:
        self.stdout: IO[str] = os.fdopen(stdout, encoding="utf-8")
        self.stderr: IO[str] | None = (
            None if stderr is None else os.fdopen(stderr, encoding="utf-8")
        )
        self.returncode: int | None = None
        self._status = status
        self._unread = b""
        while b"\n" not in self._unread:
            part = os.read(status, 64)
            if not part:
                raise RuntimeError("the fork server ended")
            self._unread += part
        first, _, self._unread = self._unread.partition(b"\n")
        self.pid = int(first)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._read_status(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        code = self._read_status(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("attendo", timeout or 0.0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both streams to their end and wait for the process."""
        deadline = None if timeout is None else time.monotonic() + timeout
        streams = [stream for stream in (self.stdout, self.stderr) if stream is not None]
        unread = {stream.fileno(): stream for stream in streams if not stream.closed}
        texts = dict.fromkeys(unread, b"")
        while unread:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select(list(unread), [], [], left)
            if not ready:
                raise subprocess.TimeoutExpired("attendo", timeout or 0.0)
            for number in ready:
                part = os.read(number, 1 << 16)
                texts[number] += part
                if not part:
                    unread.pop(number)
        self.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        found = [
            "" if stream is None or stream.closed else texts[stream.fileno()].decode()
            for stream in (self.stdout, self.stderr)
        ]
        for stream in streams:
            stream.close()
        return found[0], found[1]

    def send_signal(self, number: int) -> None:
        """Send a signal to the process if it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _read_status(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            part = os.read(self._status, 64)
            while part:
                self._unread += part
                part = os.read(self._status, 64)
            os.close(self._status)
            if not self._unread:
                raise RuntimeError("the fork server ended")
            self.returncode = int(self._unread)
        return self.returncode


class ForkServer:
    """A process that has imported everything, and forks once per command."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def start(
        self,
        arguments: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        max_file_bytes: int | None = None,
        signal_at: SignalAt | None = None,
        merge_stderr: bool = False,
        code: str | None = None,
    ) -> ForkedProcess:
        """Start `attendo` with these arguments, or Python code that finds them in `sys.argv`.

        `env` is added to the test's own environment.
        """
        request = {
            "arguments": [str(word) for word in arguments],
            "env": {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
            "cwd": str(cwd or Path.cwd()),
            "max_file_bytes": max_file_bytes,
            "signal_at": signal_at,
            "code": code,
        }
        stdout_reader, stdout_writer = os.pipe()
        stderr_reader, stderr_writer = (None, stdout_writer) if merge_stderr else os.pipe()
        status_reader, status_writer = os.pipe()
        numbers = array.array("i", [stdout_writer, stderr_writer, status_writer])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)]
        self._socket.sendmsg([json.dumps(request).encode()], rights)
        for number in {stdout_writer, stderr_writer, status_writer}:
            os.close(number)
        return ForkedProcess(stdout_reader, stderr_reader, status_reader)

    def run(
        self, arguments: Sequence[str | Path], *, timeout: float = 600.0, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run `attendo` to its end, like `subprocess.run` with captured text output."""
        process = self.start(arguments, **options)
        try:
            stdout, stderr = process.communicate(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(list(arguments), process.wait(), stdout, stderr)

    def close(self) -> None:
        """End the server, and with it every command that still runs."""
        self._socket.close()
        self._process.wait()


# -- the server's side


def serve(connection: socket.socket) -> None:
    """Fork once per request until the tests close the connection."""
    reports: dict[int, int] = {}
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([connection, wake_reader], [], [])
        if wake_reader in ready:
            os.read(wake_reader, 4096)
            report_ended(reports)
        if connection in ready:
            request, numbers = receive(connection)
            if not request:
                break
            stdout, stderr, status = numbers
            pid = os.fork()
            if not pid:
                for number in (connection.fileno(), wake_reader, wake_writer, status):
                    os.close(number)
                for number in reports.values():
                    os.close(number)
                become_command(json.loads(request), stdout, stderr)
            os.close(stdout)
            os.close(stderr)
            os.write(status, f"{pid}\n".encode())
            reports[pid] = status
    for pid in reports:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def report_ended(reports: dict[int, int]) -> None:
    """Tell the tests the exit code of each child that has ended."""
    for pid, report in list(reports.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with contextlib.suppress(BrokenPipeError):
                os.write(report, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(report)
            del reports[pid]


def receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Return a request and its file descriptors."""
    numbers = array.array("i")
    space = socket.CMSG_SPACE(NUM_DESCRIPTORS * numbers.itemsize)
    request, rights, _, _ = connection.recvmsg(MAX_REQUEST_BYTES, space)
    for _, _, data in rights:
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return request, list(numbers)


def become_command(request: dict[str, Any], stdout: int, stderr: int) -> None:
    """Be the command in a fresh child: its streams, environment and signals. Never returns."""
    import resource

    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.close(stdout)
        if stderr != stdout:
            os.close(stderr)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        limit = request["max_file_bytes"]
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if request["signal_at"] is not None:
            send_signal_at(SignalAt(*request["signal_at"]))
        sys.argv = ["attendo", *request["arguments"]]
        code = call_command(request["code"])
    finally:
        finish(code)


def send_signal_at(moment: SignalAt) -> None:
    """Send the signal to this process at its moment."""
    num_left = moment.count

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal num_left
        if event != moment.event or not isinstance(arguments[0], str | os.PathLike):
            return
        if fnmatch(os.fspath(arguments[0]), moment.pattern):
            num_left -= 1
            if num_left == 0:
                os.kill(os.getpid(), moment.number)

    sys.addaudithook(hook)


def call_command(code: str | None) -> int:
    """Run the command line or some code and return the exit code, as the interpreter would."""
    from attendo.cli.main import run

    try:
        if code is None:
            run()
        else:
            exec(code, {"__name__": "__main__"})  # noqa: S102 - the tests' own
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def finish(code: int) -> None:
    """End the child as the interpreter ends: threads, exit functions, streams."""
    import atexit
    import threading

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = code or 120
    finally:
        os._exit(code)


def main() -> None:
    """Import what commands need, then serve."""
    from importlib import import_module

    # PYTHONPATH may name the sources; this script's own folder is no place for imports.
    sys.path.pop(0)
    for name in PRELOADED:
        import_module(name)
    import threading

    tasks = Path("/proc/self/task")  # counts threads that Python did not start, too
    num_threads = len(list(tasks.iterdir())) if tasks.is_dir() else threading.active_count()
    if num_threads > 1:
        raise SystemExit(f"the fork server has {num_threads} threads: forking is not safe")
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
