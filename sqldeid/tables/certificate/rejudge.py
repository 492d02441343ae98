"""Judge the criteria beyond k for a certificate, on its own groups and with other formulas than the search.

For every class that fails, the rows that fail at every specialisation, too (soundness.md 9): all where the class fails
k or has too few values; all but the largest part that could pass for the other kinds of l-diversity, group by group
for joint ones, and for t-closeness; the rows above m for m-concealing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import SqldeidError
from sqldeid.sql import identifier
from sqldeid.tables.certificate.passing_rows import passing_rows
from sqldeid.tables.criteria import ClassCriterion, MConcealing, others_of, terms_of
from sqldeid.tables.criteria.bounds import UNIT
from sqldeid.tables.criteria.t_closeness import levels_of
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.verify.concealment import above
from sqldeid.tables.verify.judgement import rank_values

if TYPE_CHECKING:
    from sqldeid.tables.criteria.delta_presence import DeltaPresence

_NODES_PER_STATEMENT = 8

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

    node: Ints
    groups: Ints
    size: Ints
    forced: Ints

    def joined(self, small: Failing) -> Failing:
        """These classes and small ones that are not among them; of those no row fails everywhere below."""
        both = np.column_stack([np.append(self.node, small.node), np.concatenate([self.groups, small.groups])])
        _, first = np.unique(both, axis=0, return_index=True)
        new = np.sort(first[first >= len(self.node)]) - len(self.node)
        return Failing(
            np.append(self.node, small.node[new]),
            np.concatenate([self.groups, small.groups[new]]),
            np.append(self.size, small.size[new]),
            np.append(self.forced, np.zeros(len(new), dtype=np.int64)),
        )


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
    population: exp.Table | None = None

    @classmethod
    def of(cls, plan: TablePlan, engine: Engine, source: exp.Expr, folded: exp.Table) -> Rejudge:
        """Add to a fold with the sensitive columns v0, v1 … (on the bench) the places of their values."""
        person = plan.person_column if plan.many else None
        ranked = {c.name: engine.to_bench(rank_values(plan, c, engine, source, c.column, person)) for c in plan.judged}
        bench = engine.bench
        places = {c.name: identifier(f"p{i}") for i, c in enumerate(plan.judged)}
        sensitive = [
            {"name": s["name"], "alias": identifier(f"r{i}"), "ranked": ranked[c.name], "place": places[c.name]}
            for i, (c, s) in enumerate(zip(plan.judged, sensitive_of(plan), strict=True))
        ]
        placed = bench.make(
            "tables/certificate/prove_places", f"{plan.name}_proof_placed", folded=folded, sensitive=sensitive
        )
        return cls(plan, bench, placed, ranked, places)

    def failing(self, arms: Arms) -> Failing:
        """Every failing class of the nodes that the arms describe, with the most that any criterion forces out."""
        found, lost = [], []
        for start in range(0, len(arms), _NODES_PER_STATEMENT):
            some = arms[start : start + _NODES_PER_STATEMENT]
            found += [self._too_small(some), *(self._criterion(c, some) for c in self.plan.criteria)]
            if self.plan.k_map is not None:
                found.append(self._unmapped(self.plan.k_map, some))
            if self.plan.presence is not None:
                found.append(self._outside(self.plan.presence, some))
            if self.plan.concealing is not None:
                found += [self._concealed(self.plan.concealing, arm) for arm in some]
            lost += [self._lost(c, some) for c in self.plan.criteria]
        return self._merged(found, lost)

    @property
    def _names(self) -> list[str]:
        return [f"c{j}" for j in range(len(self.plan.qis))]

    def _too_small(self, arms: Arms) -> Ints:
        k = self.plan.demands.k
        nodes = [{**arm, "least": k} for arm in arms]
        read = self.engine.ask("tables/certificate/prove_failing", folded=self.folded, nodes=nodes)
        return stacked(read, ["node", *self._names, "size", "size"])

    def _unmapped(self, k_map: int, arms: Arms) -> Ints:
        """The classes that fit too few persons of the population; all of their rows fail below."""
        if self.population is None:
            raise SqldeidError("the population was not folded, so that k-map cannot be judged")
        asked = {"folded": self.folded, "population": self.population, "nodes": list(arms), "k_map": k_map}
        return stacked(
            self.engine.ask("tables/certificate/prove_mapped", **asked), ["node", *self._names, "size", "size"]
        )

    def _outside(self, presence: DeltaPresence, arms: Arms) -> Ints:
        """All classes of the nodes at which the share of some class of the population is not within the bounds."""
        if self.population is None:
            raise SqldeidError("the population was not folded, so that delta-presence cannot be judged")
        asked = {"folded": self.folded, "population": self.population, "nodes": list(arms), **presence.sql}
        return stacked(
            self.engine.ask("tables/certificate/prove_presence", **asked), ["node", *self._names, "size", "size"]
        )

    def _criterion(self, criterion: ClassCriterion, arms: Arms) -> Ints:
        """The failing classes of at least k rows, by one criterion."""
        others = [self.places[name] for name in others_of(criterion)]
        asked = {
            "folded": self.folded,
            "place": self.places[criterion.column],
            "nodes": list(arms),
            "names": [identifier(n) for n in self._names],
            "k": self.plan.demands.k,
            **terms_of(criterion).sql,
        }
        if others:
            read = self.engine.ask("tables/certificate/prove_joint", others=others, **asked)
        elif asked["kind"] == "bounded":
            read = self.engine.ask("tables/certificate/prove_bounded", **self._bounds(criterion), **asked)
        elif groups := terms_of(criterion).groups:
            levels = self._levels(criterion.column, groups)
            read = self.engine.ask("tables/certificate/prove_levels", **levels, **asked)
        else:
            ranked = self.ranked[criterion.column]
            read = self.engine.ask("tables/certificate/prove_criterion", ranked=ranked, **asked)
        rows = stacked(read, ["node", *self._names, "size", "forced"])
        return rows[rows[:, -1] > 0]

    def _bounds(self, criterion: ClassCriterion) -> dict[str, object]:
        """Least and most of each value's share, as the criterion states them."""
        whole = self.whole(criterion.column)
        bounds = criterion.bounds(whole)
        put = self.engine.put(f"{self.plan.name}_proof_bounds", pa.table(bounds.columns()))
        return {"bounds": put, "needed": bounds.needed, "rows": int(whole.sum()), "unit": UNIT}

    def _levels(self, name: str, groups: tuple[tuple[int, ...], ...]) -> dict[str, object]:
        """A hierarchy's groups with their rows, and what distances are told in."""
        whole = self.whole(name)
        put = self.engine.put(f"{self.plan.name}_proof_levels", pa.table(levels_of(groups, whole)))
        return {"levels": put, "height": len(groups), "rows": int(whole.sum())}

    def _lost(self, criterion: ClassCriterion, arms: Arms) -> Ints:
        """Node, groups, size and rows that cannot be released below, of every class of at least k rows."""
        k, others = self.plan.demands.k, [self.places[name] for name in others_of(criterion)]
        read = self.engine.ask(
            "tables/certificate/prove_spread",
            folded=self.folded,
            place=self.places[criterion.column],
            others=others,
            nodes=list(arms),
            names=[identifier(n) for n in self._names],
            k=k,
        )
        classes = stacked(read, ["node", *self._names, "size"])
        groups = stacked(read, ["node", *self._names, *(o.name for o in others)])
        first, alike = _changes(classes), _changes(groups)
        place, rows = (read.column(c).to_numpy().astype(np.int64) for c in ("place", "c"))
        if not len(first):
            return np.column_stack([classes, rows])
        whole = self.whole(criterion.column)
        gone = np.add.reduceat(rows, alike) - passing_rows(criterion, alike, place, rows, whole)
        gone = np.add.reduceat(gone, np.searchsorted(alike, first))
        return np.column_stack([classes[first], gone])

    def whole(self, name: str) -> Ints:
        """Rows of the whole table by place; a place that is only stated has none."""
        read = self.engine.ask("tables/certificate/read_ranked", ranked=self.ranked[name])
        place, n = (read.column(c).to_numpy().astype(np.int64) for c in ("place", "n"))
        return np.bincount(place, weights=n).astype(np.int64)

    def _concealed(self, criterion: MConcealing, arm: Mapping[str, object]) -> Ints:
        """The classes of one node with a row above m."""
        known = [self.places[name] for name, _ in criterion.known]
        read = self.engine.ask(
            "tables/certificate/prove_known",
            folded=self.folded,
            columns=arm["columns"],
            known=known,
            k=self.plan.demands.k,
        )
        classes, owner = np.unique(stacked(read, self._names), axis=0, return_inverse=True)
        owner = owner.reshape(-1).astype(np.int64)
        rows = read.column("c").to_numpy().astype(np.int64)
        values = [read.column(v.name).to_numpy().astype(np.int64) for v in known]
        too_risky = above(owner, values, rows, criterion)
        size, forced = (
            np.bincount(owner, weights=w, minlength=len(classes)).astype(np.int64) for w in (rows, rows * too_risky)
        )
        node = np.full(len(classes), int(str(arm["id"])), dtype=np.int64)
        return np.column_stack([node, classes, size, forced])[forced > 0]

    def _merged(self, found: Sequence[Ints], lost: Sequence[Ints]) -> Failing:
        """One entry per failing class: what the criterion that forces most says; all where fewer than k stay."""
        failing = np.concatenate(found)
        rows = np.concatenate([failing, *lost])
        keys, owner = np.unique(rows[:, :-1], axis=0, return_inverse=True)
        owner = owner.reshape(-1)
        forced, fails = np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=np.bool_)
        np.maximum.at(forced, owner, rows[:, -1])
        fails[owner[: len(failing)]] = True
        size = keys[:, -1]
        if self.plan.criteria:
            forced = np.where(size - forced < self.plan.demands.k, size, forced)
        return Failing(keys[fails, 0], keys[fails, 1:-1], size[fails], forced[fails])


def sensitive_of(plan: TablePlan) -> list[dict[str, object]]:
    """The sensitive columns of criteria, as parameters of the fold."""
    return [{"name": identifier(f"v{i}"), "column": c.column} for i, c in enumerate(plan.judged)]


def stacked(read: pa.Table, names: Sequence[str]) -> Ints:
    """Columns of whole numbers side by side; shape (rows, columns)."""
    return np.stack([read.column(n).to_numpy().astype(np.int64) for n in names], axis=1)


def _changes(keys: Ints) -> Ints:
    """Where a new key begins."""
    new = np.ones(len(keys), dtype=np.bool_)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return np.flatnonzero(new)
