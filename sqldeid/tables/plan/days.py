"""Which released columns tell the day of something: beside shifted dates of the same persons they tell the shift.

Who knows one true date of a person, to the day, and reads its shifted one, has the number of days of all of that
person's dates. k persons who share a quasi-identifying date do not hide it: each true date fits few of the k shifted
ones, by time of day, order or the range of shifts. The year alone leaves half of the shifts, and is taken.

Source: soundness.md 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sqldeid.engine.base import Column
from sqldeid.hierarchy.dates import UNITS, Dates
from sqldeid.hierarchy.numbers import Edges
from sqldeid.hierarchy.sources import RuleSource
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier

if TYPE_CHECKING:
    from sqldeid.tables.model.lattice import Node
    from sqldeid.tables.plan.plan import TablePlan

_QUOTED = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'")
_DAYS = re.compile(r"\b_?(?:date|timestamp|ts(?:tz)?(?:multi)?range)", re.IGNORECASE)


def tells_days(source: Column) -> bool:
    """Whether the values of a column hold dates or moments, alone, in lists, structs, maps or ranges."""
    return source.kind in ("date", "timestamp") or _DAYS.search(_QUOTED.sub("q", source.shown_type)) is not None


def first_of_years(q: QuasiIdentifier) -> int:
    """The first level of a column that tells no more of dates than their year; 0 where there are none.

    What a file's labels say of dates is not known: all its levels count as finer, but the one value of the top.
    """
    rule = q.hierarchy.rule if isinstance(q.hierarchy, RuleSource) else None
    if not tells_days(q.source) and not isinstance(rule, Dates):
        return 0
    top = max(q.hierarchy.height - 1, 1)
    if isinstance(rule, Edges):  # of dates they are years
        return 1
    if isinstance(rule, Dates):
        years = UNITS[UNITS.index("year") :]
        return next((1 + i for i, unit in enumerate(rule.units) if unit in years), top)
    return top


def shifted(plan: TablePlan) -> tuple[OtherColumn, ...]:
    """The columns whose dates are shifted."""
    return tuple(c for c in plan.others if c.disguise in ("shift", "birth"))


def shown_days(plan: TablePlan, nodes: Iterable[Node] | None) -> tuple[str, ...]:
    """The columns that show days as in the source, or as a statistic, or at a level that is finer than years.

    Parameters
    ----------
    nodes
        Those that rows are released by; None where they are not known, and levels not looked at.
    """
    finest = None if nodes is None else _finest(tuple(nodes), len(plan.qis))
    levels = {} if finest is None else dict(zip((q.name for q in plan.qis), finest, strict=True))
    return tuple(c.name for c in plan.released if _shows(c, levels))


def _shows(c: QuasiIdentifier | OtherColumn, levels: dict[str, int]) -> bool:
    if isinstance(c, OtherColumn):
        return c.disguise is None and tells_days(c.source)
    return c.name in levels and levels[c.name] < first_of_years(c)


def _finest(nodes: Sequence[Node], columns: int) -> list[int] | None:
    """The least level of each column; None where no row is released."""
    return [min(node[i] for node in nodes) for i in range(columns)] if nodes else None
