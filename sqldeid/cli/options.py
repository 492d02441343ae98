"""The options that every command has."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click

import sqldeid
from sqldeid.cli.failures import refuse_little_memory
from sqldeid.cli.targets import is_stdout
from sqldeid.cli.unloaded import without_pandas
from sqldeid.engine.settings import Settings
from sqldeid.errors import Interrupted, JobError, UncoveredError

if TYPE_CHECKING:
    from rich.console import Console


Value = TypeVar("Value", int, float)


@dataclass(frozen=True, slots=True)
class Common:
    """What every command is given.

    Parameters
    ----------
    settings
        How much of the machine a run may take.
    quiet, verbose
        Nothing but errors is printed; more than usual is.
    """

    settings: Settings
    quiet: bool
    verbose: bool

    def screen(self, *files: str | None) -> Console:
        """Where the summary goes: standard output, or standard error where one of the files is the former."""
        from sqldeid.report.text import console

        return console(sys.stderr if any(file is not None and is_stdout(file) for file in files) else sys.stdout)


MOST_THREADS = 1024
"""A slip of the finger, not a machine, has more; the database would start them all."""
VERSION = click.version_option(sqldeid.__version__, prog_name="sqldeid")
_OPTIONS = (
    click.option("--memory-limit", metavar="SIZE", help="Memory for the database, like 4GB."),
    click.option("--threads", type=click.IntRange(1, MOST_THREADS), metavar="N", help="Threads for the database."),
    click.option(
        "--temp-dir",
        type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
        metavar="FOLDER",
        help="Folder for spill files; they hold source values and are removed.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("-v", "--verbose", is_flag=True, help="Print steps, promises and details."),
    VERSION,
)


def _load_job() -> None:
    """Load the models of a job in one go: where pydantic compiles, it takes Ctrl-C for an error, or drops it."""
    from sqldeid.engine.undisturbed import in_one_go

    with in_one_go():
        import sqldeid.job  # noqa: F401


def common(run: Callable[..., None]) -> Callable[..., None]:
    """Add the options that every command has; the command takes them as one `Common`, first."""

    @functools.wraps(run)
    def packed(
        memory_limit: str | None, threads: int | None, temp_dir: Path | None, quiet: bool, verbose: bool, **rest: Any
    ) -> None:
        refuse_little_memory()
        settings = Settings(memory_limit, threads, temp_dir)
        try:
            if "database" in rest:
                without_pandas()  # imports Arrow: that takes a while
            if rest.get("job_file") is not None:
                _load_job()
        except KeyboardInterrupt:
            raise Interrupted("interrupted; nothing was published") from None
        try:
            run(Common(settings, quiet, verbose), **rest)
        except UncoveredError as error:  # its command can be run as it stands
            from sqldeid.engine.choosing import again

            error.message = error.message.replace(" --db DB ", f" --db {quote(again(str(rest.get('database'))))} ")
            raise

    found: Callable[..., None] = packed
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def numbers(option: str, text: str, kind: Callable[[str], Value], like: str) -> list[Value]:
    """The numbers of a list with commas; `like` is one that the option takes."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        wanted = "whole numbers" if kind is int else "numbers"
        shares = "; 5 % is written 0.05" if "%" in text else ""
        raise JobError.at(option, f"give {wanted} with commas between, like {option} {like}{shares}") from None
