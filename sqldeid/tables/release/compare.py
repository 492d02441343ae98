"""What a report tells beyond the releases: other k and limits, and what sets of columns tell apart in the source."""

from __future__ import annotations

from dataclasses import replace

from sqldeid.engine.base import Engine
from sqldeid.making import Hearing
from sqldeid.result import TableRelease
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.result import LocalRelease
from sqldeid.tables.plan.choosing import by_k
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.explain import unique_sets
from sqldeid.tables.release.node import checker_of
from sqldeid.tables.release.tradeoff import Asked, Beside, Trading, trade_folded
from sqldeid.traded import LocalPoint

KS, LIMITS = (2, 3, 5, 10, 25, 100), (0.0, 0.01, 0.05, 0.1)
"""Beside the job's own k and limit."""

LEAST_SECONDS = 5.0
"""That all pairs together may take, of each family, however quick the search was."""


def compare(planned: TablePlan, release: TableRelease, engine: Engine, listener: Hearing) -> TableRelease:
    """The release with what a report tells of it; a drawn node has no neighbours that it could be compared with."""
    if planned.sampled:
        return release
    listener.step(planned.name, "comparing other k and limits")
    folded = fold(planned, engine)
    seconds = max(LEAST_SECONDS, 3 * release.search.seconds)
    trading = Trading(planned, folded, engine, listener)
    traded = trade_folded(trading, _asked(planned, folded), seconds=seconds)
    sets = unique_sets(planned, checker_of(planned, folded, engine), planned.demands.k)
    return replace(release, tradeoff=traded, uniqueness=sets)


def compare_local(planned: LocalPlan, release: LocalRelease, engine: Engine, listener: Hearing) -> LocalRelease:
    """The release by local recoding with what other k and limits cost, by it and by one node for all rows."""
    listener.step(planned.name, "comparing other k and limits")
    plan = planned.table
    folded = fold(plan, engine)
    spent = release.search["seconds"]
    seconds = max(LEAST_SECONDS, 3 * (float(spent) if isinstance(spent, (int, float)) else 0.0))
    beside = Beside(planned, _point_of(planned, release))
    traded = trade_folded(Trading(plan, folded, engine, listener), _asked(plan, folded), beside, seconds)
    return replace(release, tradeoff=traded)


def _asked(planned: TablePlan, folded: Folded) -> Asked:
    """The pairs that a report compares, the job's own among them."""
    demands = planned.demands
    ks = tuple(k for k in {*KS, demands.k} if k <= folded.rows)
    return Asked(ks, tuple({*LIMITS, demands.suppression_limit}))


def _point_of(planned: LocalPlan, release: LocalRelease) -> LocalPoint | None:
    """What the release has found of its own pair; None where it is less: held to a ledger, or to more than k."""
    if release.ledger is not None or by_k(planned.table):
        return None
    loss, demands = str(planned.table.search.loss), planned.table.demands
    return LocalPoint(
        k=demands.k,
        suppression_limit=demands.suppression_limit,
        loss=release.loss[loss],
        bound=release.bound,
        suppressed=release.suppressed,
        classes=release.classes,
        layers=len(release.layers),
        stopped=bool(release.search["stopped"]),
        seconds=0.0,
    )
