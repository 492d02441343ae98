"""The program `sqldeid`: its commands, and what becomes of every way to fail."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

import click

from sqldeid.cli.demo import demo
from sqldeid.cli.evaluate import evaluate
from sqldeid.cli.explore import explore
from sqldeid.cli.failures import (
    json_target,
    report,
    report_internal,
    report_usage,
)
from sqldeid.cli.hierarchy import hierarchy
from sqldeid.cli.init import init
from sqldeid.cli.options import VERSION, examples
from sqldeid.cli.privacy import privacy
from sqldeid.cli.releases import anonymize, assess, verify
from sqldeid.cli.reports import report as report_command
from sqldeid.cli.schema import schema
from sqldeid.cli.streams import close_streams, guarded
from sqldeid.cli.tradeoff import tradeoff
from sqldeid.errors import Interrupted, SqldeidError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "sqldeid demo adult demo.duckdb",
        "sqldeid anonymize demo.duckdb --job demo.job.toml --plan",
        "sqldeid anonymize demo.duckdb --job demo.job.toml",
        "sqldeid verify demo.duckdb --job demo.job.toml",
    ),
)
@VERSION
def cli() -> None:
    """De-identify health data inside the database that holds it.

    A job file says what is released and under which criteria. Of all generalisations that meet them, the one that
    loses least is found, written, verified against the source, and only then published.
    """


for command in (  # in the order of use; the help lists them by name
    demo,
    init,
    explore,
    anonymize,
    assess,
    verify,
    evaluate,
    tradeoff,
    report_command,
    hierarchy,
    privacy,
    schema,
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit.

    Exit codes: 0 done, 1 engine or internal error, 2 what the user can mend, 3 no admissible solution,
    4 verification failed, 130 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    target = json_target(given)
    sys.excepthook = functools.partial(_hook, given, target)
    with guarded():
        sys.exit(_run(given, target))


def _run(arguments: list[str], target: str | None) -> int:
    try:
        cli.main(arguments, prog_name="sqldeid", standalone_mode=False)
        sys.stdout.flush()
    except SqldeidError as error:
        return report(error, target)
    except click.ClickException as error:
        return report_usage(error, target)
    except (KeyboardInterrupt, click.Abort):
        return report(Interrupted("interrupted; nothing was published"), target)
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:  # of a pipe that an option names, when all is done but to write there
        close_streams()
    return 0


def _hook(
    arguments: list[str],
    target: str | None,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    verbose = any(a == "--verbose" or (a.startswith("-") and a[1:2] != "-" and "v" in a) for a in arguments)
    report_internal(kind, error, trace, verbose=verbose, target=target)
