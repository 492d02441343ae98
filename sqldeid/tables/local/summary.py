"""What a release by local recoding tells of itself, from its classes and its re-check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.result import Criterion, risk_of
from sqldeid.tables.criteria.k_anonymity import KAnonymity
from sqldeid.tables.disguise.disguise import pseudonyms, warnings_of
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.local.codes import with_labels
from sqldeid.tables.local.layers import Layers
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.result import LayerResult, LocalColumn, LocalRelease, LocalVerified
from sqldeid.tables.peel.problem import LocalProblem, Partition
from sqldeid.tables.plan.demands import DRAWN_ANEW
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.rows.hidden import hidden


@dataclass(frozen=True, slots=True)
class Found:
    """What was found on the way to a release.

    Parameters
    ----------
    problem
        The table as classes were asked of it; `layers` has its rows apart where some are held back.
    seconds
        That forming classes took.
    moved
        Rows and bytes that came out of the engine or went to it.
    leaves
        The leaves of each combination of `layers`; shape (columns, combinations).
    beyond
        Rows that are suppressed beyond k, where levels are chosen by k alone.
    """

    folded: Folded
    problem: LocalProblem
    parts: Partition
    layers: Layers
    verified: LocalVerified
    seconds: float
    moved: tuple[int, int]
    leaves: Ints
    beyond: int | None = None


def summarised(planned: LocalPlan, found: Found, written: exp.Expr, engine: Engine) -> LocalRelease:
    """The result of a release that was written and verified. Cost: no statement but for the release's types."""
    plan, k = planned.table, planned.table.demands.k
    parts, layers, verified = found.parts, found.layers, found.verified
    search, problem = plan.search, found.problem
    by_column = layers.losses()
    weights = np.array([float(a.weight) for a in problem.attributes])
    losses = {name: float((values * weights).sum() / weights.sum()) for name, values in by_column.items()}
    size, classes = np.unique(problem.rows, return_counts=True)
    source = dict(zip(size.tolist(), classes.tolist(), strict=True))
    promise = KAnonymity(k).promise_for(plan.unit)
    return LocalRelease(
        name=plan.name,
        rows=verified.rows,
        released=verified.released,
        suppressed=verified.suppressed,
        k=verified.k,
        classes=verified.classes,
        criteria=(Criterion("k-anonymity", None, k, verified.k, promise), *verified.criteria),
        loss=losses,
        bound=parts.least,
        gap=max(losses[search.loss] - parts.least, 0.0),
        layers=tuple(_layers(planned, layers)),
        columns=_labelled(_columns(planned, layers, by_column["loss"].tolist(), written, engine), found),
        risk={"source": risk_of(source, f"{plan.unit}s"), "release": risk_of(verified.sizes, f"{plan.unit}s")},
        search={
            "method": "local",
            "loss": search.loss,
            "lattice_size": plan.lattice.size,
            "combinations": len(problem.rows),
            "stopped": parts.stopped,
            "seconds": round(found.seconds, 4),
            **_beyond(plan, found.beyond),
        },
        warnings=(*warnings_of(plan, _at_top(planned, layers)), *_warnings(planned, found)),
        recoding=planned.recoding,
        hierarchies=planned.hierarchies_name if planned.hierarchies else None,
        pseudonymised=tuple(c.name for c in pseudonyms(plan)),
        suppression_limit=plan.demands.suppression_limit,
        unit=plan.unit,
        moved={"rows": found.moved[0], "bytes": found.moved[1]},
    )


def _beyond(plan: TablePlan, rows: int | None) -> dict[str, object]:
    """By k: how many rows other criteria suppressed, and the greatest share of all that they might."""
    if rows is None:
        return {}
    return {"choose": "by-k", "suppressed_beyond_k": rows, "criteria_limit": plan.demands.criteria_limit}


def _at_top(planned: LocalPlan, layers: Layers) -> set[str]:
    """The quasi-identifying columns that all layers show as one value."""
    qis = planned.table.qis
    return {q.name for i, q in enumerate(qis) if all(0 < node[i] == q.hierarchy.height - 1 for node in layers.nodes)}


def _layers(planned: LocalPlan, layers: Layers) -> Iterator[LayerResult]:
    """Each layer; its rows and classes where they are no fewer than k."""
    names, k = [q.name for q in planned.table.qis], layers.problem.k
    here = layers.released
    pairs = np.unique(np.stack([layers.layer[here], layers.owner[here]]), axis=1)
    classes = np.bincount(pairs[0], minlength=len(layers.nodes)).tolist()
    for i, (node, rows) in enumerate(zip(layers.nodes, layers.rows_by_layer().tolist(), strict=True)):
        few = rows < k
        yield LayerResult(
            i + 1, dict(zip(names, node, strict=True)), None if few else rows, None if few else classes[i]
        )


def _labelled(columns: dict[str, LocalColumn], found: Found) -> dict[str, LocalColumn]:
    """The columns with the labels that released rows show."""
    layers, here = found.layers, found.layers.released
    rows = layers.problem.rows[here]
    for i, coded in enumerate(found.folded.columns):
        name = coded.qi.name
        columns[name] = with_labels(columns[name], coded, layers.levels[i][here], found.leaves[i][here], rows)
    return columns


def _columns(
    planned: LocalPlan, layers: Layers, losses: list[float], written: exp.Expr, engine: Engine
) -> dict[str, LocalColumn]:
    plan = planned.table
    types = {c.name: c.shown_type.replace(", ", ",") for c in engine.columns(written, key=plan.key)}
    shares = dict(zip((q.name for q in plan.qis), layers.rows_by_level(), strict=True))
    lost = dict(zip((q.name for q in plan.qis), losses, strict=True))
    found = {}
    for c in plan.columns:
        if not isinstance(c, QuasiIdentifier):
            found[c.name] = LocalColumn(c.role, shown=c.shown, type=types.get(c.name))
            continue
        rows, h = shares[c.name], c.hierarchy
        found[c.name] = LocalColumn(
            "quasi-identifying",
            height=h.height,
            level_names=tuple(h.level_names),
            levels=tuple((rows / max(int(rows.sum()), 1)).tolist()),
            hierarchy=c.hierarchy_name,
            loss=lost[c.name],
            shown=c.shown,
            type=types.get(c.name),
        )
    return found


def _warnings(planned: LocalPlan, found: Found) -> Iterator[str]:
    key = planned.key
    if found.parts.stopped:
        yield (
            f"{key}.search.time_limit: the time was over before classes were as good as they get; another run may "
            "release others, and whoever has both may learn more than from each"
        )
    if planned.table.search.blunt:
        yield f"{key}.search.blunt: {DRAWN_ANEW}"
    if not found.verified.released:
        yield f"{key}: the release is empty: every row is suppressed"
    for c in found.folded.columns:
        if len(c.marginal.rows[0]) == 1:
            yield f"{key}.columns.{c.qi.name}: has one value only; it tells nothing and costs nothing"
    yield from hidden(planned.table, found.folded.columns)
