"""`sqldeid hierarchy list|show|check|build`: on a file, on a shipped hierarchy, or on a table's column."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.streams import in_utf8
from sqldeid.cli.targets import CSV, check_output, is_stdout, is_stream, refuse_kind, write_text
from sqldeid.errors import HierarchyError, JobError
from sqldeid.report.hierarchies import print_paths, print_report, print_shipped, print_values
from sqldeid.report.terminal import print_commands
from sqldeid.report.text import count, plain, put

if TYPE_CHECKING:
    import pyarrow as pa

    from sqldeid.hierarchy import Hierarchy, HierarchyReport, HierarchySource
    from sqldeid.insight.columns import ColumnValues

SHOWN = 20
"""Leaves that `show` prints unless -v asks for all."""


def _column(run: Callable[..., None]) -> Callable[..., None]:
    """The options that name a table's column."""
    run = click.option("--column", metavar="C", help="The column.")(run)
    run = click.option("--table", metavar="T", help="Its table, as schema.table.")(run)
    return click.option("--db", "database", metavar="DB", help="Database that holds the column's values.")(run)


@click.group()
def hierarchy() -> None:
    """Look at generalisation hierarchies, check them, and build them."""


@hierarchy.command("list", epilog=examples("sqldeid hierarchy list"))
@common
def list_command(common: Common) -> None:
    """List the hierarchies that come with the program, each with its levels or with what becomes of one value."""
    if common.quiet:
        return
    from sqldeid.hierarchy import open_source, shipped, shipped_maps

    sources = [open_source(name, Path()) for name in shipped()]
    steps = [source.level_names if source.data_derived else _one_path(source) for source in sources]
    print_shipped({s.name: own for s, own in zip(sources, steps, strict=True)}, shipped_maps(), common.screen())
    print_commands([("sqldeid hierarchy show adult/age", "what becomes of each value")], common.screen())


def _one_path(source: HierarchySource) -> tuple[str | None, ...]:
    """What becomes of one of its values, of those in the middle: the first ones are NULL, or as young as nobody is."""
    from sqldeid.hierarchy import paths

    bound = _bind(source.bind, None, "refuse")
    return next(islice(paths(bound), bound.leaves // 2, None))


@hierarchy.command(
    epilog=examples(
        "sqldeid hierarchy show adult/education",
        "sqldeid hierarchy show country.csv -v",
        "sqldeid hierarchy show icd9/diagnoses --db mimic.duckdb --table mimiciii.diagnoses_icd --column icd9_code",
    )
)
@click.argument("name", metavar="FILE-OR-NAME")
@_column
@common
def show(common: Common, name: str, database: str | None, table: str | None, column: str | None) -> None:
    """Print the levels of a hierarchy and what becomes of its values."""
    from sqldeid.hierarchy import open_source, paths, refuse_header

    values = _values(common, database, table, column)
    source = open_source(name, Path())
    given, numeric = _taken(values)
    refuse_header(source, given, numeric=numeric, called=column)
    found = _check(name, values, column)
    if common.quiet:
        return
    to = common.screen()
    print_report(found, to)
    if source.data_derived and values is None:
        to.print()
        put(to, "Its leaves are the values of a column; to see them, add --db, --table and --column.")
        return
    bound = _bind(source.bind, values, "top")
    print_paths(paths(bound) if common.verbose else islice(paths(bound), SHOWN), bound.leaves, to)


@hierarchy.command(
    "check",
    epilog=examples(
        "sqldeid hierarchy check country.csv",
        "sqldeid hierarchy check country.csv --db hospital.duckdb --table main.patients --column country",
        "sqldeid hierarchy check country.csv --db hospital.duckdb --table main.patients --column country --uncovered",
    ),
)
@click.argument("name", metavar="FILE-OR-NAME")
@_column
@click.option("--uncovered", is_flag=True, help="Print the column's values that it does not cover: they are your data.")
@common
def check_command(
    common: Common, name: str, database: str | None, table: str | None, column: str | None, uncovered: bool
) -> None:
    """Check that a hierarchy nests, and covers the values of a column. Exit code 2 if not."""
    values = _values(common, database, table, column)
    if uncovered and values is None:
        raise JobError("--uncovered looks at a column's values; add --db, --table and --column", key="db")
    found = _check(name, values, column)
    if not common.quiet:
        print_report(found, common.screen())
        if uncovered and found.uncovered and values is not None:
            from sqldeid.hierarchy import not_covered

            print_values(not_covered(name, Path(), values.values, numeric=values.numeric).to_pylist(), common.screen())
    if found.problems:
        listed = "" if uncovered or not found.uncovered else "; --uncovered lists what it does not cover"
        raise HierarchyError("\n".join(found.problems) + listed)


@hierarchy.command(
    epilog=examples(
        "sqldeid hierarchy build bands=5,10,20 -o age.csv --db hospital.duckdb --table main.patients --column age",
        "sqldeid hierarchy build dates=month,year -o born.csv --db hospital.duckdb --table main.patients --column born",
        "sqldeid hierarchy build '{ edges = [[50, 60, 70], [60]], tails = true }' -o weight.csv --db …",
    )
)
@click.argument("spec")
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="The hierarchy file (CSV) to write; - is standard output."
)
@_column
@common
def build(common: Common, spec: str, output: str, database: str | None, table: str | None, column: str | None) -> None:
    """Build a hierarchy over a column's values and write it as a file, to be edited and named in a job.

    SPEC is a rule as in a job (bands=5,10,20; mask=1,2; keep_first=3,1; dates=month,year; suppress; or a TOML table),
    or a shipped hierarchy's name.
    """
    from sqldeid.hierarchy import open_source, refuse_header

    if not is_stdout(output):
        check_output("-o", output)
    if os.path.lexists(output) and not is_stream(output):
        raise JobError(f"-o: {output} exists already; remove it, or name another file", key="output")
    refuse_kind("-o", output, CSV)
    source = open_source(rule(spec), Path())
    values = _values(common, database, table, column)
    if values is None and source.data_derived:
        raise JobError("the rule needs a column's values; add --db, --table and --column", key="db")
    given, numeric = _taken(values)
    refuse_header(source, given, numeric=numeric, called=column)
    bound = _bind(source.bind, values, "refuse")
    _write(bound, output)
    if not common.quiet:
        to = common.screen(output)
        shown = "standard output" if is_stdout(output) else plain(output)
        put(to, f"{shown}: {count(bound.leaves, 'leaf', 'leaves')}, {count(bound.height, 'level')}")
        if not is_stream(output):
            print_commands([(f"sqldeid hierarchy show {quote(shown)}", "what it does to its values")], to)


def _write(bound: Hierarchy, output: str) -> None:
    """Write the file; into a stream as the same bytes."""
    from sqldeid.hierarchy import as_csv, write_csv

    if not is_stream(output):
        write_csv(bound, Path(output))
        return
    text = as_csv(bound)
    if is_stdout(output):
        in_utf8()  # what is read back must be these bytes
    write_text(output, text)


def rule(spec: str) -> str | Mapping[str, object]:
    """A rule as the command line writes it, as a job's mapping; any other text is a name.

    ``bands=5,10`` is ``{"bands": [5, 10]}``, ``suppress`` is ``{"suppress": True}``, an inline TOML table is itself.

    Raises
    ------
    HierarchyError
        If it is not valid TOML.
    """
    if spec == "suppress":
        return {"suppress": True}
    key, equals, items = spec.partition("=")
    if spec.lstrip().startswith("{"):
        text = f"rule = {spec}"
    elif equals and "[" not in items:
        text = f"rule = {{ {key} = [{', '.join(_item(i) for i in items.split(','))}] }}"
    elif equals:
        text = f"rule = {{ {spec} }}"
    else:
        return spec
    try:
        found = tomllib.loads(text)["rule"]
    except tomllib.TOMLDecodeError:
        raise HierarchyError("the rule is not readable; write it like bands=5,10,20 or as a TOML table") from None
    return found if isinstance(found, Mapping) else spec


def _item(text: str) -> str:
    item = text.strip()
    try:
        float(item)
    except ValueError:
        return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return item


def _values(common: Common, database: str | None, table: str | None, column: str | None) -> ColumnValues | None:
    """The column's values; None where no column was named."""
    if database is None and table is None and column is None:
        return None
    if database is None or table is None or column is None:
        raise JobError("--db, --table and --column belong together; give all three", key="db")
    from sqldeid.insight.columns import read_values
    from sqldeid.run import reading

    with reading(database, Path(database), common.settings) as engine:
        return read_values(table, column, engine)


def _taken(values: ColumnValues | None) -> tuple[pa.Array | None, bool]:
    return (None, False) if values is None else (values.values, values.numeric)


def _bind(bind: Callable[..., Hierarchy], values: ColumnValues | None, uncovered: str) -> Hierarchy:
    import pyarrow as pa

    given, numeric = _taken(values)
    return bind(pa.array([], pa.string()) if given is None else given, numeric=numeric, uncovered=uncovered)


def _check(name: str, values: ColumnValues | None, column: str | None) -> HierarchyReport:
    from sqldeid.hierarchy import check

    given, numeric = _taken(values)
    return check(name, Path(), given, numeric=numeric, called=column)
