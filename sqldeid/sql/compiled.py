"""Templates as Python has compiled them, kept beside their sources, so that the next run need not parse them again."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, FileSystemBytecodeCache


class _Kept(FileSystemBytecodeCache):
    """Jinja's files of compiled templates; a file that cannot be read or written costs nothing but its time."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # noqa: BLE001 - a damaged file unpickles to anything; the source is compiled instead
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        try:
            super().dump_bytecode(bucket)
        except OSError:
            return  # a full disk, or a folder that somebody has just removed


class _Read(_Kept):
    """The same where nothing may be written: what another run has left there is read, as Python reads modules."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Nothing."""


def compiled_in(folder: Path, dialect: str, *makers: str) -> jinja2.BytecodeCache | None:
    """Where compiled templates of a folder are kept: in its `__pycache__`, as Python keeps modules, or nowhere.

    Nothing is written if Python is told to keep none (``PYTHONDONTWRITEBYTECODE``), or if the folder cannot be written;
    nor read where it is to keep them in another place. What is read there runs: it is guarded as the program's own
    modules are, by who may write its folder.

    Parameters
    ----------
    folder
        The templates' folder.
    dialect
        Engine of the environment, whose compiled templates are its own.
    makers
        Files of modules that take part in compiling, beside Jinja: a change to one leaves its older templates unread.
        (Jinja compares the source of each template itself.)
    """
    kept = folder / "__pycache__"
    if sys.pycache_prefix:
        return None
    try:
        if not sys.dont_write_bytecode and os.access(folder, os.W_OK):
            kept.mkdir(exist_ok=True)
        parts = [jinja2.__version__, str(sys.implementation.cache_tag), dialect]
        parts += [f"{name} {os.stat(name).st_mtime_ns}" for name in makers]
    except OSError:
        return None
    if not kept.is_dir():
        return None
    may_write = not sys.dont_write_bytecode and os.access(kept, os.W_OK)
    return (_Kept if may_write else _Read)(str(kept), f"{sha256('|'.join(parts).encode()).hexdigest()[:16]}-%s.jinja")
