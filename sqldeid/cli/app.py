"""The program `sqldeid`: its commands, and what becomes of every way to fail."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from types import TracebackType
from typing import NoReturn, cast

import click
from click.shell_completion import CompletionItem

from sqldeid.cli import missing
from sqldeid.cli.failures import (
    done_by,
    json_target,
    report,
    report_internal,
    report_usage,
)
from sqldeid.cli.options import VERSION, examples
from sqldeid.cli.streams import close_streams, guarded
from sqldeid.errors import EngineError, Interrupted, SqldeidError

COMMANDS = {
    "anonymize": ("releases", "Make the releases of a job: all of them, verified, or none."),
    "assess": ("releases", "Count class sizes and re-identification risk of the source, or of what was released."),
    "completion": ("completion", "Print the script by which a shell completes commands, options and files."),
    "demo": ("demo", "Write a demo database and its job file."),
    "doctor": ("doctor", "Look whether the program, its engines and its surroundings work here, and say what to mend."),
    "evaluate": (
        "evaluate",
        "Train a classifier on the release and on the originals, and test both on rows that neither has seen.",
    ),
    "evidence": ("evidence", "Gather what a run rests on in an archive for whoever must judge it, or check one."),
    "explore": ("explore", "Count how many persons sets of columns, sequences or texts single out."),
    "hierarchy": ("hierarchy", "Look at generalisation hierarchies, check them, and build them."),
    "import-arx": ("imports", "Take a project of ARX as a job, with its data and hierarchies."),
    "init": ("init", "Profile a table and print a commented job that runs as it is."),
    "privacy": ("privacy", "Choose parameters of differentially private releases; measure what shifted dates tell."),
    "report": ("reports", "Write the report of a run again, from its result; no database is opened."),
    "schema": ("schema", "Print the JSON schema of the job file, for editors."),
    "tradeoff": (
        "tradeoff",
        "Find the least loss for every pair of k and suppression limit, from one reading of the source.",
    ),
    "verify": (
        "releases",
        "Check published releases again, against job and source, and with SQL that shares nothing with the search.",
    ),
}
"""Of each command its module in `sqldeid.cli` and its line of the help, the first sentence of its docstring."""


_UNASKED = object()
"""What the program's context holds where neither help nor a completion was asked for: nothing is made for them."""


class Commands(click.Group):
    """The commands, each loaded when it is asked for; the help shows their lines without loading any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """By name, as the help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded now; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"sqldeid.cli.{COMMANDS[cmd_name][0]}")
        command = cast(click.Command, getattr(module, cmd_name.replace("-", "_")))
        if ctx.find_root().obj is _UNASKED:
            return command
        from sqldeid.cli.manual import completed

        return completed(command, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, without loading any; options as click does."""
        named = [CompletionItem(n, help=line) for n, (_, line) in COMMANDS.items() if n.startswith(incomplete)]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; of an unknown name the commands that are spelt alike are told, which click looks for in vain.

        Raises
        ------
        UsageError
            For a name that no command has.
        """
        near = get_close_matches(args[0], COMMANDS)
        if args[0] not in COMMANDS and near:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, near))}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lines as click does, of commands that are named and not loaded."""
        room = formatter.width - 6 - max(map(len, COMMANDS))
        lines = [(name, click.Command(name, help=line)) for name, (_, line) in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(room)) for name, command in lines])


@click.group(
    cls=Commands,
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
        asked = None if {"-h", "--help"} & {*arguments} or "_SQLDEID_COMPLETE" in os.environ else _UNASKED
        ended = cli.main(arguments, prog_name="sqldeid", standalone_mode=False, obj=asked)
        sys.stdout.flush()
        return ended if isinstance(ended, int) else 0  # click returns the code of an `Exit` that a command raises
    except SqldeidError as error:
        return report(error, target)
    except click.ClickException as error:
        return report_usage(error, target)
    except (KeyboardInterrupt, click.Abort):
        return report(Interrupted("interrupted; nothing was published"), target)
    except click.exceptions.Exit as done:
        return done.exit_code
    except ModuleNotFoundError as error:
        if (said := missing(error)) is None:
            raise
        return report(EngineError(f"{said}{done_by(error)}"), target)
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
