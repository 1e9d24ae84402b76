"""How much one request may ask for in all, so that it can be finished before its deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.message import message
from attendo.serving.limits import TooLargeError
from attendo.serving.served_model import count_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.serving.config import ServeConfig


def check_budget(
    texts: Sequence[str],
    config: ServeConfig,
    options: Mapping[str, Any] | None = None,
    *,
    num_steps: int = 1,
) -> None:
    """Raise an error if the texts of a request are too long in all.

    A character counts once at the default beam size of the server, and more often with a larger
    beam, more samples or constraints, and once per model that translates it.
    """
    num_characters = sum(map(len, texts))
    rows = num_steps * count_rows({"beam_size": config.beam_size, **(options or {})})
    factor = max(1.0, rows / config.beam_size)
    most = config.max_request_characters
    if num_characters * factor <= most:
        return
    reason = (
        message(
            "the request has {count} characters in all, at most {most} allowed",
            count=num_characters,
            most=most,
        )
        if factor == 1.0
        else message(
            "the request has {count} characters in all, at most {most} allowed with {rows} "
            "hypotheses per sentence",
            count=num_characters,
            most=int(most / factor),
            rows=rows,
        )
    )
    raise TooLargeError(reason, hint="send the texts in several requests")
