from __future__ import annotations

from support.file_server import make_zip, server

__all__ = ["make_zip", "server"]
