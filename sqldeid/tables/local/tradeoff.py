"""What local recoding loses for many k and suppression limits, from one fold.

Cost: the combinations are read once; classes are formed once for each k, and again for a limit only where those of a
greater limit suppress more rows than it allows. Where time is given, each k takes an equal share of what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from sqldeid.tables.plan.choosing import choosing
from sqldeid.traded import LocalPoint


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which k and limits are asked for, all with all.

    Parameters
    ----------
    seconds
        For all pairs together, where given: classes are then as good as they got, and their points say so.
    known
        The answer of one pair, where a release has given it already; it answers every limit that it keeps, and all
        limits of its k if it suppresses nobody, for then none of them binds.
    """

    ks: Sequence[int]
    limits: Sequence[float]
    seconds: float | None = None
    known: LocalPoint | None = None


def trade_local(
    planned: LocalPlan, folded: Folded, asked: Pairs, engine: Engine, listener: Hearing
) -> tuple[LocalPoint, ...]:
    """Loss and bound for every pair of k and limit, by k, then by limit.

    Raises
    ------
    JobError
        If the combinations do not fit into memory.
    """
    ks, known = asked.ks, asked.known
    planned = replace(planned, table=choosing(planned.table))
    refuse_too_many(planned, folded, engine.bench)
    found = read_combinations(folded, engine.bench)
    problem = problem_of(planned, folded, found, engine.bench)
    points: list[LocalPoint] = []
    began = monotonic()
    for place, k in enumerate(ks):
        own = replace(problem, k=k, seconds=_share(problem, asked.seconds, monotonic() - began, len(ks) - place))
        of_k = None if known is None or known.k != k else known
        points += _of_k(planned, own, folded.rows, asked.limits, listener, of_k)
    return tuple(sorted(points, key=lambda p: (p.k, p.suppression_limit)))


def _share(problem: LocalProblem, seconds: float | None, spent: float, left: int) -> float | None:
    """Seconds that each run of the next k may take; None where nothing limits it."""
    if seconds is None:
        return problem.seconds
    own = max(seconds - spent, 0.0) / left
    return own if problem.seconds is None else min(own, problem.seconds)


def _of_k(
    planned: LocalPlan,
    problem: LocalProblem,
    rows: int,
    limits: Sequence[float],
    listener: Hearing,
    known: LocalPoint | None,
) -> Iterator[LocalPoint]:
    """The pairs of one k, the greatest limit first: what it leaves out may be no more than a smaller one allows."""
    last = known if known is not None and known.suppressed == 0 else None
    for limit in sorted(limits, reverse=True):
        allowed = allowed_rows(limit, rows)
        if known is not None and known.suppression_limit == limit:
            last = known
        elif last is None or last.suppressed is None or last.suppressed > allowed:
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
