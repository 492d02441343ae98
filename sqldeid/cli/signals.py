"""SIGTERM and SIGHUP end a run as Ctrl-C does, so that what was staged or spilled is removed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

AGAIN = 0.05
"""Seconds after which a Ctrl-C that Python dropped is sent once more."""

ONCE = 2.0
"""Seconds in which further signals are the same wish: a terminal that closes sends SIGHUP more than once."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the main thread on SIGTERM and SIGHUP; one that is ignored (nohup) stays so.

    One that Python drops, for it comes where nothing can be raised, is raised a little later.
    """
    last, again = -ONCE, list[threading.Timer]()

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal last
        before, last = last, monotonic()
        if last - before >= ONCE:
            raise KeyboardInterrupt

    def hear_again(dropped: sys.UnraisableHookArgs) -> None:
        """Where nothing can be raised (a callback of C, an object's end) Python prints Ctrl-C, and goes on."""
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            timer = threading.Timer(AGAIN, _interrupt)
            timer.daemon = True
            timer.start()
            again.append(timer)
        else:
            said(dropped)

    known = [s for name in ("SIGTERM", "SIGHUP") if (s := getattr(signal, name, None)) is not None]
    ours = [s for s in known if signal.getsignal(s) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []
    for s in ours:
        signal.signal(s, stop)
    said, sys.unraisablehook = sys.unraisablehook, hear_again
    try:
        yield
    finally:
        sys.unraisablehook = said
        for timer in again:  # nobody would hear it any more
            timer.cancel()
        for s in ours:
            signal.signal(s, signal.SIG_DFL)


def _interrupt() -> None:
    """Send Ctrl-C to the main thread, which may be waiting for another one: only its own signal wakes it up."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
