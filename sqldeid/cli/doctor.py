"""`sqldeid doctor`: whether the program works here. It loads nothing that may be missing before it has looked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby

import click

from sqldeid.cli.options import Common, common, examples
from sqldeid.errors import EngineError
from sqldeid.findings import FAIL, NOTE, OK, Looked

_MARKS = {OK: "ok", NOTE: "--", FAIL: "!!"}


@click.command(
    epilog=examples(
        "sqldeid doctor",
        "sqldeid doctor hospital.duckdb --job job.toml",
        "sqldeid doctor --json -",
    )
)
@click.argument("source", metavar="[DB]", required=False)
@click.option("--job", "job_file", metavar="FILE", help="A job: whether it is valid, and its target can be written.")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found as JSON; - is standard output.")
@common
def doctor(common: Common, source: str | None, job_file: str | None, json_file: str | None) -> None:
    """Look whether the program, its engines and its surroundings work here, and say what to mend.

    DB is opened for reading only, as by a run: its engine and the names of its tables are told, and nothing in them.
    A line marked ok works; one marked -- is needed by some runs alone; one marked !! by all. Exit code 0 if nothing is
    marked !!, else 1.
    """
    from sqldeid.cli.files import check_found
    from sqldeid.run.doctor import examine

    check_found("--json", json_file, [read for read in (source, job_file) if read is not None])
    found = examine(source, job_file, common.settings)
    if json_file is not None:
        _write(json_file, found)
    if not common.quiet and not (json_file is not None and _is_stdout(json_file)):
        _print(found)
    if bad := [one for one in found if one.state == FAIL]:
        # Not raised: what prints errors may be what is missing.
        click.echo(f"Error: sqldeid does not work here: {', '.join(one.name for one in bad)}", err=True)
        raise click.exceptions.Exit(EngineError.code)


def _is_stdout(target: str) -> bool:
    from sqldeid.cli.targets import is_stdout

    return is_stdout(target)


def _write(target: str, found: Sequence[Looked]) -> None:
    from sqldeid.cli.files import write_json

    write_json(target, {"audience": "no data values", "doctor": [one.to_dict() for one in found]})


def _print(found: Sequence[Looked]) -> None:
    """Line by line, without the library that may be missing."""
    width = max(len(one.name) for one in found if len(one.name) <= 24)
    for group, lines in groupby(found, key=lambda one: one.group):
        _line(f"{group}")
        for one in lines:
            _line(f"  {_MARKS[one.state]}  {one.name:<{width}}  {one.said}")
            if one.mend and one.state != OK:
                _line(f"      {'':<{width}}  -> {one.mend}")
    notes = sum(one.state == NOTE for one in found)
    core = "does not work" if any(one.state == FAIL for one in found) else "works"
    missing = f"; {notes} of what only some runs need {'is' if notes == 1 else 'are'} not there" if notes else ""
    _line(f"sqldeid {core} here{missing}")


def _line(text: str) -> None:
    """Print a line; what the terminal cannot show is written as escapes."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(shown.encode(encoding, "backslashreplace").decode(encoding))
