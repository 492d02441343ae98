"""What k and the suppression limit cost on Adult, all pairs in one go, against the dearest pair alone."""

from __future__ import annotations

from itertools import product
from time import process_time

from benchmarks.inside import Inside, folded
from benchmarks.must import MUST, Demand, Tables, at_most
from benchmarks.process import Row
from benchmarks.sources import Bench, Task
from sqldeid.tables.release.release import Listener
from sqldeid.tables.release.tradeoff import Asked, trade
from sqldeid.tables.search import search

KS, LIMITS = (2, 3, 5, 10, 25, 100), (0.0, 0.01, 0.05, 0.1)
ROUNDS = 3
"""The median of so many; time is the processor's, so that other work on the machine does not count."""


def tradeoff(bench: Bench) -> Tables:
    """24 pairs in one process on one fold."""
    with folded(Task("adult"), bench) as inside:
        alone = {pair: _alone(inside, *pair) for pair in product(KS, LIMITS)}
        dearest = max(alone, key=lambda pair: alone[pair][0])
        one = sorted(_alone(inside, *dearest)[0] for _ in range(ROUNDS))[ROUNDS // 2]
        all_ = sorted((_together(inside, alone) for _ in range(ROUNDS)), key=lambda found: found[0])[ROUNDS // 2]
    ratio = at_most(all_[0] / one, 3, "× the dearest search, processor time")
    same = Demand("the same losses", f"{all_[2]} of {len(alone)}", all_[2] == len(alone))
    row: Row = {
        "case": f"Adult, {len(alone)} pairs of k and limit",
        "must": f"{ratio.must}, {same.must}",
        "measured": f"{ratio.measured} (k={dearest[0]}, {dearest[1]:g}: {one:.2f} s), {same.measured}, {all_[1]} nodes",
        "holds": ratio.holds and same.holds,
        "ARX 3.9": "-",
        "process_s": round(all_[0], 2),
        "peak_mb": "-",
    }
    return {MUST: [row]}


def _alone(inside: Inside, k: int, limit: float) -> tuple[float, float]:
    """Processor seconds of one search, and its loss."""
    started = process_time()
    outcome = search("frontier", inside.problem(k=k, limit=limit))
    return process_time() - started, outcome.loss


def _together(inside: Inside, alone: dict[tuple[int, float], tuple[float, float]]) -> tuple[float, int, int]:
    """Processor seconds of all pairs, nodes counted, and pairs with the loss that they have alone."""
    started = process_time()
    traded = trade(inside.plan, inside.engine, Asked(KS, LIMITS), Listener(), folded=inside.folded)
    spent = process_time() - started
    same = sum(abs((p.loss or 0) - alone[p.k, p.suppression_limit][1]) < 1e-9 for p in traded.points)
    return spent, traded.checks, same
