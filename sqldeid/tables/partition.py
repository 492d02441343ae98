"""`search.method = "mondrian"`: multi-dimensional recoding of numeric and ordered quasi-identifiers by medians.

No lattice and no hierarchy: rows are cut at medians as long as both sides keep k of them, so that one age may be
released as "(40, 50]" in one class and as "(44, 47]" in another. Ranges are bounded by the cuts, never by a class's own
least and greatest value; means are a class's own.

*Guarantee*: every released combination of quasi-identifying values is that of at least k rows (k-anonymity), and meets
the job's l-diversity and t-closeness, each asked of both sides before a cut.
*Assumes* what these do. *Does not protect* a class whose members are alike; nor a mean against k − 1 members who pool
what they know.

Source
------
LeFevre et al. 2006; Mazzone 2020, §4.1, with its caveat: one value of a field has different generalisations from row to
row, so that a reader cannot count how many are 45 or older. And it is greedy: nothing is proven of its loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.mondrian import Box, Dimension, Heuristic, Mondrian, partition_boxes
from sqldeid.publish import Note, Staging
from sqldeid.sql import column, identifier, render
from sqldeid.sql.names import refuse_same_names
from sqldeid.tables.columns import released_value
from sqldeid.tables.partition_criteria import achieved, checks_of, refuse_whole
from sqldeid.tables.partition_result import LIMITS, PartitionRelease, PartitionVerified
from sqldeid.tables.plan import _filtered, _source
from sqldeid.tables.privacy import ClassCriterion, class_criteria
from sqldeid.tables.stack import finder

ORDERED = ("integer", "float", "number", "date", "timestamp")
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """A quasi-identifying column that is cut at medians; `show` is ``range`` or ``mean``."""

    name: str
    source: Column
    show: str

    @property
    def value(self) -> exp.Expr:
        """The column of `s` as a number: dates and timestamps in microseconds since 1970."""
        found = column(self.source.name, "s")
        if self.source.kind not in ("date", "timestamp"):
            return found
        time = exp.cast(found, exp.DataType.build("timestamp", dialect="duckdb"))
        return exp.Anonymous(this="EPOCH_US", expressions=[time])


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """One table release by Mondrian, resolved against the catalogue."""

    name: str
    key: str
    part: jobfile.Table
    source: exp.Expr
    source_label: str
    person: str | None
    cuts: tuple[Cut, ...]
    others: tuple[tuple[str, Column, str], ...]

    @property
    def criteria(self) -> tuple[ClassCriterion, ...]:
        """The criteria beyond k-anonymity, in the order of the job."""
        return class_criteria(self.part.privacy, [name for name, _, role in self.others if role == "sensitive"])

    @property
    def heuristic(self) -> Heuristic:
        """Which column is cut."""
        return self.part.search.heuristic or "range"

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for `--plan`."""
        return [
            ("Source", self.source_label),
            ("Method", f"mondrian, k = {self.part.privacy.k}, {self.heuristic}; no lattice, no hierarchy"),
            *((c.name, f"{c.column}, {c.asked:g}") for c in self.criteria),
            ("Cut at medians", ", ".join(f"{c.name} ({c.show})" for c in self.cuts)),
            ("As they are", ", ".join(f"{name} ({role})" for name, _, role in self.others) or "none"),
            ("Note", LIMITS),
        ]

    def to_dict(self) -> dict[str, object]:
        """The plan for JSON."""
        return {"kind": "table", "name": self.name, **{k.lower(): v for k, v in self.facts()}}


def plan(name: str, part: jobfile.Table, engine: Engine, folder: Path) -> PartitionPlan:
    """Resolve one release; no data is read.

    Raises
    ------
    JobError
        If a table or column is not there, or a quasi-identifying one has no order.
    """
    key = f"tables.{name}"
    relation, label = _source(part, engine, key)
    there = engine.columns(relation, key=f"{key}.source")
    refuse_same_names((c.name for c in there), what=f"{key}.source", key=f"{key}.source")
    find = finder(there, label)
    if part.where is not None:
        relation = _filtered(relation, part.where, engine, key)
        engine.columns(relation, key=f"{key}.where")
    cuts, others = [], []
    for wanted, asked in part.columns.items():
        source = find(wanted, f"{key}.columns.{wanted}")
        if asked.role == "quasi-identifying":
            cuts.append(_cut(wanted, source, asked, f"{key}.columns.{wanted}"))
        elif asked.role in ("sensitive", "insensitive"):
            others.append((wanted, source, str(asked.role)))
    person = find(part.person, f"{key}.person").name if part.person is not None else None
    return PartitionPlan(name, key, part, relation, label, person, tuple(cuts), tuple(others))


def _cut(name: str, source: Column, asked: jobfile.Column, key: str) -> Cut:
    rule = asked.hierarchy
    show = rule.median if isinstance(rule, jobfile.HierarchyRule) else None
    if show is None or source.kind not in ORDERED:
        raise JobError(
            f'{key}: a column of type {source.shown_type} has no medians; search.method = "mondrian" takes numbers and '
            "dates",
            key=key,
        )
    if show == "mean" and source.kind in ("date", "timestamp"):
        raise JobError(f'{key}.hierarchy.median: dates have ranges; write "range"', key=key)
    return Cut(name, source, show)


def run(planned: PartitionPlan, engine: Engine, staging: Staging, job_sha256: str, listener: Any) -> PartitionRelease:
    """Produce one release up to, not including, its publication.

    Raises
    ------
    JobError
        If there are fewer than k rows, or a person is there twice.
    VerificationError
        If what was written fails its re-check.
    """
    listener.step(planned.name, "cutting at medians")
    parts = _part(planned, engine)
    listener.step(planned.name, "writing the release")
    columns = [
        *({"name": identifier(c.name), "value": column(f"label{i}", "l")} for i, c in enumerate(planned.cuts)),
        *({"name": identifier(n), "value": column(f"o{i}", "p")} for i, (n, _, _) in enumerate(planned.others)),
    ]
    order = [c.name for c in planned.cuts] + [n for n, _, _ in planned.others]
    placed = [next(c for c in columns if c["name"].name == name) for name in planned.part.columns if name in order]
    written = staging.write(
        lambda target: render(
            "tables/stage_parts",
            target=target,
            points=parts.points,
            classes=parts.classes,
            labels=parts.labels,
            columns=placed,
        ),
        _note(planned, job_sha256),
    )
    listener.step(planned.name, "verifying what was written")
    found = _verify(planned, parts, written, engine)
    shown = {c.name: {"role": "quasi-identifying", "median": c.show} for c in planned.cuts}
    return PartitionRelease(
        name=planned.name,
        rows=found.rows,
        released=found.released,
        k=found.k,
        classes=found.classes,
        columns={**shown, **{name: {"role": role} for name, _, role in planned.others}},
        warnings=tuple(_warnings(planned)),
        asked=planned.part.privacy.k,
        heuristic=planned.heuristic,
        criteria=found.criteria,
    )


def recheck(planned: PartitionPlan, note: Mapping[str, object], written: exp.Expr, engine: Engine) -> PartitionVerified:
    """Verify a published release against the source as it is now.

    Raises
    ------
    VerificationError
        If the release is not what job, note and source say.
    """
    wanted = _note(planned, "").content
    if any(note.get(name) != wanted[name] for name in ("kind", "method", "criteria", "columns_cut")):
        raise VerificationError(
            f"{planned.key}: the release was made with other columns or other criteria than the job states",
            key=planned.key,
        )
    return _verify(planned, _part(planned, engine), written, engine)


def _note(planned: PartitionPlan, job_sha256: str) -> Note:
    content = {
        "kind": "table",
        "method": "mondrian",
        "criteria": {"k": planned.part.privacy.k, **_beyond_k(planned)},
        "columns_cut": {c.name: c.show for c in planned.cuts},
        "job_sha256": job_sha256,
    }
    shown = {c.name: f"quasi-identifying, {c.show} of a class cut at medians" for c in planned.cuts}
    return Note(planned.name, content, {**shown, **{n: f"{role}, as in the source" for n, _, role in planned.others}})


def _beyond_k(planned: PartitionPlan) -> dict[str, object]:
    """What else was asked, as the job says it; nothing where it is k alone."""
    privacy = planned.part.privacy
    asked = {
        "l_diversity": [entry.model_dump() for entry in privacy.l_diversity],
        "t_closeness": [entry.model_dump() for entry in privacy.t_closeness],
    }
    return {name: entries for name, entries in asked.items() if entries}


@dataclass(frozen=True, slots=True)
class _Parts:
    points: exp.Table
    classes: exp.Table
    labels: exp.Table


def _part(planned: PartitionPlan, engine: Engine) -> _Parts:
    """The rows as points, their classes, and each class's box and labels."""
    _check_rows(planned, engine)
    cuts = [{"name": identifier(f"q{i}"), "value": c.value} for i, c in enumerate(planned.cuts)]
    points = engine.workbench(f"{planned.name}_points")
    engine.execute(
        render(
            "tables/keep_points",
            points=points,
            source=planned.source,
            cuts=cuts,
            others=[
                {"name": identifier(f"o{i}"), "value": released_value(c)} for i, (_, c, _) in enumerate(planned.others)
            ],
        )
    )
    dimensions = [Dimension(f"q{i}", i) for i in range(len(cuts))]
    settings = Mondrian(planned.part.privacy.k, planned.heuristic, "source")  # missing values share their class's label
    places = {n: identifier(f"o{i}") for i, (n, _, _) in enumerate(planned.others)}
    refuse_whole(planned.criteria, points, places, f"{planned.key}.privacy", engine)
    checks = checks_of(planned.criteria, places, points, planned.name, engine)
    classes, boxes = partition_boxes(points, dimensions, settings, engine, f"{planned.name}_mondrian", checks)
    means = engine.query(render("tables/average_parts", points=points, classes=classes, cuts=cuts))
    labels = engine.put(f"{planned.name}_boxes", _labels(planned, boxes, means))
    return _Parts(points, classes, labels)


def _check_rows(planned: PartitionPlan, engine: Engine) -> None:
    person = column(planned.person, "s") if planned.person else None
    row = engine.query(render("tables/check_person", source=planned.source, person=person)).to_pylist()[0]
    key, k = f"{planned.key}.person", planned.part.privacy.k
    if row["keyed"] < row["rows"] or (row["persons"] < row["rows"] and planned.person is not None):
        raise JobError(f"{key}: {planned.person} is NULL or there twice; give one row per person", key=key)
    if row["rows"] < k:
        key = f"{planned.key}.privacy.k"
        raise JobError(f"{key}: is {k}, and {planned.source_label} has {row['rows']} rows (after where)", key=key)


def _labels(planned: PartitionPlan, boxes: Mapping[int, Box], means: pa.Table) -> pa.Table:
    """For each class and column: label, low, high, and whether a missing value lies in the box."""
    numbers = means.column("class").to_pylist()
    found: dict[str, Any] = {"class": pa.array(numbers, pa.int64())}
    for i, cut in enumerate(planned.cuts):
        mean = means.column(f"q{i}").to_pylist()
        low, high, missing = ([getattr(boxes[c], side)[i] for c in numbers] for side in ("low", "high", "missing"))
        if cut.show == "mean":
            found[f"label{i}"] = pa.array(mean, pa.float64())
        else:
            shown = [_range(cut.source.kind, *bounds) for bounds in zip(low, high, missing, strict=True)]
            found[f"label{i}"] = pa.array(shown, pa.string())
        found[f"low{i}"], found[f"high{i}"] = pa.array(low, pa.float64()), pa.array(high, pa.float64())
        found[f"missing{i}"] = pa.array(missing, pa.bool_())
    return pa.table(found)


def _range(kind: str, low: float | None, high: float | None, missing: bool) -> str:
    """A box's side as text: ``(40, 50]``, ``≤ 40``, ``> 50 or missing``, ``*``."""
    if low is None and high is None:
        return "*"
    if low is None:
        return f"≤ {_shown(kind, high)}"
    if high is None:
        return f"> {_shown(kind, low)}" + (" or missing" if missing else "")
    return f"({_shown(kind, low)}, {_shown(kind, high)}]"


def _shown(kind: str, cut: float | None) -> str:
    value = 0.0 if cut is None else cut
    if kind in ("date", "timestamp"):
        moment = EPOCH + timedelta(microseconds=int(value))
        return moment.date().isoformat() if kind == "date" else moment.isoformat(sep=" ")
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(np.float64(value)))


def _verify(planned: PartitionPlan, parts: _Parts, written: exp.Expr, engine: Engine) -> PartitionVerified:
    """Count the rows of each box anew, from the source's values, and compare with what was written.

    So, too, what the other columns hold: the rows of a class have the values that the source gives them, each as often.
    """
    there = [c.name for c in engine.columns(written, key=planned.key)]
    shown = {c.name for c in planned.cuts} | {n for n, _, _ in planned.others}
    if there != [name for name in planned.part.columns if name in shown]:
        raise VerificationError(
            f"{planned.key}: the release failed its re-check: its columns are not those that the job names",
            key=planned.key,
        )
    sides = ("label", "low", "high", "missing")
    columns = [
        {"name": identifier(f"q{i}"), "released": identifier(c.name), **{s: identifier(f"{s}{i}") for s in sides}}
        for i, c in enumerate(planned.cuts)
    ]
    others = [{"name": identifier(f"o{i}"), "released": identifier(n)} for i, (n, _, _) in enumerate(planned.others)]
    places = {"points": parts.points, "boxes": parts.labels, "written": written}
    row = engine.query(render("tables/compare_parts", **places, columns=columns, others=others)).to_pylist()[0]
    problems = []
    if row["smallest"] < planned.part.privacy.k:
        problems.append(f"its smallest class has {row['smallest']} rows, not {planned.part.privacy.k}")
    if row["differing"] or not row["rows"] == row["boxed"] == row["written"]:
        problems.append(f"{row['differing']} classes are not what the source gives")
    _refuse(planned, problems)
    criteria = achieved(planned.criteria, written, [c.name for c in planned.cuts], planned.key, engine)
    if row["changed"]:
        _refuse(planned, [f"in {row['changed']} classes, the other columns do not hold what the source gives"])
    return PartitionVerified(int(row["rows"]), int(row["written"]), int(row["smallest"]), int(row["classes"]), criteria)


def _refuse(planned: PartitionPlan, problems: Sequence[str]) -> None:
    if problems:
        raise VerificationError(
            f"{planned.key}: the release failed its re-check: {'; '.join(problems)}", key=planned.key
        )


def _warnings(planned: PartitionPlan) -> list[str]:
    return [
        f"{planned.key}.columns.{c.name}: the mean of a class can be solved for by k - 1 of its members who pool what "
        'they know; median = "range" shows cuts alone'
        for c in planned.cuts
        if c.show == "mean"
    ]
