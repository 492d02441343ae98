"""The command line: click, thin. Every command is one library call; what it prints is made in `sqldeid.report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from sqldeid.cli.signals import stoppable


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit; Ctrl-C, SIGTERM and SIGHUP are heard while it is still being loaded, too."""
    with stoppable():
        try:
            from sqldeid.cli import app

            app.main(arguments)
        except KeyboardInterrupt:  # before a command began, or after it ended: what it did, it has said
            sys.stderr.write("Interrupted; nothing was published after what is said above\n")
            sys.exit(130)


__all__ = ["main"]
