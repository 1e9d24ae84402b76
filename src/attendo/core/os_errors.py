"""What to do about a file that cannot be written, by the reason that the system gives."""

from __future__ import annotations

import errno
from types import MappingProxyType

NO_SPACE = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})
"""The disk is full, or a quota or a size limit is reached."""
SPACE_HINT = "free some disk space and run the same command again"
OTHER_HINT = "solve this problem, then run the same command again"
NO_PERMISSION = "check the permissions of this folder, or choose another one"
NOT_A_FOLDER = "a part of this path is a file, not a folder: choose another path"
NO_ANSWER = "check the disk or the network drive, then run the same command again"
HINTS = MappingProxyType(
    {
        errno.EROFS: "this disk is read-only: choose a folder on another one",
        errno.EACCES: NO_PERMISSION,
        errno.EPERM: NO_PERMISSION,
        errno.ENOTDIR: NOT_A_FOLDER,
        errno.EEXIST: NOT_A_FOLDER,
        errno.ENOENT: "this folder does not exist and cannot be created: choose another path",
        errno.ENAMETOOLONG: "choose a shorter path",
        errno.EIO: NO_ANSWER,
        getattr(errno, "ESTALE", errno.EIO): NO_ANSWER,
    }
)


def write_error_hint(error: OSError, *, space_hint: str = SPACE_HINT) -> str:
    """Return the hint for a file that could not be written; `space_hint` is for a full disk."""
    if error.errno in NO_SPACE:
        return space_hint
    return HINTS.get(error.errno or 0, OTHER_HINT)
