"""Limits of the server on what one request may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.serving.config import ServeConfig


SIZES = ("texts", "characters", "bytes", "rows")
"""Limits on what is sent; the others are on what is asked for."""


class TooLargeError(InputError):
    """A request with more text than the server accepts."""


def check_limits(limits: dict[str, tuple[int, int]]) -> None:
    """Raise an error that names every exceeded limit; `limits` maps a name to (value, maximum)."""
    exceeded = [
        message(
            "{what}: {count}, at most {limit} allowed", what=message(what), count=count, limit=limit
        )
        for what, (count, limit) in limits.items()
        if count > limit
    ]
    if exceeded:
        is_size = any(what in SIZES and count > limit for what, (count, limit) in limits.items())
        kind = TooLargeError if is_size else InputError
        raise kind(join_messages("; ", exceeded), hint="send a smaller request")


def check_texts(texts: Sequence[str], config: ServeConfig, *, num_texts: int = 1) -> None:
    """Raise an error if there are too many texts, or one of them is too long."""
    check_limits(
        {
            "texts": (num_texts, config.max_texts),
            "characters": (max(map(len, texts), default=0), config.max_characters),
        }
    )
