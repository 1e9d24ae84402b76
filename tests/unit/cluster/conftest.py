from __future__ import annotations

from support.uppercase_model import uppercaser

__all__ = ["uppercaser"]
