"""What a report tells beyond the releases: other k and limits, and what sets of columns tell apart in the source."""

from __future__ import annotations

from dataclasses import replace

from sqldeid.engine.base import Engine
from sqldeid.making import Hearing
from sqldeid.result import TableRelease
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.explain import unique_sets
from sqldeid.tables.release.node import checker_of
from sqldeid.tables.release.tradeoff import Asked, trade

KS, LIMITS = (2, 3, 5, 10, 25, 100), (0.0, 0.01, 0.05, 0.1)
"""Beside the job's own k and limit."""

LEAST_SECONDS = 5.0
"""That all pairs together may take, however quick the search was."""


def compare(planned: TablePlan, release: TableRelease, engine: Engine, listener: Hearing) -> TableRelease:
    """The release with what a report tells of it; a drawn node has no neighbours that it could be compared with."""
    if planned.sampled:
        return release
    demands = planned.demands
    listener.step(planned.name, "comparing other k and limits")
    folded = fold(planned, engine)
    ks = tuple(k for k in {*KS, demands.k} if k <= folded.rows)
    asked = Asked(ks, tuple({*LIMITS, demands.suppression_limit}))
    seconds = max(LEAST_SECONDS, 3 * release.search.seconds)
    traded = trade(planned, engine, asked, listener, folded=folded, seconds=seconds)
    sets = unique_sets(planned, checker_of(planned, folded, engine), demands.k)
    return replace(release, tradeoff=traded, uniqueness=sets)
