"""The table that is looked at: its columns, its persons, and the figures of groupings of its folded rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.catalogue.columns import no_column, with_one_zero
from sqldeid.catalogue.relations import parts_of
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.findings import BELOW, Uniqueness
from sqldeid.sql import column, identifier, render

ROWS_AT_ONCE, PERSONS_AT_ONCE = 16, 4
"""Groupings in one statement: more are no faster and need more memory at once (each holds its classes)."""

LIMITS = [{"below": n, "name": identifier(f"rows_{n}"), "persons": identifier(f"persons_{n}")} for n in BELOW]


@dataclass(frozen=True, slots=True)
class Source:
    """A table of the catalogue, and who its rows are about.

    Parameters
    ----------
    relation, label
        What statements read, and the name by which the user knows it.
    person
        The column whose distinct values are persons; None where every row is one.
    rows, persons
        Its size.
    """

    relation: exp.Expr
    label: str
    columns: tuple[Column, ...]
    person: Column | None
    rows: int
    persons: int

    @property
    def person_name(self) -> str | None:
        """The person column's name."""
        return self.person.name if self.person else None

    @property
    def person_column(self) -> exp.Column | None:
        """The person column, which every template finds in `s`."""
        return column(self.person.name, "s") if self.person else None

    def find(self, name: str, option: str) -> Column:
        """A column by its name, whatever its case.

        Raises
        ------
        JobError
            If there is none, or its values cannot be told apart.
        """
        return _find(self.columns, self.label, name, option)


@dataclass(frozen=True, slots=True)
class Arm:
    """One grouping: a folded table (its columns, `person` where rows share one, and `n`), and what to group it by."""

    columns: tuple[str, ...]
    folded: exp.Table
    parts: tuple[exp.Expr, ...]


def open_table(table: str, person: str | None, engine: Engine) -> Source:
    """Find a table and count its rows and persons. Cost: one scan of the person column.

    Raises
    ------
    JobError
        If there is no such table or column, the table is empty, or a row has no person.
    """
    relation = engine.resolve(parts_of(table, engine, "--table"), key="--table")
    columns = engine.columns(relation, key="--table")
    found = _find(columns, table, person, "--person") if person is not None else None
    key = column(found.name, "s") if found else None
    row = engine.row("tables/rows/check_person", source=relation, person=key)
    rows, keyed, persons = int(row["rows"]), int(row["keyed"]), int(row["persons"])
    if not rows:
        raise JobError.at("--table", f"{table} has no rows; there is nothing to look at")
    if keyed < rows:
        raise JobError.at("--person", f"{person} is NULL in {rows - keyed} rows of {table}; persons cannot be counted")
    return Source(relation, table, columns, found, rows, persons)


def _find(columns: Sequence[Column], label: str, name: str, option: str) -> Column:
    found = next((c for c in columns if c.name.casefold() == name.strip().casefold()), None)
    if found is None:
        raise no_column(columns, label, name.strip(), option)
    if found.kind == "other":
        raise JobError.at(
            option,
            f"values of type {found.shown_type} cannot be told apart; leave {found.name} out, or make a view "
            "that casts it to text",
        )
    return found


def value_of(source: Column) -> exp.Expr:
    """A column of `s` as it is compared: both zeros of a float are one value."""
    return with_one_zero(column(source.name, "s"), source)


def measure(arms: Sequence[Arm], engine: Engine, *, shared: bool) -> list[Uniqueness]:
    """The class sizes of many groupings, many to a statement.

    Parameters
    ----------
    shared
        Whether rows share persons, so that a class is as large as it has persons; else every row is one.
    """
    at_once = PERSONS_AT_ONCE if shared else ROWS_AT_ONCE
    found: list[Uniqueness] = []
    for start in range(0, len(arms), at_once):
        batch = arms[start : start + at_once]
        rows = engine.query(_statement(batch, shared=shared)).to_pylist()
        found += [_uniqueness(arm, row, shared=shared) for arm, row in zip(batch, rows, strict=True)]
    return found


def _statement(arms: Sequence[Arm], *, shared: bool) -> str:
    if not shared:
        listed = [{"number": i, "folded": a.folded, "parts": list(a.parts)} for i, a in enumerate(arms)]
        return render("insight/measure_sets", arms=listed, limits=LIMITS)
    keyed = [
        {
            "number": i,
            "folded": a.folded,
            "grouped": identifier(f"grouped_{i}"),
            "sized": identifier(f"sized_{i}"),
            "key_columns": [{"name": identifier(f"k{j}"), "value": part} for j, part in enumerate(a.parts)],
        }
        for i, a in enumerate(arms)
    ]
    return render("insight/measure_persons", arms=keyed, limits=LIMITS)


def _uniqueness(arm: Arm, row: Mapping[str, int], *, shared: bool) -> Uniqueness:
    members, classes = int(row["members"]), int(row["classes"])
    rows = {n: int(row[f"rows_{n}"]) for n in BELOW}
    persons = {n: int(row[f"persons_{n}"]) for n in BELOW} if shared else dict(rows)
    total, everybody = (int(row["total"]), int(row["everybody"])) if shared else (members, members)
    return Uniqueness(arm.columns, total, everybody, classes, members / classes if classes else 0.0, rows, persons)
