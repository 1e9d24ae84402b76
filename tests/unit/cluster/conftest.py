from __future__ import annotations

from support.object_store import bucket, object_store_address
from support.uppercase_model import uppercaser

__all__ = ["bucket", "object_store_address", "uppercaser"]
