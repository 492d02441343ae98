"""The process of the program: what holds for all of it, and how it ends."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from sqldeid.cli import main

_OBJECTS = 250_000
"""New objects between two looks for circles among them: a run makes few, and Python's 700 cost a tenth of its time.

A short run makes 150,000, most of them by its imports; to look through these three times took a thirtieth of it.
"""


class _End:
    """Leaves the process when all that was to be done at its end is done.

    Taking the interpreter apart frees memory that the system takes back anyway, and takes 0.2 s of a short run. What
    was registered before, say by a profiler, would come after it: then Python ends as it does.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        before: Callable[[], int] = getattr(atexit, "_ncallbacks", lambda: 1)
        if not before():
            atexit.register(self._leave)  # the first that is registered comes last

    def _leave(self) -> None:
        if self.code is None:  # it ends by an exception or a signal, of which Python makes the exit code
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # closed, or without a reader: Python says what there is to say
            return
        os._exit(self.code)


def program() -> NoReturn:
    """Run the program as a process of its own, and end it."""
    gc.set_threshold(_OBJECTS, 10, 10)
    # pydantic looks through every package that is installed for plug-ins of its own: the job needs none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    end = _End()
    try:
        main()
    except SystemExit as left:
        end.code = left.code if isinstance(left.code, int) else None
        raise
