"""Errors of requests that are not admitted, or not finished."""

from __future__ import annotations

from attendo.core.errors import AttendoError
from attendo.core.message import message


class QueueFullError(AttendoError):
    """The queue is full, or the server is shutting down."""

    def __init__(self, reason: str = "too many requests in the queue") -> None:
        super().__init__(reason, hint="try again in a moment")


class DeadlineExceededError(AttendoError):
    """A request was not finished by its deadline."""

    def __init__(self, timeout: float) -> None:
        super().__init__(
            message("not finished within {seconds} seconds", seconds=f"{timeout:g}"),
            hint="send a smaller request",
        )


class AbandonedError(BaseException):
    """Nobody waits for a computation any more; raised inside of it, at a checkpoint."""
