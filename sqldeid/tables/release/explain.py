"""Compute what a report adds to a release: the nodes just below, a value's way up, other k, sets of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from sqldeid.result import Neighbour, SetRisk, TableRelease
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.persons import PersonJudge
from sqldeid.tables.check.thresholds import Thresholds
from sqldeid.tables.fold.fold import Coded
from sqldeid.tables.model.evaluation import Evaluation, admissible
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.search import Outcome
from sqldeid.tables.write.stage import Chosen

FREQUENT = 11
"""Rows that a value must have at least to be shown as an example, whatever k is."""

MOST_SETS = 64
"""Column sets whose uniqueness is told: single columns and pairs, and all together."""


def unique_sets(plan: TablePlan, checker: Checker, k: int) -> tuple[SetRisk, ...]:
    """What single columns, pairs and all columns tell apart in the source: those first that single out most.

    Where a person may have many rows: rows in classes of one person, and of fewer than k persons.

    A set is a node of the lattice: its columns as they are, the others at the top. Cost: one statement.
    """
    names = [q.name for q in plan.qis]
    every = tuple(range(len(names)))
    asked = dict.fromkeys(islice(((*combinations(every, 1), *combinations(every, 2))), MOST_SETS - 1))
    asked[every] = None
    nodes = {s: tuple(0 if j in s else top for j, top in enumerate(plan.lattice.top)) for s in asked}
    if isinstance(checker.judge, PersonJudge):
        arms = [checker.arm(i, node) for i, node in enumerate(nodes.values())]
        rows = checker.judge.rows_below(arms, (2, k))
        sets = [SetRisk(tuple(names[j] for j in s), *rows[i]) for i, s in enumerate(nodes)]
    else:
        answers = Thresholds(checker, tuple(sorted({2, k})), -1)
        alone, below = (answers.at(least, list(nodes.values())) for least in (2, k))
        counted = zip(nodes, alone, below, strict=True)
        sets = [SetRisk(tuple(names[j] for j in s), a.failing, b.failing) for s, a, b in counted]
    return tuple(sorted(sets, key=lambda s: (-s.alone, -s.below_k, len(s.columns), s.columns)))


def explained(result: TableRelease, chosen: Chosen, outcome: Outcome, checker: Checker) -> TableRelease:
    """The result with its neighbours and examples. Cost: one statement on the folded classes."""
    columns = dict(result.columns)
    for coded in chosen.folded.columns:
        name = coded.qi.name
        shown = None if chosen.plan.many else example(coded, max(FREQUENT, chosen.k))  # rows may be of one person
        columns[name] = replace(columns[name], example=shown)
    return replace(result, columns=columns, neighbours=tuple(_neighbours(chosen, outcome, checker)))


def example(coded: Coded, least_rows: int) -> tuple[str, ...] | None:
    """The most frequent value's label at every level, NULL aside; None where it has fewer rows than that."""
    there = np.array([label is not None for label in coded.hierarchy.labels[0]])
    rows = np.where(there, coded.marginal.rows[0], 0)
    leaf = int(rows.argmax())
    if rows[leaf] < least_rows:
        return None
    levels = enumerate(coded.hierarchy.groups)
    labels = (coded.qi.labels(coded.hierarchy, level)[groups[leaf]] for level, groups in levels)
    return tuple("NULL" if label is None else str(label) for label in labels)


def _neighbours(chosen: Chosen, outcome: Outcome, checker: Checker) -> Iterator[Neighbour]:
    """The nodes one level finer in one column, by column."""
    node = outcome.node
    finer = {j: tuple(x - (i == j) for i, x in enumerate(node)) for j, level in enumerate(node) if level}
    for (j, below), found in zip(finer.items(), checker(list(finer.values())), strict=True):
        yield _neighbour(chosen, chosen.folded.columns[j].qi.name, below, j, found, checker)


def _neighbour(chosen: Chosen, column: str, node: Node, j: int, found: Evaluation, checker: Checker) -> Neighbour:
    passes = admissible(found, checker.allowed)
    loss = None
    if passes:
        marginals = [c.marginal for c in chosen.folded.columns]
        measure = make_loss(chosen.plan.search.loss, marginals, chosen.folded.rows)
        loss = measure.value(measure.of(found))
    return Neighbour(column, node[j], found.failing, checker.allowed, loss)
