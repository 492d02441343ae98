"""Short steps that Ctrl-C, SIGTERM and SIGHUP do not cut in two: publishing, and clearing up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_HELD = tuple(s for name in ("SIGINT", "SIGTERM", "SIGHUP") if (s := getattr(signal, name, None)) is not None)


@contextmanager
def undisturbed() -> Iterator[list[int]]:
    """Hold back these signals, where this is the main thread; the list has those that came.

    Signals that end the process at once, or that are ignored, stay as they are.
    """
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    before = {s: signal.getsignal(s) for s in _HELD} if threading.current_thread() is threading.main_thread() else {}
    ours = {s: handler for s, handler in before.items() if callable(handler)}
    for s in ours:
        signal.signal(s, note)
    try:
        yield came
    finally:
        for s, handler in ours.items():
            signal.signal(s, handler)


@contextmanager
def in_one_go() -> Iterator[None]:
    """Hold back these signals, and stop after the step where one came.

    Raises
    ------
    KeyboardInterrupt
        After the step, where one came and nothing else stopped it.
    """
    with undisturbed() as came:
        yield
    if came:
        raise KeyboardInterrupt
