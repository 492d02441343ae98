"""Median partitioning (Mondrian) in rounds of SQL: a depth of the recursion is a few statements over all its parts.

Used by series, on features, and by tables, on cells of numeric quasi-identifiers. A part is parted at
`quantile_disc(v, 0.5)` of one dimension: left is v ≤ cut, right the rest with NULLs. That number is somebody's and is
never shown: a box is bounded by a number between both sides (`between`). A cut is allowed if both sides hold at least
k points, and, for `null-aware` and `null-strict`, if each group of dimensions (a variable) is there for 0 or at least k
points of each side (and absent for 0 or at least k); for `null-pattern`, if each combination of groups is that of 0 or
at least k points of each side. Of the allowed dimensions the one with the greatest range, in units of its range in the
root, or the one that leaves points farthest apart, is taken; ties by the order in which dimensions are given.

Source
------
LeFevre et al. 2006; Mazzone 2020, §4.1, algorithm 1, with the rules that series.md adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import UnknownKindError
from sqldeid.sql import identifier

Heuristic = Literal["range", "diversity"]
Kind = Literal["distinct", "entropy", "recursive", "closeness", "bounded"]
Nulls = Literal["null-pattern", "null-aware", "null-strict", "strict", "source"]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A column of the points, and the group (a variable) whose dimensions are NULL together."""

    column: str
    group: int


@dataclass(frozen=True, slots=True)
class Mondrian:
    """How points are parted.

    *Guarantee*: every class has at least k points if its root has; with `null-aware` each group of dimensions is there
    for 0 or at least k of each class if that holds in its root, with `null-strict` also absent for 0 or at least k,
    with `null-pattern` each combination of groups is that of 0 or at least k.
    *Does not protect*: homogeneous classes disclose what their members share; with `source` a class may hold fewer than
    k points with a value, and a lone one keeps its own.
    """

    k: int
    heuristic: Heuristic
    nulls: Nulls


@dataclass(frozen=True, slots=True)
class Check:
    """What both sides of a cut must have beside k points, of a value that is not cut by: asked before each cut.

    Parameters
    ----------
    kind
        ``distinct``: at least `least` values. ``entropy``: as uncertain as `least` equally frequent ones.
        ``recursive``: the most frequent has fewer points than c times those without the `least` − 1 most frequent.
        ``closeness``: shares at most t from those of all points. ``bounded``: each share between a least and a
        most, and at least `least` values.
    marks
        Temporary table: row_number, code (of the value).
    number, divisor
        c or t as a fraction; for bounded, the divisor is the unit of the least and most shares.
    rows
        For closeness, a temporary table: code, n (of all points); for bounded with least and most, too.
    """

    kind: Kind
    marks: exp.Table
    least: int
    number: int = 0
    divisor: int = 1
    rows: exp.Table | None = None
    total: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    """Where a class lies: low (inclusive) and high (exclusive) of each dimension, None where nothing cut it.

    `missing` says of each dimension whether points without a value may lie in it: to the left of a cut they may not.
    Where low and high are equal, nothing but those lies in it.
    """

    low: tuple[int | None, ...]
    high: tuple[int | None, ...]
    missing: tuple[bool, ...]

    def left(self, dimension: int, cut: int | None) -> Box:
        """The part below a cut; without one, all that has a value."""
        high = self.high if cut is None else _put(self.high, dimension, cut)
        return Box(self.low, high, _put(self.missing, dimension, False))

    def right(self, dimension: int, cut: int | None) -> Box:
        """The part from a cut on, with what is missing; without one, what is missing."""
        if cut is None:
            return Box(_put(self.low, dimension, 0), _put(self.high, dimension, 0), self.missing)
        return Box(_put(self.low, dimension, cut), self.high, self.missing)


T = TypeVar("T")


def _put(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


def partition(
    points: exp.Table, dimensions: Sequence[Dimension], settings: Mondrian, engine: Engine, name: str
) -> exp.Table:
    """Part the points of every root; see `partition_boxes`, whose boxes it leaves."""
    return partition_boxes(points, dimensions, settings, engine, name)[0]


def partition_boxes(
    points: exp.Table,
    dimensions: Sequence[Dimension],
    settings: Mondrian,
    engine: Engine,
    name: str,
    checks: Sequence[Check] = (),
    between: Callable[[int, float, float], int] | None = None,
) -> tuple[exp.Table, dict[int, Box]]:
    """Part the points of every root.

    Parameters
    ----------
    points
        Temporary table: row_number BIGINT (distinct), root BIGINT, one DOUBLE column a dimension.
    dimensions
        In the order that breaks ties.
    name
        For the names of temporary tables.
    checks
        What both sides of every cut must hold to; whether a root does is the caller's to see to.
    between
        Of whole numbers alone: what bounds both sides in a dimension, given the greatest of the left part and the least
        of the right one: above the first, and at most the second. Without it there are no boxes.

    Returns
    -------
    A temporary table: row_number, root, class (BIGINT, from 1, distinct over all roots); and the box of each class:
    what lies between it and its neighbours, never a class's own least or greatest value.

    Cost: three statements a depth (a fourth for `null-pattern`; another for `diversity`, whose work grows with the
    square of the dimensions).
    """
    groups = _groups(dimensions)
    checked = groups if settings.nulls in ("null-aware", "null-strict") else []
    values, spans, parts = (engine.workbench(f"{name}_{what}") for what in ("values", "spans", "parts"))
    listed = [{"number": i, "name": identifier(d.column)} for i, d in enumerate(dimensions)]
    engine.run("mondrian/list_values", values=values, points=points, dimensions=listed)
    engine.run("mondrian/measure_spans", spans=spans, points=points, values=values)
    patterned = groups if settings.nulls == "null-pattern" else []
    engine.run("mondrian/start_parts", parts=parts, points=points, groups=checked, patterns=patterned)
    rounds = _Rounds(values, spans, checked, settings, engine, name, tuple(checks), between)
    base, cut = _count(parts, engine), 1
    everywhere = (None,) * len(dimensions)
    boxes = dict.fromkeys(range(base), Box(everywhere, everywhere, (True,) * len(dimensions)))
    while cut:
        parts, cut = rounds.split(parts, base, boxes)
        base += cut
    classes = engine.make("mondrian/number_classes", f"{name}_classes", parts=parts)
    of_part = engine.rows("mondrian/read_parts", parts=parts, classes=classes)
    _drop(engine, values, spans, parts)
    return classes, {row["class"]: boxes[row["part"]] for row in of_part}


@dataclass(frozen=True, slots=True)
class _Rounds:
    """What stays the same over the rounds of one partition."""

    values: exp.Table
    spans: exp.Table
    groups: Sequence[dict[str, object]]
    settings: Mondrian
    engine: Engine
    name: str
    checks: tuple[Check, ...] = ()
    between: Callable[[int, float, float], int] | None = None

    def split(self, parts: exp.Table, base: int, boxes: dict[int, Box]) -> tuple[exp.Table, int]:
        """Cut every open part once where it can be, and its box; the new parts, and how many were cut."""
        diverse = self._diverse(parts)
        cuts = self.engine.make(
            "mondrian/measure_cuts", f"{self.name}_cuts", parts=parts, values=self.values, k=self.settings.k
        )
        refused = [*self._torn(parts, cuts), *(self._unfit(check, parts, cuts) for check in self.checks)]
        chosen = self.engine.make(
            "mondrian/choose_cuts",
            f"{self.name}_chosen",
            parts=parts,
            values=self.values,
            spans=self.spans,
            cuts=cuts,
            k=self.settings.k,
            base=base,
            diverse=diverse,
            groups=self.groups,
            absent=self.settings.nulls == "null-strict",
            refused=refused,
        )
        after = self.engine.make(
            "mondrian/split_parts",
            f"{self.name}_parts",
            parts=parts,
            chosen=chosen,
            values=self.values,
            groups=self.groups,
            patterns=self.settings.nulls == "null-pattern",
        )
        found = self.engine.rows("mondrian/read_cuts", chosen=chosen)
        for row in found:
            whole = boxes[row["part"]]
            at = self._bound(row)
            boxes[row["right_part"]] = whole.right(row["dimension"], at)
            boxes[row["part"]] = whole.left(row["dimension"], at)
        _drop(self.engine, parts, chosen, cuts, *refused, *([] if diverse is None else [diverse]))
        return after, len(found)

    def _bound(self, row: dict[str, Any]) -> int | None:
        """What bounds both sides of a cut; None where the right one has no value, and without `between`."""
        if self.between is None or row["above"] is None:
            return None
        return self.between(int(row["dimension"]), float(row["cut"]), float(row["above"]))

    def _torn(self, parts: exp.Table, cuts: exp.Table) -> list[exp.Table]:
        """Cuts that tear a pattern of missing values, where that matters."""
        if self.settings.nulls != "null-pattern":
            return []
        torn = self.engine.make(
            "mondrian/find_torn", f"{self.name}_torn", parts=parts, values=self.values, cuts=cuts, k=self.settings.k
        )
        return [torn]

    def _unfit(self, check: Check, parts: exp.Table, cuts: exp.Table) -> exp.Table:
        """Cuts of which a side would fail a check."""
        return self.engine.make(
            "mondrian/find_unfit",
            f"{self.name}_unfit",
            parts=parts,
            values=self.values,
            cuts=cuts,
            marks=check.marks,
            kind=check.kind,
            l=check.least,
            num=check.number,
            den=check.divisor,
            rows=check.rows,
            total=check.total,
        )

    def _diverse(self, parts: exp.Table) -> exp.Table | None:
        match self.settings.heuristic:
            case "range":
                return None
            case "diversity":
                pass
            case unknown:
                raise UnknownKindError(unknown, "heuristic of mondrian")
        return self.engine.make(
            "mondrian/measure_diversity",
            f"{self.name}_diverse",
            parts=parts,
            values=self.values,
            spans=self.spans,
            k=self.settings.k,
        )


def _groups(dimensions: Sequence[Dimension]) -> list[dict[str, object]]:
    """Names of each group's counts, and the columns that say whether it is there."""
    return [
        {
            "present": identifier(f"g{number}"),
            "left": identifier(f"l{number}"),
            "all": identifier(f"a{number}"),
            "columns": [identifier(d.column) for d in dimensions if d.group == number],
        }
        for number in sorted({d.group for d in dimensions})
    ]


def _count(table: exp.Table, engine: Engine) -> int:
    return int(engine.row("mondrian/count_parts", table=table)["parts"])


def _drop(engine: Engine, *tables: exp.Table) -> None:
    for table in tables:
        engine.drop(table)
