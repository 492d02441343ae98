"""Small files that a user names: read whole, but never without an end, as a device or a pipe may have none."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST = 1 << 30
"""Bytes of a file, where nothing less is said."""
MOST_STREAMED = 1 << 26
"""Bytes of what is no regular file: a pipe, a terminal, a device."""


def read_limited(path: Path, most: int = MOST) -> bytes:
    """The content of a file.

    Parameters
    ----------
    most
        Bytes that it may have; what is no regular file at most 64 MB.

    Raises
    ------
    OSError
        If it cannot be read, or is larger; the text says which.
    """
    with path.open("rb") as file:
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        wanted = most if regular else min(most, MOST_STREAMED)
        content = file.read(wanted + 1)
    if len(content) > wanted:
        raise OSError(errno.EFBIG, f"it is larger than {wanted >> 20} MB, or has no end")
    return content
