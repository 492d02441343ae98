"""Make a full-domain release once more, of some of its persons, for attacks that hold persons out of it."""

from __future__ import annotations

from sqlglot import exp

from sqldeid.tables.attacks.folding import folded_part
from sqldeid.tables.attacks.known import Released
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.plan.choosing import by_k, choosing
from sqldeid.tables.release.node import checker_of, choose, find_node, judged_by_all
from sqldeid.tables.search import Progress
from sqldeid.tables.write.draft import Draft


class _Silent:
    """Hears nothing: the release that is attacked is not the one that a run tells of."""

    def step(self, release: str, step: str) -> None:
        """Nothing."""

    def search(self, progress: Progress) -> None:
        """Nothing."""


def remake(draft: Draft, folded: Folded, people: exp.Table, persons: int) -> Released:
    """The release of the persons `train` of a table (`sqldeid.tables.attacks.known.Remake`), by the same search.

    Parameters
    ----------
    folded
        The whole source as it was folded, on the bench.

    Suppressed rows are not in it, also where the job blanks them. Cost: the search once more.

    Raises
    ------
    NoSolutionError
        If no node is admissible.
    """
    plan, engine = draft.plan, draft.engine
    part = folded_part(plan, folded, people, persons, engine.bench)
    checker = checker_of(plan, part, engine)
    chooser = checker_of(choosing(plan), part, engine) if by_k(plan) else checker
    outcome, found = find_node(choosing(plan), part, chooser, _Silent())
    if by_k(plan):
        outcome = judged_by_all(plan, part.rows, outcome, checker([outcome.node])[0])
    else:
        checker = found
    chosen = choose(plan.with_m(outcome.m), part, outcome, checker)
    assigned = engine.bench.make(
        "tables/attacks/assign_node",
        f"{plan.name}_assigned",
        classes=part.table,
        words=chosen.words,
        k=chosen.k,
        failing=chosen.failing,
    )
    return Released((outcome.node,), assigned)
