"""The criteria beyond k, judged anew for a certificate: on the proof's own groups, with other formulas than the search.

For every class that fails, the rows that fail at every specialisation, too (soundness.md 9): all where the class fails
k or has too few values; ⌈n·(distance − t)⌉ for t-closeness; the rows above m for m-concealing; one row otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.sql import identifier, render
from sqldeid.tables.concealment import above
from sqldeid.tables.evaluation import Counts
from sqldeid.tables.judgement import kind_of, rank_values
from sqldeid.tables.plan import TablePlan
from sqldeid.tables.privacy import ClassCriterion, MConcealing
from sqldeid.tables.privacy.l_diversity import RecursiveLDiversity
from sqldeid.tables.privacy.t_closeness import TCloseness

_NODES_PER_STATEMENT = 8

Whole = npt.NDArray[np.int64]
Arms = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Failing:
    """Failing classes of some nodes.

    Parameters
    ----------
    node, size, forced
        Per class: its node's number, its rows, and those that fail at every specialisation; shape (classes,).
    groups
        Group numbers of the quasi-identifying columns; shape (classes, columns).
    """

    node: Counts
    groups: Counts
    size: Counts
    forced: Counts


@dataclass(frozen=True, slots=True)
class Rejudge:
    """The criteria of a plan on the proof's fold.

    Parameters
    ----------
    folded
        With a place per sensitive column (`prove_places`).
    ranked
        The sensitive columns' values in order, by name; `places` are their columns of `folded`.
    """

    plan: TablePlan
    engine: Engine
    folded: exp.Table
    ranked: Mapping[str, exp.Table]
    places: Mapping[str, exp.Identifier]

    @classmethod
    def of(cls, plan: TablePlan, engine: Engine, source: exp.Expr, folded: exp.Table) -> Rejudge:
        """Add to a fold with the sensitive columns v0, v1 … the places of their values."""
        ranked = {c.name: rank_values(plan, c, engine, source) for c in plan.judged}
        places = {c.name: identifier(f"p{i}") for i, c in enumerate(plan.judged)}
        placed = engine.workbench(f"{plan.name}_proof_placed")
        sensitive = [
            {"name": s["name"], "alias": identifier(f"r{i}"), "ranked": ranked[c.name], "place": places[c.name]}
            for i, (c, s) in enumerate(zip(plan.judged, sensitive_of(plan), strict=True))
        ]
        engine.execute(render("tables/prove_places", placed=placed, folded=folded, sensitive=sensitive))
        return cls(plan, engine, placed, ranked, places)

    def failing(self, arms: Arms) -> Failing:
        """Every failing class of the nodes that the arms describe, with the most that any criterion forces out."""
        found = []
        for start in range(0, len(arms), _NODES_PER_STATEMENT):
            some = arms[start : start + _NODES_PER_STATEMENT]
            found += [self._too_small(some), *(self._criterion(c, some) for c in self.plan.criteria)]
            if self.plan.concealing is not None:
                found += [self._concealed(self.plan.concealing, arm) for arm in some]
        return self._merged(found)

    @property
    def _names(self) -> list[str]:
        return [f"c{j}" for j in range(len(self.plan.qis))]

    def _too_small(self, arms: Arms) -> Whole:
        k = self.plan.part.privacy.k
        read = self.engine.query(render("tables/prove_failing", folded=self.folded, nodes=list(arms), k=k))
        return _stacked(read, ["node", *self._names, "size", "size"])

    def _criterion(self, criterion: ClassCriterion, arms: Arms) -> Whole:
        number = criterion.t if isinstance(criterion, TCloseness) else Fraction(0)
        number = criterion.c if isinstance(criterion, RecursiveLDiversity) else number
        read = self.engine.query(
            render(
                "tables/prove_criterion",
                folded=self.folded,
                place=self.places[criterion.column],
                ranked=self.ranked[criterion.column],
                nodes=list(arms),
                names=[identifier(n) for n in self._names],
                k=self.plan.part.privacy.k,
                l=1 if isinstance(criterion, TCloseness) else criterion.l,
                num=number.numerator,
                den=number.denominator,
                kind=kind_of(criterion),
            )
        )
        return _stacked(read, ["node", *self._names, "size", "forced"])

    def _concealed(self, criterion: MConcealing, arm: Mapping[str, object]) -> Whole:
        """The classes of one node with a row above m."""
        known = [self.places[name] for name, _ in criterion.known]
        read = self.engine.query(
            render(
                "tables/prove_known",
                folded=self.folded,
                columns=arm["columns"],
                known=known,
                k=self.plan.part.privacy.k,
            )
        )
        classes, owner = np.unique(_stacked(read, self._names), axis=0, return_inverse=True)
        owner = owner.reshape(-1).astype(np.int64)
        rows = read.column("c").to_numpy().astype(np.int64)
        values = [read.column(v.name).to_numpy().astype(np.int64) for v in known]
        too_risky = above(owner, values, rows, criterion)
        size, forced = (
            np.bincount(owner, weights=w, minlength=len(classes)).astype(np.int64) for w in (rows, rows * too_risky)
        )
        node = np.full(len(classes), int(str(arm["id"])), dtype=np.int64)
        return np.column_stack([node, classes, size, forced])[forced > 0]

    def _merged(self, found: Sequence[Whole]) -> Failing:
        """One entry per class: what the criterion that forces most says."""
        rows = np.concatenate(found)
        keys, owner = np.unique(rows[:, :-1], axis=0, return_inverse=True)
        forced = np.zeros(len(keys), dtype=np.int64)
        np.maximum.at(forced, owner.reshape(-1), rows[:, -1])
        return Failing(keys[:, 0], keys[:, 1:-1], keys[:, -1], forced)


def sensitive_of(plan: TablePlan) -> list[dict[str, object]]:
    """The sensitive columns of criteria, as parameters of the fold."""
    return [{"name": identifier(f"v{i}"), "column": c.column} for i, c in enumerate(plan.judged)]


def _stacked(read: pa.Table, names: Sequence[str]) -> Whole:
    return np.stack([read.column(n).to_numpy().astype(np.int64) for n in names], axis=1)
