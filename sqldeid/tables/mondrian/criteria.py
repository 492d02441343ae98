"""Criteria beyond k for Mondrian: enforced before each cut, and measured anew on what was written.

A cut is refused where a side would fail; the whole passes before the first. So every class passes, whether or not a
criterion is inherited: no cut is ever taken back.

Source
------
LeFevre et al. 2006, §5 (a cut is allowable if both sides satisfy the requirement); Machanavajjhala et al. 2007; Li et
al. 2007.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import NoSolutionError, UnknownKindError, VerificationError
from sqldeid.mondrian import Check, Kind
from sqldeid.result import Criterion, Measured
from sqldeid.sql import identifier
from sqldeid.tables.criteria import ClassCriterion, known, terms_of
from sqldeid.tables.criteria.bounds import UNIT


def checks_of(
    criteria: Sequence[ClassCriterion], columns: dict[str, exp.Identifier], points: exp.Table, name: str, engine: Engine
) -> list[Check]:
    """What Mondrian asks of each side of a cut.

    Parameters
    ----------
    columns
        The sensitive columns' places in the points, by name.
    """
    found = []
    for criterion in criteria:
        kind, asked = _kind(criterion), terms_of(criterion)
        rows, total = None, 0
        sensitive = columns[criterion.column]
        marks = engine.make("tables/mondrian/mark_points", f"{name}_marks", points=points, sensitive=sensitive)
        if known(criterion).against_whole:
            rows = engine.make("tables/mondrian/count_marks", f"{name}_marked", marks=marks)
            total = int(engine.row("tables/mondrian/total_marks", rows=rows)["total"])
        number = asked.number
        if kind == "bounded" and rows is not None:
            found.append(_bounded(criterion, marks, rows, total, name, engine))
            continue
        found.append(Check(kind, marks, asked.l, number.numerator, number.denominator, rows, total))
    return found


def _bounded(
    criterion: ClassCriterion, marks: exp.Table, rows: exp.Table, total: int, name: str, engine: Engine
) -> Check:
    """A check of least and most shares of each value."""
    read = engine.ask("tables/mondrian/read_marked", rows=rows)
    code, n = (read.column(c).to_numpy().astype(np.int64) for c in ("code", "n"))
    bounds = criterion.bounds(n)
    columns = {"code": code, **{what: values for what, values in bounds.columns().items() if what != "place"}}
    put = engine.put(f"{name}_bounds", pa.table(columns))
    return Check("bounded", marks, bounds.needed, 1, UNIT, put, total)


def _kind(criterion: ClassCriterion) -> Kind:
    """The criterion as a cut is checked for it; the parts' values have no order, so none of distances does."""
    match terms_of(criterion).kind:
        case "equal":
            return "closeness"
        case "distinct" | "entropy" | "recursive" | "bounded" as kind:
            return kind
        case unknown:
            raise UnknownKindError(unknown, "criterion of Mondrian")


def refuse_whole(
    criteria: Sequence[ClassCriterion], points: exp.Table, columns: dict[str, exp.Identifier], key: str, engine: Engine
) -> None:
    """Refuse a job whose criteria the table as one class does not meet: then no partition of it can be released.

    Raises
    ------
    NoSolutionError
        Names the first criterion that fails, and what the whole achieves.
    """
    for criterion in criteria:
        (found,) = measure_written([criterion], points, [], engine, {criterion.column: columns[criterion.column]})
        if not found.met:
            achieved = "does not" if found.achieved is None else f"achieves {found.achieved:g}"
            raise NoSolutionError.at(
                key,
                f"{criterion.name} of {criterion.column} is asked to be {criterion.asked:g}, and the whole "
                f"table as a single class {achieved}; no release meets it",
            )


def measure_written(
    criteria: Sequence[ClassCriterion],
    written: exp.Expr,
    columns: Sequence[str],
    engine: Engine,
    named: dict[str, exp.Identifier] | None = None,
) -> tuple[Measured, ...]:
    """What a table achieves by each criterion, from its own rows: the worst of its classes.

    Parameters
    ----------
    written
        A release (or any table): nothing is suppressed, so its rows are the reference of t-closeness.
    columns
        Its quasi-identifying columns; none: all rows are one class.
    named
        The sensitive columns, where they are called otherwise.

    Cost: one scan a criterion.
    """
    found = []
    for criterion in criteria:
        sensitive = (named or {}).get(criterion.column, identifier(criterion.column))
        read = engine.ask(
            "tables/mondrian/spread_labels",
            written=written,
            columns=[identifier(c) for c in columns],
            sensitive=sensitive,
        )
        of, code, n = (read.column(i).to_numpy().astype(np.int64) for i in range(3))
        achieved, met = _worst(criterion, of, code, n)
        found.append(Measured(criterion.name, criterion.column, criterion.asked, achieved, met))
    return tuple(found)


def achieved(
    criteria: Sequence[ClassCriterion], written: exp.Expr, columns: Sequence[str], key: str, engine: Engine
) -> tuple[Criterion, ...]:
    """What a release achieves by each criterion, from what was written.

    Raises
    ------
    VerificationError
        If a class fails one.
    """
    found = []
    for criterion, measured in zip(criteria, measure_written(criteria, written, columns, engine), strict=True):
        if not measured.met:
            raise VerificationError.at(
                key, f"the release failed its re-check: a class fails {criterion.name} of {criterion.column}"
            )
        number = measured.asked if measured.achieved is None else measured.achieved
        found.append(Criterion(criterion.name, criterion.column, criterion.asked, number, criterion.words.promise))
    return tuple(found)


def _worst(criterion: ClassCriterion, of: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
    """What the worst class achieves (None where that is no number), and whether all classes pass."""
    order = np.lexsort((-n, of))
    of, code, n = of[order], code[order], n[order]
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    if not len(starts):
        return None, True
    return known(criterion).farthest(starts, code, n)
