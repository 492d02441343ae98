"""Fold a table in its engine, part it by Mondrian in the workbench, and bring the classes back.

The rows are folded into distinct combinations of the cut columns' values and numbers of the sensitive ones, with how
often each is there (one GROUP BY). They go to the bench, where medians are found; back go the class of each
combination and the labels of each class. Of a DuckDB source all of this is one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.mondrian import Box, Dimension, Mondrian, partition_boxes
from sqldeid.sql import column, identifier
from sqldeid.tables.mondrian.criteria import checks_of, refuse_whole
from sqldeid.tables.mondrian.plan import Cut, PartitionPlan
from sqldeid.tables.plan.columns import released_value
from sqldeid.tables.plan.grid import Grid
from sqldeid.tables.rows.shape import naming

SIDES = ("label", "low", "high", "missing")


@dataclass(frozen=True, slots=True)
class Parts:
    """A source and its classes, where the source lies.

    Parameters
    ----------
    source
        What later statements read: the plan's source, or the kept rows of its query.
    rows
        Rows of the source, one a person.
    classes
        Temporary table, one row per combination of values that is there: the values q0, q1 and so on; of its class
        label0, low0 (inclusive) and high0 (exclusive), both as cells, missing0 (whether points without the value lie in
        it) and so on.
    """

    source: exp.Expr
    rows: int
    classes: exp.Table


def part(planned: PartitionPlan, engine: Engine) -> Parts:
    """Fold the source, cut it at medians, and bring the classes to where it lies.

    Raises
    ------
    JobError
        If there are fewer than k rows, a person is NULL or there twice, or numbers are too great for their grid.
    NoSolutionError
        If the whole table as one class fails a criterion.

    Cost: a scan of the source, another for each sensitive column of a criterion; on the bench the source's rows as
    numbers, and some statements a depth.
    """
    with naming(planned.key, filtered=planned.part.where is not None, joined=planned.joined):
        source = _keep(planned, engine)
        rows = count_rows(planned, source, engine)
        folded = engine.to_bench(_fold(planned, source, engine))
    bench, cuts = engine.bench, values_of(planned)
    judged = {name: identifier(f"s{i}") for i, (name, _) in enumerate(planned.judged)}
    columns = [c["name"] for c in cuts]
    points = bench.make(
        "tables/mondrian/list_points", f"{planned.name}_points", folded=folded, columns=[*columns, *judged.values()]
    )
    refuse_whole(planned.criteria, points, judged, f"{planned.key}.privacy", bench)
    checks = checks_of(planned.criteria, judged, points, planned.name, bench)
    settings = Mondrian(planned.part.privacy.k, planned.heuristic, "source")  # missing values share their class's label
    dimensions = [Dimension(f"q{i}", i) for i in range(len(cuts))]
    name = f"{planned.name}_mondrian"
    between = partial(_between, planned)
    numbers, boxes = partition_boxes(points, dimensions, settings, bench, name, checks, between)
    counted = [{"name": c["name"], "count": identifier(f"n{i}")} for i, c in enumerate(cuts)]
    means = bench.ask("tables/mondrian/average_parts", points=points, classes=numbers, cuts=counted)
    parts = bench.make(
        "tables/mondrian/list_parts", f"{planned.name}_parts", points=points, classes=numbers, columns=columns
    )
    for used in (points, numbers):
        bench.drop(used)
    labels = engine.put(f"{planned.name}_labels", _labels(planned, boxes, means))
    sides = [identifier(f"{side}{i}") for i in range(len(cuts)) for side in SIDES]
    there = engine.from_bench(parts)
    classes = engine.make(
        "tables/mondrian/label_parts",
        f"{planned.name}_classes",
        parts=there,
        labels=labels,
        columns=columns,
        sides=sides,
    )
    return Parts(source, rows, classes)


def _between(planned: PartitionPlan, dimension: int, cut: float, above: float) -> int:
    """What bounds both sides of a cut."""
    asked = planned.cuts[dimension]
    found = asked.grid.between(cut, above)
    if found is None:
        key = f"{planned.key}.columns.{asked.name}.hierarchy.grid"
        raise JobError.at(
            key,
            f"{asked.name} holds numbers so great, and so near to each other, that a step of {asked.grid.asked} "
            "cannot be told between them; write a coarser grid, or subtract something in a source query",
        )
    return found


def count_rows(planned: PartitionPlan, source: exp.Expr, engine: Engine) -> int:
    """Rows of the source, one a person.

    Raises
    ------
    JobError
        If there are fewer than k, or a person is NULL or there twice.
    """
    person = column(planned.person, "s") if planned.person else None
    row = engine.row("tables/rows/check_person", source=source, person=person)
    key, k = f"{planned.key}.person", planned.part.privacy.k
    if row["keyed"] < row["rows"] or (row["persons"] < row["rows"] and planned.person is not None):
        raise JobError.at(key, f"{planned.person} is NULL or there twice; give one row per person")
    if row["rows"] < k:
        key, after = f"{planned.key}.privacy.k", " (after where)" if planned.part.where else ""
        raise JobError.at(key, f"is {k}, and {planned.source_label} has {row['rows']} rows{after}")
    return int(row["rows"])


def values_of(planned: PartitionPlan) -> list[dict[str, Any]]:
    """The cut columns as templates take them: name (q0, q1 and so on) and value."""
    return [{"name": identifier(f"q{i}"), "value": c.value} for i, c in enumerate(planned.cuts)]


def others_of(planned: PartitionPlan) -> list[dict[str, Any]]:
    """The columns that leave as they are: name (o0, o1 and so on), value, and what they are released as."""
    return [
        {"name": identifier(f"o{i}"), "value": released_value(source), "released": identifier(name)}
        for i, (name, source, _) in enumerate(planned.others)
    ]


def _keep(planned: PartitionPlan, engine: Engine) -> exp.Expr:
    """The relation that statements read; a query's rows are kept first, so that it is run once."""
    if not planned.joined:
        return planned.source
    return engine.make(
        "tables/rows/keep_source", f"{planned.name}_source", columns=planned.kept_columns, source=planned.source
    )


def _fold(planned: PartitionPlan, source: exp.Expr, engine: Engine) -> exp.Table:
    sensitive = []
    for i, (_, value) in enumerate(planned.judged):
        numbered = engine.make(
            "tables/disguise/number_values", f"{planned.name}_numbered", column=value, source=source, text=False
        )
        alias = identifier(f"t{i}")
        sensitive.append({"name": identifier(f"s{i}"), "alias": alias, "column": value, "numbered": numbered})
    return engine.make(
        "tables/mondrian/fold_points",
        f"{planned.name}_folded",
        source=source,
        cuts=values_of(planned),
        sensitive=sensitive,
    )


def _labels(planned: PartitionPlan, boxes: Mapping[int, Box], means: pa.Table) -> pa.Table:
    """For each class and column: label, low, high, and whether a missing value lies in the box."""
    numbers, rows = means.column("class").to_pylist(), means.column("rows").to_pylist()
    found: dict[str, Any] = {"class": pa.array(numbers, pa.int64())}
    for i, cut in enumerate(planned.cuts):
        mean, there = (means.column(f"{what}{i}").to_pylist() for what in ("q", "n"))
        low, high, missing = ([getattr(boxes[c], side)[i] for c in numbers] for side in ("low", "high", "missing"))
        if cut.show == "mean":
            found[f"label{i}"] = _means(cut, mean, there, planned.part.privacy.k)
        else:
            found[f"label{i}"] = _ranges(cut, low, high, missing, lacking=sum(there) < sum(rows))
        found[f"low{i}"], found[f"high{i}"] = _doubles(low), _doubles(high)
        found[f"missing{i}"] = pa.array(missing, pa.bool_())
    return pa.table(found)


def _doubles(cells: list[int | None]) -> pa.Array:
    """Bounds as cells are compared; Arrow itself takes no whole number beyond 64 bits."""
    return pa.array([None if c is None else float(c) for c in cells], pa.float64())


def _means(cut: Cut, mean: list[float | None], there: list[int], k: int) -> pa.Array:
    """The mean of a class on the grid; none where fewer than k have a value, for it would be theirs alone."""
    return pa.array(
        [None if m is None or n < k else cut.grid.mean(m) for m, n in zip(mean, there, strict=True)], pa.float64()
    )


def _ranges(cut: Cut, low: Any, high: Any, missing: Any, *, lacking: bool) -> pa.Array:
    bounds = zip(low, high, missing, strict=True)
    ranges = [_range(cut.grid, low, high, lacking=lacking, missing=absent) for low, high, absent in bounds]
    return pa.array(ranges, pa.string())


def _range(grid: Grid, low: int | None, high: int | None, *, missing: bool, lacking: bool) -> str:
    """A box's side as text: ``[40, 50)``, ``< 40``, ``≥ 50 or missing``, ``*``.

    `missing` says whether a missing value may lie in it, and `lacking` whether the column has any at all.
    """
    if low is None and high is None:
        return "*" if missing or not lacking else "not missing"
    if low == high:
        return "missing"
    if low is None:
        return f"< {grid.shown(high or 0)}"
    if high is None:
        return f"≥ {grid.shown(low)}" + (" or missing" if missing and lacking else "")
    return f"[{grid.shown(low)}, {grid.shown(high)})"
