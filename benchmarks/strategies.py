"""Whole runs of every strategy, loss and size: what each takes on the same data."""

from __future__ import annotations

from benchmarks.must import RUNS, Tables
from benchmarks.process import Row, RunError, measure
from benchmarks.sources import Bench, Task

METHODS = ("frontier", "best-first", "flash", "ola", "inverse-ola", "datafly", "igreedy")
_PATIENCE = 60.0
_MAX_LOSS = 0.3
"""Greatest generalisation that `inverse-ola` is allowed, in the unit of `loss`."""


def _tried(task: Task, bench: Bench) -> Row:
    """The row of a run, or why there is none: one must not cost the others."""
    try:
        return measure(task, bench)
    except RunError as error:
        return {"data": task.data, "k": task.k, "limit": task.limit, "method": task.method, "error": str(error)}


def methods(bench: Bench) -> Tables:
    """Every named strategy on Adult and on the first eight attributes of `wide`."""
    tasks = [
        Task(
            data,
            attributes=attributes,
            method=method,
            loss=loss,
            time_limit=_PATIENCE,
            max_loss=_MAX_LOSS if method == "inverse-ola" else None,
        )
        for data, attributes in (("adult", 0), ("wide", 8))
        for loss in ("loss", "prec")
        for method in METHODS
    ]
    return {RUNS: [_tried(task, bench) for task in (tasks[:2] if bench.quick else tasks)]}


def losses(bench: Bench) -> Tables:
    """Every loss and several limits and k on Adult, by the default search."""
    grid = [(5, 0.0), (5, 0.05), (5, 0.2), (2, 0.05), (25, 0.05), (100, 0.05)]
    tasks = [Task("adult", k=k, limit=limit, loss=loss) for loss in ("prec", "dm_star", "entropy") for k, limit in grid]
    tasks += [Task("adult", k=k, limit=limit) for k, limit in grid[3:]]
    return {RUNS: [_tried(task, bench) for task in (tasks[1::6] if bench.quick else tasks)]}


def sizes(bench: Bench) -> Tables:
    """`wide` with few and with many attributes: the ends that no limit speaks of."""
    tasks = [Task("wide", attributes=n) for n in (5, 6, 7, 8)]
    tasks += [Task("wide", attributes=n, time_limit=10) for n in (13, 14, 15)]
    return {RUNS: [_tried(task, bench) for task in (tasks[2:4] if bench.quick else tasks)]}
