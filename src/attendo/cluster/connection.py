"""Connects to a Ray cluster: one that runs already, or one on this machine."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL = "local"
PROBE_SECONDS = 10.0
DEFAULT_PORT = 6379
UNREACHABLE_HINT = (
    "check the address and that Ray runs there (`ray status`); "
    "`--cluster local` uses this machine alone"
)


class WorkerShape(NamedTuple):
    """What one worker occupies."""

    num_cpus: int
    num_gpus: int


def import_ray() -> Any:
    """Return the module `ray`; raise an error that names the extra if it is not installed."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "cluster") from None
    return ray


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to a cluster and yield the module `ray`; a connection that exists is used.

    Args:
        address: "auto" for the cluster of this machine (or RAY_ADDRESS), "local" to start one,
            HOST:PORT or ray://HOST:PORT.

    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    resolved = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    if resolved not in {"auto", LOCAL}:
        probe(resolved)
    options: dict[str, Any] = {"include_dashboard": False} if resolved == LOCAL else {}
    try:
        ray.init(
            address=resolved, log_to_driver=False, logging_level=logging.ERROR,
            configure_logging=False, **options,
        )  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise unreachable(resolved, str(error)) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def probe(address: str) -> None:
    """Raise an error unless something listens at an address: Ray itself waits for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:
        host, port = port, str(DEFAULT_PORT)
    if not port.isdigit():
        raise InputError(
            message("no cluster address '{address}'", address=address),
            hint="give auto, local, HOST:PORT or ray://HOST:PORT",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise unreachable(address, getattr(error, "strerror", None) or str(error)) from error


def unreachable(address: str, detail: str) -> AttendoError:
    """Return the error about a cluster that does not answer."""
    first = detail.strip().splitlines()[0] if detail.strip() else "no answer"
    return AttendoError(
        message("cannot reach the cluster {address}: {detail}", address=address, detail=first),
        hint=UNREACHABLE_HINT,
    )


def choose_shape(ray: Any, *, device: str | None, threads: int | None) -> WorkerShape:
    """Return what a worker occupies: a GPU if the cluster has any, or some cores."""
    wants_gpu = device is not None and device.startswith("cuda")
    has_gpu = ray.cluster_resources().get("GPU", 0) >= 1
    if wants_gpu or (device is None and has_gpu):
        return WorkerShape(threads or 1, 1)
    return WorkerShape(threads or 1, 0)


def count_workers(ray: Any, shape: WorkerShape) -> int:
    """Return how many workers the machines of the cluster have capacity for."""
    total = 0
    for node in ray.nodes():
        if node["Alive"]:
            count = int(node["Resources"].get("CPU", 0) // shape.num_cpus)
            if shape.num_gpus:
                count = min(count, int(node["Resources"].get("GPU", 0) // shape.num_gpus))
            total += count
    return total
