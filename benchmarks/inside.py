"""Searches without the program around them: a database is folded once, then searched as often as wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.sources import Bench, Task
from sqldeid.engine.base import Engine
from sqldeid.engine.opening import Settings
from sqldeid.job import Job
from sqldeid.run import reading
from sqldeid.tables.check.check import Checker
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.search import Problem


@dataclass(frozen=True, slots=True)
class Inside:
    """A folded table and the engine that holds it."""

    engine: Engine
    plan: TablePlan
    folded: Folded

    def problem(
        self,
        *,
        k: int = 5,
        limit: float = 0.05,
        loss: str = "loss",
        time_limit: float | None = None,
        checks_limit: int | None = None,
    ) -> Problem:
        """A fresh search problem; its clock starts now."""
        allowed = allowed_rows(limit, self.folded.rows)
        marginals = [c.marginal for c in self.folded.columns]
        return Problem(
            self.plan.lattice,
            marginals,
            self.folded.rows,
            allowed,
            make_loss(loss, marginals, self.folded.rows),
            Checker(self.engine, self.folded, k, allowed, self.plan.name),
            time_limit=time_limit,
            checks_limit=checks_limit,
        )


@contextmanager
def folded(task: Task, bench: Bench) -> Iterator[Inside]:
    """The classes of a task's source."""
    path = bench.database(task.data, task.millions)
    job = Job.parse(task.job(bench))
    with reading(path, path, Settings()) as engine:
        plan = planning.plan(task.data, job.tables[task.data], engine, job.folder)
        inside = Inside(engine, plan, fold(plan, engine))
        inside.problem().ask([plan.lattice.bottom])  # what is loaded once must not be counted to the first search
        yield inside
