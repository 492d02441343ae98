"""Profile a table in counts, for the proposals of `init`; no value is shown to anybody.

Nothing but counts leaves the database, whichever it is; it holds a sample of some thousand rows meanwhile.
Cost: one pass for counts and one for the sample, and a scan of each column for its different values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from sqlglot import exp

from sqldeid.catalogue.relations import parts_of
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError, listed
from sqldeid.sql import column, identifier, literal, render
from sqldeid.sql.names import refuse_same_names

SAMPLE_ROWS = 2_000
_BROAD = ("integer", "float", "number")
_SAME_TEXT = ("integer", "text", "date", "boolean")
"""Kinds whose values every engine spells alike."""

_MOST_HASHED = 8
"""Columns by which rows of a sample are chosen, at most."""

_AT_ONCE = 32
"""Columns that one statement is about, at most: each is a query of its own within."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is known of a column.

    Parameters
    ----------
    there
        Rows in which it is not NULL.
    different
        Different values; 0 for nested types and the like, which cannot be counted.
    low, high
        Of numbers; None elsewhere, and where they are not finite.
    length, longest
        Characters of a text: mean and most.
    looks
        Share of a sample's different values that have a pattern, by the pattern's name; 0 … 1.
    """

    column: Column
    rows: int
    there: int
    different: int
    low: float | None = None
    high: float | None = None
    length: float = 0.0
    longest: int = 0
    looks: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def kind(self) -> str:
        """How its values travel."""
        return self.column.kind

    @property
    def uniqueness(self) -> float:
        """Different values per value that is there, 0 … 1."""
        return min(1.0, self.different / self.there) if self.there else 0.0


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is known of a table.

    Parameters
    ----------
    parts
        Its name as the catalogue has it, catalogue first.
    """

    relation: exp.Expr
    parts: tuple[str, ...]
    rows: int
    columns: tuple[ColumnFacts, ...]


def profile(table: str | None, engine: Engine, patterns: Mapping[str, str], *, key: str = "TABLE") -> TableFacts:
    """Read the facts of a table.

    Parameters
    ----------
    table
        As a job's ``source`` names it; None where the database has one table only.
    patterns
        Regular expressions by name, of the whole value, blanks around it aside; RE2's, Postgres' and Java's alike.

    Raises
    ------
    JobError
        If there is no such table, or none was named and there are several.
    """
    parts = _only_table(engine, key) if table is None else parts_of(table, engine, key)
    relation = engine.resolve(parts, key=key)
    there = engine.columns(relation, key=key)
    refuse_same_names((c.name for c in there), what=relation.name, key=key)
    row = engine.row("insight/profile_columns", source=relation, columns=_counted(there))
    rows, different = int(row["rows"]), _different(relation, there, engine)
    looks = _looks(relation, there, rows, engine, patterns)
    facts = tuple(_facts(c, i, rows, row, different.get(i, 0), looks.get(i, {})) for i, c in enumerate(there))
    names = tuple(p.name for p in relation.parts)
    return TableFacts(relation, names, rows, facts)


def _only_table(engine: Engine, key: str) -> tuple[str, ...]:
    found = [r.parts for r in engine.relations()]
    if len(found) != 1:
        names = listed([".".join(parts[-2:]) for parts in sorted(found)]) or "none"
        raise JobError.at(key, f"name the table to look at; the database has {names}")
    return found[0]


def _counted(there: Sequence[Column]) -> list[dict[str, object]]:
    return [
        {
            "column": column(c.name, "s"),
            "number": c.kind in _BROAD,
            "text": c.type == "VARCHAR",
            **{name: identifier(f"{name}_{i}") for name in ("there", "low", "high", "length", "longest")},
        }
        for i, c in enumerate(there)
    ]


def _different(relation: exp.Expr, there: Sequence[Column], engine: Engine) -> dict[int, int]:
    """How many different values the columns have, by number; those that cannot be compared are left out."""
    counted = [{"number": i, "column": column(c.name, "s")} for i, c in enumerate(there) if c.kind != "other"]
    found: dict[int, int] = {}
    for start in range(0, len(counted), _AT_ONCE):
        asked = render("insight/count_columns", source=relation, columns=counted[start : start + _AT_ONCE])
        found |= {row["number"]: row["different"] for row in engine.query(asked).to_pylist()}
    return found


def _facts(
    c: Column, number: int, rows: int, row: Mapping[str, object], different: int, looks: Mapping[str, float]
) -> ColumnFacts:
    def told(name: str) -> float:
        value = row.get(f"{name}_{number}")
        return float(value) if isinstance(value, int | float) else 0.0

    def bound(name: str) -> float | None:
        value = row.get(f"{name}_{number}")
        return float(value) if isinstance(value, int | float) and isfinite(value) else None

    return ColumnFacts(
        column=c,
        rows=rows,
        there=int(told("there")),
        different=different,
        low=bound("low"),
        high=bound("high"),
        length=told("length"),
        longest=int(told("longest")),
        looks=looks,
    )


def _looks(
    relation: exp.Expr, there: Sequence[Column], rows: int, engine: Engine, patterns: Mapping[str, str]
) -> dict[int, dict[str, float]]:
    """Per column, by number, the share of a sample's different values that have each pattern."""
    looked = [(i, c) for i, c in enumerate(there) if c.kind == "text"]
    if not looked or not rows or not patterns:
        return {}
    sampled, one_in = engine.workbench("sample"), max(1, rows // SAMPLE_ROWS)
    sample = render(
        "insight/sample_rows",
        sampled=sampled,
        source=relation,
        columns=[{"name": identifier(f"v{i}"), "column": column(c.name, "s")} for i, c in looked],
        hashed=[column(c.name, "s") for c in there if c.kind in _SAME_TEXT][:_MOST_HASHED],
        absent=literal("NULL"),
        cut=literal(f"{2**32 // one_in:08x}") if one_in > 1 else None,
    )
    engine.execute(sample)
    asked = [
        {"pattern": literal(rf"^\s*(?:{pattern})\s*$"), "matching": identifier(f"look_{j}")}
        for j, pattern in enumerate(patterns.values())
    ]
    found: dict[int, dict[str, float]] = {}
    for start in range(0, len(looked), _AT_ONCE):
        part = [{"number": i, "name": identifier(f"v{i}")} for i, _ in looked[start : start + _AT_ONCE]]
        rows_of = engine.rows("insight/match_looks", sampled=sampled, columns=part, looks=asked)
        found |= {r["number"]: _shares(r, patterns) for r in rows_of if r["different"]}
    engine.drop(sampled)
    return found


def _shares(row: Mapping[str, int], patterns: Mapping[str, str]) -> dict[str, float]:
    return {name: row[f"look_{j}"] / row["different"] for j, name in enumerate(patterns)}
