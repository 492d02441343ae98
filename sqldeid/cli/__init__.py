"""The command line: click, thin. Every command is one library call; what it prints is made in `sqldeid.report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit; Ctrl-C is heard while it is still being loaded, too."""
    try:
        from sqldeid.cli import app
    except KeyboardInterrupt:
        sys.exit(130)
    app.main(arguments)


__all__ = ["main"]
