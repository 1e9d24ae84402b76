"""Logging: one named logger per module, silent until the application configures it.

A library should not write to the user's screen: Attendo logs through the standard `logging` tree
below "attendo". The command line calls `configure`; `ATTENDO_LOG=debug` raises the level anywhere.
"""

from __future__ import annotations

import logging
import os

from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message

ROOT = "attendo"
LEVELS = ("debug", "info", "warning", "error")


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a module, by its `__name__`."""
    return logging.getLogger(name if name.split(".")[0] == ROOT else f"{ROOT}.{name}")


def configure(level: str | None = None, *, handler: logging.Handler | None = None) -> None:
    """Show Attendo's log at `level`, ATTENDO_LOG or "info"; a second call replaces the first."""
    chosen = (level or os.environ.get("ATTENDO_LOG") or "info").lower()
    if chosen not in LEVELS:
        raise ConfigError(
            message("no log level '{chosen}'", chosen=chosen), hint=suggest(chosen, LEVELS)
        )
    root = logging.getLogger(ROOT)
    root.setLevel(chosen.upper())
    root.propagate = False
    if handler is None:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.handlers = [handler]
