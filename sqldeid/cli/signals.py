"""SIGTERM and SIGHUP end a run as Ctrl-C does, so that what was staged or spilled is removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

ONCE = 2.0
"""Seconds in which further signals are the same wish: a terminal that closes sends SIGHUP more than once."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the main thread on SIGTERM and SIGHUP; one that is ignored (nohup) stays so."""
    last = -ONCE

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal last
        before, last = last, monotonic()
        if last - before >= ONCE:
            raise KeyboardInterrupt

    known = [s for name in ("SIGTERM", "SIGHUP") if (s := getattr(signal, name, None)) is not None]
    ours = [s for s in known if signal.getsignal(s) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []
    for s in ours:
        signal.signal(s, stop)
    try:
        yield
    finally:
        for s in ours:
            signal.signal(s, signal.SIG_DFL)
