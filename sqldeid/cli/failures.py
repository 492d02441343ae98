"""What a failure prints, writes and exits with: one line, the contract's code, never a traceback unasked."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

import click

from sqldeid.cli.streams import STDOUT, close_streams
from sqldeid.errors import EngineError, Interrupted, JobError, SqldeidError

_OF_A_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.ENOMEM)
_OF_A_NAME = (errno.ENAMETOOLONG, errno.ELOOP)
LEAST_BYTES = 2 << 30
"""Addresses without which DuckDB, Arrow and their threads cannot begin."""


def json_target(arguments: Sequence[str]) -> str | None:
    """What `--json` names, read before click has: a usage error is written there, too."""
    for i, argument in enumerate(arguments):
        if argument == "--":
            return None
        if argument == "--json" and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith("--json="):
            return argument.removeprefix("--json=")
    return None


def report(error: SqldeidError, target: str | None) -> int:
    """Print an error, write it where `--json` says (or beside what must stay there), and give the exit code."""
    from sqldeid.cli.files import write_error

    message = error.message
    say(f"{message[:1].upper()}{message[1:]}" if isinstance(error, Interrupted) else f"Error: {message}")
    if target is not None and error.key not in ("--json", STDOUT):
        try:
            aside = write_error(target, error)
            if aside:
                say(f"Note: {target} holds an earlier release's result and stays; this failure is in {aside}")
        except BrokenPipeError:
            pass  # nobody is there to be told
        except SqldeidError as second:
            if second.message not in message:
                say(f"Error: --json: {second.message}")
    close_streams()
    return error.code


def report_usage(error: click.ClickException, target: str | None) -> int:
    """The same for what click refuses; it knows the usage line. A group without a command shows its help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.message, err=True)
        return JobError.code
    if isinstance(error, click.UsageError) and error.ctx is not None:
        say(error.ctx.get_usage())
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "sqldeid"
    message = error.format_message()
    end = "" if message.endswith((".", "?")) else "."
    return report(JobError(f"{message}{end} See {command} --help", key="arguments"), target)


def say(text: str) -> None:
    """Print to standard error, with control characters written out; its reader may be gone, or the terminal."""
    try:
        from sqldeid.report.text import plain

        text = plain(text, lines=True)
    except ModuleNotFoundError:  # of rich, which is then what is said
        text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        close_streams()


def of_the_machine(error: BaseException) -> EngineError | None:
    """What a limit of the process, or a disk, is the cause of; None for what may be a bug."""
    if isinstance(error, MemoryError):
        return EngineError("there is no more memory for this process; free some, or raise its limit (ulimit -v)")
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return EngineError("the system gives this process no more threads; raise its limits (ulimit -u, ulimit -v)")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return EngineError("this process may not open more files; raise its limit (ulimit -n)")
    if isinstance(error, OSError) and error.errno in _OF_A_DISK:
        place = f"{error.filename}: " if error.filename is not None else ""
        return EngineError(f"{place}the system cannot write or read there ({error.strerror})")
    if isinstance(error, OSError) and error.errno in _OF_A_NAME:
        return EngineError(f"the system does not take a path that was given ({error.strerror}); name another")
    return None


def refuse_little_memory() -> None:
    """Refuse a limit under which the libraries would abort the process in the midst of a run.

    Raises
    ------
    EngineError
        If it is as low.
    """
    if sys.platform == "win32":
        return
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed != resource.RLIM_INFINITY and allowed < LEAST_BYTES:
        raise EngineError(
            f"this process may have {allowed >> 20} MB of addresses (ulimit -v); the database needs "
            f"{LEAST_BYTES >> 20} MB"
        )


PUBLISHED = "the releases were published"
WRITTEN = "what --json names stands already"
"""Notes on an error that is a bug: what was done by then (`BaseException.add_note`)."""


def done_by(error: BaseException) -> str:
    """What is said after an error that came when the releases were published already."""
    return f"; {PUBLISHED}" if PUBLISHED in getattr(error, "__notes__", ()) else ""


def report_internal(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None, *, verbose: bool, target: str | None
) -> None:
    """What the machine refuses; else a bug: its type alone, since its text may hold data; with -v also the place.

    Where it happened after the releases were published the message says so, and a result that was written stays.
    """
    notes = getattr(error, "__notes__", ())
    done, key = done_by(error), "--json" if WRITTEN in notes else ""
    if (refused := of_the_machine(error)) is not None:
        report(EngineError(f"{refused.message}{done}", key=key or refused.key), target)
        return
    if verbose:
        sys.stderr.writelines(traceback.format_tb(trace))
    report(
        SqldeidError(
            f"internal error ({kind.__module__}.{kind.__qualname__}); please report it, with -v for the place{done}",
            key=key,
        ),
        target,
    )
