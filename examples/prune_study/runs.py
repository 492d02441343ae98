"""One search of the study: what it checked, what its stores were asked, how its best node came about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time

import numpy as np
from sets import Data

import sqldeid
from sqldeid.engine.base import Engine
from sqldeid.run import reading
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.node import checker_of
from sqldeid.tables.search import Outcome, Problem, Progress, Strategy
from sqldeid.tables.search.antichain import Antichain, Store

K, LIMIT = 5, 0.05
"""The source's: 5-anonymity, at most 5 % of the rows suppressed, Iyengar's loss."""


class Counted(Antichain):
    """The library's store, with what it was asked.

    Attributes
    ----------
    queries, hits, inserts
        Questions, those answered by yes, and nodes taken in.
    largest
        The most members that the antichain had.
    """

    def __init__(self, *, upwards: bool) -> None:
        super().__init__(upwards=upwards)
        self.upwards, self.adding = upwards, False
        self.queries = self.hits = self.inserts = self.largest = 0

    def covers(self, node: Node) -> bool:
        """As of the library's store; counted."""
        answer = super().covers(node)
        if not self.adding:  # a store asks itself before it takes a node in
            self.queries += 1
            self.hits += answer
        return answer

    def add(self, node: Node) -> bool:
        """As of the library's store; counted."""
        self.adding = True
        taken = super().add(node)
        self.adding = False
        self.inserts += taken
        self.largest = max(self.largest, len(self))
        return taken

    @property
    def memory(self) -> int:
        """Bytes of the tree: its branches, their tables of children, and their ranks."""
        return _bytes_of(self._root)


def _bytes_of(branch: object) -> int:
    children: dict[int, object] = branch.children  # type: ignore[attr-defined]
    own = sys.getsizeof(branch) + sys.getsizeof(children) + sys.getsizeof(branch.rank)  # type: ignore[attr-defined]
    return own + sum(_bytes_of(child) for child in children.values())


class Flags:
    """The explicit store: a flag for every node of the lattice, set for all that inherit the property."""

    def __init__(self, heights: tuple[int, ...], *, upwards: bool) -> None:
        self.upwards, self._flags = upwards, np.zeros(heights, dtype=np.bool_)

    def covers(self, node: Node) -> bool:
        """Whether the property is known of the node."""
        return bool(self._flags[node])

    def add(self, node: Node) -> bool:
        """Set the flags of all that inherit the property; False where the node's is set."""
        if self._flags[node]:
            return False
        self._flags[tuple(slice(x, None) if self.upwards else slice(0, x + 1) for x in node)] = True
        return True

    @property
    def memory(self) -> int:
        """Bytes: one a node."""
        return self._flags.nbytes


@dataclass(frozen=True)
class Point:
    """A moment of a search: CPU seconds, checks, and the least loss so far."""

    seconds: float
    checks: int
    loss: float


@dataclass(frozen=True)
class Run:
    """What a search came to. `seconds` are CPU seconds of the process; `stores` in the order that they were made."""

    outcome: Outcome
    seconds: float
    trace: tuple[Point, ...]
    stores: tuple[Counted | Flags, ...]


@dataclass(frozen=True)
class Inside:
    """A folded table, in an engine with one thread, so that CPU seconds are the search's."""

    engine: Engine
    plan: TablePlan
    folded: Folded

    def problem(self, progress: Callable[[Progress], None] | None = None, **limits: float | None) -> Problem:
        """A fresh search; its clock starts now."""
        rows, marginals = self.folded.rows, [c.marginal for c in self.folded.columns]
        return Problem(
            self.plan.lattice,
            marginals,
            rows,
            allowed_rows(LIMIT, rows),
            make_loss("loss", marginals, rows),
            checker_of(self.plan, self.folded, self.engine),
            progress=progress,
            **limits,  # type: ignore[arg-type]
        )

    def run(self, strategy: Strategy, stores: str = "", **limits: float | None) -> Run:
        """Search and watch: `stores` are "counted" or "flags" where the strategy takes some."""
        trace: list[Point] = []
        made: list[Counted | Flags] = []

        def watch(now: Progress) -> None:
            if now.best is not None and (not trace or now.best < trace[-1].loss):
                trace.append(Point(process_time() - started, now.checks, now.best))

        def store(*, upwards: bool) -> Counted | Flags:
            flags = stores == "flags"
            made.append(Flags(self.plan.lattice.heights, upwards=upwards) if flags else Counted(upwards=upwards))
            return made[-1]

        started = process_time()
        problem = self.problem(watch, **limits)
        outcome = _with(strategy, store)(problem) if stores else strategy(problem)
        return Run(outcome, process_time() - started, tuple(trace), tuple(made))


def _with(strategy: Callable[..., Outcome], store: Store) -> Strategy:
    return lambda problem: strategy(problem, store)


@contextmanager
def folded(data: Data, attributes: int) -> Iterator[Inside]:
    """The first columns of a data set, read and folded once."""
    names = list(data.hierarchies)[:attributes]
    columns = {c: {"role": "quasi-identifying", "hierarchy": data.hierarchies[c]} for c in names}
    table = {
        "source": data.table,
        "person": "id",
        "columns": columns,
        "privacy": {"k": K, "suppression_limit": LIMIT},
    }
    job = sqldeid.Job.parse({"tables": {"searched": table}}, name="study.py")
    with reading(data.database, data.database, sqldeid.Settings(threads=1)) as engine:
        plan = planning.plan("searched", job.tables["searched"], engine, job.folder)
        inside = Inside(engine, plan, fold(plan, engine))
        inside.problem().ask([plan.lattice.bottom])  # what is loaded once must not count for the first search
        yield inside
