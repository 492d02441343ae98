"""A table from afar: what its columns hold, told in counts. For proposals only; no value is shown to anybody.

Cost: one pass for counts (numbers of different values are approximate), one for a sample of some thousand rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.sql import column, identifier, parse_table, render
from sqldeid.sql.names import refuse_same_names

SAMPLE_ROWS = 2_000
_BROAD = ("integer", "float", "number")


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is known of a column.

    Parameters
    ----------
    there
        Rows in which it is not NULL.
    different
        Different values, approximately; 0 for nested types and the like, which cannot be counted.
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
        """Different values per value that is there, 0 … 1; approximate."""
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
        Regular expressions (RE2, of the whole value) by name.

    Raises
    ------
    JobError
        If there is no such table, or none was named and there are several.
    """
    parts = _only_table(engine, key) if table is None else parse_table(table, key=key)
    relation = engine.resolve(parts, key=key)
    there = engine.columns(relation, key=key)
    refuse_same_names((c.name for c in there), what=relation.name, key=key)
    row = engine.query(render("insight/profile_columns", source=relation, columns=_counted(there))).to_pylist()[0]
    rows = int(row["rows"])
    looks = _looks(relation, there, rows, engine, patterns)
    facts = tuple(_facts(c, i, rows, row, looks.get(c.name, {})) for i, c in enumerate(there))
    names = tuple(p.name for p in relation.parts)
    return TableFacts(relation, names, rows, facts)


def _only_table(engine: Engine, key: str) -> tuple[str, ...]:
    found = [r.parts for r in engine.relations()]
    if len(found) != 1:
        names = ", ".join(".".join(parts[1:]) for parts in sorted(found)[:8]) or "none"
        raise JobError(f"{key}: name the table to look at; the database has {names}", key=key)
    return found[0]


def _counted(there: Sequence[Column]) -> list[dict[str, object]]:
    return [
        {
            "column": column(c.name, "s"),
            "counted": c.kind != "other",
            "number": c.kind in _BROAD,
            "text": c.type == "VARCHAR",
            **{name: identifier(f"{name}_{i}") for name in ("there", "different", "low", "high", "length", "longest")},
        }
        for i, c in enumerate(there)
    ]


def _facts(c: Column, number: int, rows: int, row: Mapping[str, object], looks: Mapping[str, float]) -> ColumnFacts:
    def told(name: str) -> float:
        value = row.get(f"{name}_{number}")
        return float(value) if isinstance(value, int | float) else 0.0

    def bound(name: str) -> float | None:
        value = row.get(f"{name}_{number}")
        return float(value) if isinstance(value, int | float) and isfinite(value) else None

    there = int(told("there"))
    return ColumnFacts(
        column=c,
        rows=rows,
        there=there,
        different=min(int(told("different")), there),
        low=bound("low"),
        high=bound("high"),
        length=told("length"),
        longest=int(told("longest")),
        looks=looks,
    )


def _looks(
    relation: exp.Expr, there: Sequence[Column], rows: int, engine: Engine, patterns: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """Per column the share of a sample's different values that have each pattern."""
    looked = [(i, c) for i, c in enumerate(there) if c.kind == "text"]
    if not looked or not rows:
        return {}
    named = [{"name": identifier(f"v{i}"), "column": column(c.name, "s")} for i, c in looked]
    one_in = max(1, rows // SAMPLE_ROWS)
    sample = engine.query(render("insight/sample_rows", source=relation, columns=named, one_in=one_in))
    return {c.name: _shares(sample.column(f"v{i}"), patterns) for i, c in looked}


def _shares(values: pa.ChunkedArray, patterns: Mapping[str, str]) -> dict[str, float]:
    different = pc.utf8_trim_whitespace(pc.drop_null(pc.unique(values)))
    if not len(different):
        return {}
    matches = {name: pc.match_substring_regex(different, f"^(?:{pattern})$") for name, pattern in patterns.items()}
    return {name: pc.sum(found).as_py() / len(different) for name, found in matches.items()}
