"""`sqldeid demo`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from sqldeid.cli.options import Common, common, examples
from sqldeid.cli.targets import DATABASE, refuse_kind
from sqldeid.engine.choosing import may_hold_secret
from sqldeid.report.terminal import print_commands
from sqldeid.report.text import facts, plain, print_table, put

if TYPE_CHECKING:
    from sqldeid.demo import Demo


def _a_file(_context: click.Context, _parameter: click.Parameter, path: Path) -> Path:
    """Refuse a server's address, and do not repeat it."""
    if not path.parent.exists() and may_hold_secret(str(path)):
        raise click.BadParameter("a demo is written to a DuckDB file, not to a server (what was given is not shown)")
    refuse_kind("PATH", str(path), DATABASE)
    return path


_PATH = click.argument("path", type=click.Path(path_type=Path), callback=_a_file)
_SEED = click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same data.")


@click.group()
def demo() -> None:
    """Write a demo database and its job file. The data is made; it is nobody's."""


@demo.command(epilog=examples("sqldeid demo adult demo.duckdb", "sqldeid demo adult big.duckdb --rows 1000000"))
@_PATH
@click.option("--rows", type=int, default=30_000, show_default=True, help="Persons, up to 1,000,000.")
@_SEED
@common
def adult(common: Common, path: Path, rows: int, seed: int) -> None:
    """A census of one table, in the shape of UCI Adult, written to PATH."""
    from sqldeid.demo import adult as make

    _print(make(path, rows, seed), common)


@demo.command(epilog=examples("sqldeid demo mimic mimic.duckdb", "sqldeid demo mimic big.duckdb --patients 100000"))
@_PATH
@click.option("--patients", type=int, default=300, show_default=True, help="Patients, up to 100,000.")
@_SEED
@common
def mimic(common: Common, path: Path, patients: int, seed: int) -> None:
    """A hospital of eight tables, in the shape of MIMIC-III, written to PATH."""
    from sqldeid.demo import mimic as make

    _print(make(path, patients, seed), common)


@demo.command(epilog=examples("sqldeid demo events events.duckdb"))
@_PATH
@click.option("--patients", type=int, default=4_370, show_default=True, help="Patients, up to 500,000.")
@_SEED
@common
def events(common: Common, path: Path, patients: int, seed: int) -> None:
    """Sequences of transfers and billed procedures, in the shape of MIMIC-III, written to PATH."""
    from sqldeid.demo import events as make

    _print(make(path, patients, seed), common)


_PERSONS = click.option("--persons", type=int, default=1_000, show_default=True, help="Persons, up to 100,000.")


@demo.command(epilog=examples("sqldeid demo omop omop.duckdb"))
@_PATH
@_PERSONS
@_SEED
@common
def omop(common: Common, path: Path, persons: int, seed: int) -> None:
    """A hospital of 39 tables, in the shape of OMOP CDM 5.4, written to PATH."""
    from sqldeid.demo import omop as make

    _print(make(path, persons, seed), common)


@demo.command(epilog=examples("sqldeid demo mimiciv mimiciv.duckdb"))
@_PATH
@_PERSONS
@_SEED
@common
def mimiciv(common: Common, path: Path, persons: int, seed: int) -> None:
    """Two schemas of 31 tables, in the shape of MIMIC-IV 3, written to PATH."""
    from sqldeid.demo import mimiciv as make

    _print(make(path, persons, seed), common)


@demo.command(epilog=examples("sqldeid demo eicu eicu.duckdb"))
@_PATH
@_PERSONS
@_SEED
@common
def eicu(common: Common, path: Path, persons: int, seed: int) -> None:
    """ICU stays in many hospitals, 31 tables in the shape of eICU-CRD 2.0, written to PATH."""
    from sqldeid.demo import eicu as make

    _print(make(path, persons, seed), common)


def _print(made: Demo, common: Common) -> None:
    if common.quiet:
        return
    to = common.screen()
    put(to, f"{plain(made.database)}: {made.notice}")
    full = [t for t in made.tables if t.rows]
    print_table(facts([(t.name, f"{t.rows:,} rows") for t in full]), to)
    if len(full) < len(made.tables):
        put(to, f"{len(made.tables) - len(full)} more tables of the schema are there, and empty.")
    if made.jobs:
        to.print()
        to.print("Next:")
    for job in made.jobs:
        given = f"{quote(plain(made.database))} --job {quote(plain(job))}"
        print_commands(
            [
                (f"sqldeid anonymize {given} --plan", "shows what would be done"),
                (f"sqldeid anonymize {given}", "does it"),
            ],
            to,
        )
    if made.preset is not None:
        to.print()
        to.print("Next:")
        given = f"sqldeid init {quote(plain(made.database))} --preset {made.preset} -o job.toml"
        print_commands([(given, "writes the job")], to)
