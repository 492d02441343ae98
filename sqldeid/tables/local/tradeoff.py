"""What local recoding loses for many k and suppression limits, from one fold.

Cost: the combinations are read once; classes are formed once for each k, and again for a limit only where those of a
greater limit suppress more rows than it allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic

from sqldeid.engine.base import Engine
from sqldeid.errors import NoSolutionError
from sqldeid.making import Hearing
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.local.combinations import problem_of, read_combinations, refuse_too_many
from sqldeid.tables.local.layers import layers_of
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.peel import partition
from sqldeid.tables.peel.problem import LocalProblem
from sqldeid.traded import LocalPoint


def trade_local(
    planned: LocalPlan,
    folded: Folded,
    engine: Engine,
    ks: Sequence[int],
    limits: Sequence[float],
    listener: Hearing,
) -> tuple[LocalPoint, ...]:
    """Loss and bound for every pair of k and limit, by k, then by limit.

    Raises
    ------
    JobError
        If the combinations do not fit into memory.
    """
    refuse_too_many(planned, folded, engine.bench)
    found = read_combinations(folded, engine.bench)
    problem = problem_of(planned, folded, found, engine.bench)
    points = [p for k in ks for p in _of_k(planned, replace(problem, k=k), folded.rows, limits, listener)]
    return tuple(sorted(points, key=lambda p: (p.k, p.suppression_limit)))


def _of_k(
    planned: LocalPlan, problem: LocalProblem, rows: int, limits: Sequence[float], listener: Hearing
) -> Iterator[LocalPoint]:
    """The pairs of one k, the greatest limit first: what it leaves out may be no more than a smaller one allows."""
    last: LocalPoint | None = None
    for limit in sorted(limits, reverse=True):
        allowed = allowed_rows(limit, rows)
        if last is None or last.suppressed is None or last.suppressed > allowed:
            listener.step(planned.name, f"forming classes for k = {problem.k}, limit {limit:g}")
            last = _point(planned, replace(problem, allowed=allowed), limit)
        else:
            last = replace(last, suppression_limit=limit, seconds=0.0)
        yield last


def _point(planned: LocalPlan, problem: LocalProblem, limit: float) -> LocalPoint:
    began = monotonic()
    try:
        parts = partition(problem)
    except NoSolutionError:
        return _without(problem, limit, began)
    layers = layers_of(problem, parts, blank=planned.table.demands.blanks)
    lost = int(problem.rows[~layers.released].sum())
    if lost > problem.allowed:
        return _without(problem, limit, began)
    return LocalPoint(
        k=problem.k,
        suppression_limit=limit,
        loss=parts.loss,
        bound=parts.least,
        suppressed=lost,
        classes=len(layers.sizes),
        layers=len(layers.nodes),
        stopped=parts.stopped,
        seconds=round(monotonic() - began, 4),
    )


def _without(problem: LocalProblem, limit: float, began: float) -> LocalPoint:
    seconds = round(monotonic() - began, 4)
    return LocalPoint(problem.k, limit, None, None, None, None, None, False, seconds)
