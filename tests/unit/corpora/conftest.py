from __future__ import annotations

from support.file_server import make_tar, make_zip, server

__all__ = ["make_tar", "make_zip", "server"]
