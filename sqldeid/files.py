"""Files that a user names: their paths; small ones read whole, but never without an end, as a pipe may have none."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def without_parents(path: Path) -> Path:
    """A path that the system takes to the same place, without `..` where it can be: as people write it, for messages.

    The parent of a folder is the part before it; that of a link is the parent of where the link points. Where the
    system would go no further, since a part before `..` is missing, a file or closed to us, the path stays as it is.
    """
    found = Path(path.anchor)
    parts = path.parts[bool(path.anchor) :]
    for i, part in enumerate(parts):
        outside = found.name == ".." or found == Path()  # of a relative path, which may begin with it
        if part != ".." or outside:
            found /= part
        elif not os.path.isdir(found / part):  # asked with its `..`, so that the part before must be entered
            return Path(found, *parts[i:])
        else:
            found = (Path(os.path.realpath(found)) if os.path.islink(found) else found).parent
    return found


def read_json(content: bytes) -> Any:
    """What a file of JSON holds, if all who read it read the same.

    Raises
    ------
    ValueError
        If it is not JSON, or nested too deep; or if a key stands twice in an object, of which one reader takes the
        first and another the last.
    """
    try:
        return json.loads(content, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return made
