"""The command line: click, thin. Every command is one library call; what it prints is made in `sqldeid.report`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from sqldeid.cli.signals import stoppable


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit; Ctrl-C, SIGTERM and SIGHUP are heard while it is still being loaded, too."""
    with stoppable():
        try:
            _load()(arguments)
        except KeyboardInterrupt:  # before a command began, or after it ended: what it did, it has said
            sys.stderr.write("Interrupted; nothing was published after what is said above\n")
            sys.exit(130)


def _load() -> Callable[[Sequence[str] | None], NoReturn]:
    """The program. Without click not even `doctor` can be asked what is missing: it is said here."""
    try:
        from sqldeid.cli.app import main as started
    except ModuleNotFoundError as error:
        if (said := missing(error)) is None:
            raise
        sys.stderr.write(f"Error: {said}\n")
        sys.exit(1)
    return started


def missing(error: ModuleNotFoundError) -> str | None:
    """What is said of a package that is not there; None where it is a module of our own, which is a bug."""
    name = (error.name or "sqldeid").partition(".")[0]
    if name == "sqldeid":
        return None
    return (
        f"{name}, which every run needs, is not installed for {sys.executable}; {_install()}, and `sqldeid doctor` "
        "says what else is missing"
    )


def _install() -> str:
    """How the packages are installed that this one needs; by its name only where it is installed: no index has it."""
    root, pip = Path(__file__).resolve().parents[2], f"{shlex.quote(sys.executable)} -m pip install"
    if (root / "pyproject.toml").is_file():
        return f"run: {pip} -e {shlex.quote(str(root))}"
    from importlib.metadata import PackageNotFoundError, version

    try:
        version("sqldeid")
    except PackageNotFoundError:
        return f"run {pip} . in the folder of the repository"
    return f"run: {pip} sqldeid"


__all__ = ["main", "missing"]
