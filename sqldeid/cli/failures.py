"""What a failure prints, writes and exits with: one line, the contract's code, never a traceback unasked."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

import click

from sqldeid.cli.streams import STDOUT, close_streams
from sqldeid.errors import Interrupted, JobError, SqldeidError

BROKEN_PIPE = 1


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
    """Print an error, write it where `--json` says, and give the exit code."""
    from sqldeid.cli.files import write_error

    message = error.message
    say(f"{message[:1].upper()}{message[1:]}" if isinstance(error, Interrupted) else f"Error: {message}")
    if target is not None and error.key not in ("--json", STDOUT):
        try:
            write_error(target, error)
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
    from sqldeid.report.text import plain

    try:
        sys.stderr.write(plain(text, lines=True) + "\n")
        sys.stderr.flush()
    except OSError:
        close_streams()


def report_internal(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None, *, verbose: bool, target: str | None
) -> None:
    """A bug: its type alone, since its text may hold data; with -v also where it happened."""
    if verbose:
        sys.stderr.writelines(traceback.format_tb(trace))
    report(
        SqldeidError(
            f"internal error ({kind.__module__}.{kind.__qualname__}); please report it, with -v for the place"
        ),
        target,
    )
