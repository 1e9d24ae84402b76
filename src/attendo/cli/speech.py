"""Which language a verb speaks to people."""

from __future__ import annotations

import os
from typing import Literal

from attendo.core.errors import ConfigError, suggest

Lang = Literal["en", "ko"]


def choose_language(given: str | None) -> Lang:
    """Speak Korean where that is asked for, or where the system does."""
    if given is None:
        system = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
        return "ko" if system.startswith("ko") else "en"
    if given not in ("en", "ko"):
        raise ConfigError(f"no language '{given}'", remedy=suggest(given, ("en", "ko")))
    return "ko" if given == "ko" else "en"
