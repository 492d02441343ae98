"""What to do about values that a hierarchy does not cover, said alike by a run and by `hierarchy check`.

And how many rows a rule hides. Pure.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Ints
from sqldeid.hierarchy.dates import Dates
from sqldeid.hierarchy.model import UncoveredValues
from sqldeid.hierarchy.numbers import Bands, Edges
from sqldeid.hierarchy.sources import HierarchySource
from sqldeid.hierarchy.topcoded import rule_of
from sqldeid.hierarchy.tree import Uncovered

MOST_HIDDEN = 0.05
"""Share of the rows that `uncovered = "top"` may hide of a rule's column without a word."""


def mending(source: HierarchySource, count: int, uncovered: Uncovered, column: str, *, text: bool) -> str:
    """The sentence that follows "does not cover `count` values"; as `mend`, and how the job may place them.

    Parameters
    ----------
    uncovered
        What the job says already: that is not proposed once more.
    """
    them = "it" if count == 1 else "them"
    first = mend(source, count, column, text=text)
    if isinstance(rule_of(source), Dates | Bands | Edges):  # whose labels begin no other value
        return f'{first}; or set uncovered = "top", which shows {them} as "*"'
    others = '"top"' if uncovered == "prefix" else '"prefix" or "top"'
    return f"{first}, or set uncovered = {others}"


def mend(source: HierarchySource, count: int, column: str, *, text: bool) -> str:
    """What to do so that the hierarchy covers `count` values of a column, whose type may be text."""
    rule = rule_of(source)
    them = "it" if count == 1 else "them"
    if rule is None:
        return f"Add {them} to the hierarchy"
    if isinstance(rule, Dates) and text:
        quoted = '"' + column.replace('"', '""') + '"'
        return (
            "Mend the column first: its type is text, so it holds dates in several formats or text that is no date. "
            f"Read it by its formats in a source query, in DuckDB by strptime({quoted}, ['%Y-%m-%d', '%d.%m.%Y'])"
            "; on Postgres and Spark make a view that reads it by to_date, and name that"
        )
    if isinstance(rule, Dates | Bands | Edges):
        return f"A rule cannot be added to: mend {them} in a source query, or leave the rows out by where"
    return f"A rule cannot be added to: mend {them} in a source query, take a hierarchy file instead"


def hidden_rows(source: HierarchySource, values: pa.Array, rows: Ints, *, numeric: bool) -> int:
    """Rows whose value a rule gives no group: with `uncovered = "top"` they show the top's label from level 1 on.

    Parameters
    ----------
    values, rows
        Distinct values, and how many rows each has.
    """
    if rule_of(source) is None:
        return 0
    try:
        source.bind(values, numeric=numeric, uncovered="refuse")
    except UncoveredValues as error:
        return int(rows[np.asarray(error.indices, dtype=np.int64)].sum())
    return 0
