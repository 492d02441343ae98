"""Count the source for a certificate without the search's codes: it is grouped by the groups of every level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.sql import identifier
from sqldeid.tables.certificate.overall import core
from sqldeid.tables.certificate.persons import PersonRejudge
from sqldeid.tables.certificate.rejudge import Arms, Failing, Rejudge, sensitive_of
from sqldeid.tables.criteria import OverallRisk
from sqldeid.tables.model.evaluation import Evaluation, Marginal, admissible, allowed_rows, log_leaves
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.rows.bind import bind
from sqldeid.tables.rows.shape import count_persons, keep
from sqldeid.tables.verify.overall import least_size

_NODES_PER_STATEMENT = 64


@dataclass(frozen=True, slots=True)
class Recount:
    """The source folded for the proof, its marginals, and its criteria beyond k where there are any.

    `source` is what the plan reads, in its own engine.
    """

    plan: TablePlan
    engine: Engine
    folded: exp.Table
    marginals: tuple[Marginal, ...]
    rows: int
    allowed: int
    judge: Rejudge | None
    source: exp.Expr

    @classmethod
    def of(cls, plan: TablePlan, engine: Engine) -> Recount:
        """Fold the source of a plan.

        Raises
        ------
        VerificationError
            If a value is in no group of its hierarchy, or the source changes while it is read.
        """
        source = keep(plan, engine)
        rows = count_persons(plan, engine, source).rows
        hierarchies = [bind(plan, i, engine, source).hierarchy for i in range(len(plan.qis))]
        columns = [_levels(plan, i, q, h, engine) for i, (q, h) in enumerate(zip(plan.qis, hierarchies, strict=True))]
        folded = engine.make(
            "tables/certificate/prove_fold",
            f"{plan.name}_proof",
            source=source,
            columns=columns,
            sensitive=sensitive_of(plan),
            person=plan.person_column if plan.many else None,
        )
        folded, bench = engine.to_bench(folded), engine.bench
        beside = None if plan.population is None else _fold_beside(plan.population, plan, columns, engine)
        judging = PersonRejudge if plan.many else Rejudge
        judge = judging.of(plan, engine, source, folded) if plan.beyond_k else None
        judge = judge if judge is None or beside is None else replace(judge, population=beside)
        folded = folded if judge is None else judge.folded
        marginals = tuple(
            _marginal(q, h, _rows_by_leaf(bench, folded, i, h))
            for i, (q, h) in enumerate(zip(plan.qis, hierarchies, strict=True))
        )
        if any(int(m.rows[0].sum()) != rows for m in marginals):
            raise VerificationError.at(
                plan.key, "the certificate does not hold: a value of the source is in no group of its hierarchy"
            )
        allowed = allowed_rows(plan.demands.suppression_limit, rows)
        return cls(plan, bench, folded, marginals, rows, allowed, judge, source)

    def evaluate(self, nodes: Sequence[Node]) -> list[Evaluation]:
        """The nodes' counts, by the proof's own SQL."""
        found: list[Evaluation] = []
        for start in range(0, len(nodes), _NODES_PER_STATEMENT):
            found += self._batch(nodes[start : start + _NODES_PER_STATEMENT])
        return found

    def _batch(self, nodes: Sequence[Node]) -> list[Evaluation]:
        k = self.plan.demands.k
        arms = [{"id": i, "columns": [_group(j, x) for j, x in enumerate(node)]} for i, node in enumerate(nodes)]
        rows = self.engine.rows("tables/certificate/prove_nodes", folded=self.folded, nodes=arms, k=k)
        counted = {row["node"]: row for row in rows}
        found = [
            Evaluation(
                node,
                int(counted[i]["failing"]),
                int(counted[i]["failing"]),
                int(counted[i]["classes"]),
                int(counted[i]["squares"]),
            )
            for i, node in enumerate(nodes)
        ]
        passing = [arm for arm, e in zip(arms, found, strict=True) if admissible(e, self.allowed)]
        if passing:
            least = dict.fromkeys((number_of(arm) for arm in passing), k)
            failing = self._too_small(passing, least) if self.judge is None else self.judge.failing(passing)
            if self.plan.overall is not None:
                failing = self._together(self.plan.overall, found, passing, failing)
            self._weigh(found, passing, failing)
        return found

    def _together(self, overall: OverallRisk, found: list[Evaluation], arms: Arms, failing: Failing) -> Failing:
        """Add the classes that are suppressed for all released ones together, where the others leave a node admissible.

        The cores of these nodes are put into their evaluations.
        """
        k = self.plan.demands.k
        sizes: dict[int, dict[int, int]] = {}
        for row in self.engine.rows("tables/certificate/prove_sizes", folded=self.folded, nodes=list(arms)):
            sizes.setdefault(row["node"], {})[int(row["size"])] = int(row["classes"])
        least = {}
        for number in map(number_of, arms):
            lost = failing.size[failing.node == number]
            if int(lost.sum()) > self.allowed:
                continue
            gone = Counter(lost.tolist())
            left = {size: n - gone[size] for size, n in sizes[number].items() if n > gone[size]}
            least[number] = least_size(overall, left, k)
            found[number] = replace(found[number], core_failing=core(overall, sizes[number], k), least=least[number])
        some = [arm for arm in arms if least.get(number_of(arm), k) > k]
        return failing.joined(self._too_small(some, least)) if some else failing

    def _too_small(self, arms: Arms, least: Mapping[int, int]) -> Failing:
        """The classes of fewer rows than a node's released ones have at least."""
        nodes = [{**arm, "least": least[number_of(arm)]} for arm in arms]
        read = self.engine.ask("tables/certificate/prove_failing", folded=self.folded, nodes=nodes)
        groups = [read.column(f"c{j}").to_numpy().astype(np.int64) for j in range(len(self.marginals))]
        size = read.column("size").to_numpy().astype(np.int64)
        return Failing(read.column("node").to_numpy(), np.stack(groups, axis=1), size, size)

    def _weigh(self, found: list[Evaluation], arms: Arms, failing: Failing) -> None:
        """Put what the failing classes say into the evaluations of the nodes that k alone does not close."""
        for number in map(number_of, arms):
            mine = failing.node == number
            size, groups = failing.size[mine], failing.groups[mine]
            forced = int(failing.forced[mine].sum())
            judged = replace(found[number], failing=int(size.sum()), core_failing=forced)
            if judged.least and found[number].core_failing > forced:
                judged = replace(judged, core_failing=found[number].core_failing, core_moves=True)
            if admissible(judged, self.allowed):
                levels = zip(self.marginals, judged.node, groups.T, strict=True)
                of = [m.leaves[x][g] for m, x, g in levels]
                leaves = tuple(int((size * (own - 1)).sum()) for own in of)
                logs = tuple(int((size * log_leaves(own)).sum()) for own in of)
                judged = replace(judged, suppressed_leaves=leaves, suppressed_logs=logs)
            found[number] = judged


def _fold_beside(population: exp.Expr, plan: TablePlan, columns: list[dict[str, object]], engine: Engine) -> exp.Table:
    """The population by the same groups. Cost: one scan of it."""
    asked = {"source": population, "columns": columns, "sensitive": [], "person": None, "weight": plan.weight}
    return engine.to_bench(engine.make("tables/certificate/prove_fold", f"{plan.name}_proof_population", **asked))


def number_of(arm: Mapping[str, object]) -> int:
    """The number by which a statement calls a node."""
    return int(str(arm["id"]))


def _name(column: int, level: int) -> exp.Identifier:
    return identifier(f"a{column}_{level}")


def _group(column: int, level: int) -> dict[str, exp.Identifier]:
    return {"name": identifier(f"c{column}"), "group": _name(column, level)}


def _levels(
    plan: TablePlan, index: int, qi: QuasiIdentifier, hierarchy: Hierarchy, engine: Engine
) -> dict[str, object]:
    """Value → group number at every level, as a table; NULL's groups as numbers."""
    of_value = [groups[hierarchy.leaf] for groups in hierarchy.groups]
    there = hierarchy.values.is_valid()
    names = [_name(index, x) for x in range(hierarchy.height)]
    rows = pa.table({"value": hierarchy.values, **{n.name: g for n, g in zip(names, of_value, strict=True)}})
    absent = np.flatnonzero(~there.to_numpy(zero_copy_only=False))
    return {
        "column": qi.column,
        "alias": identifier(f"v{index}"),
        "groups": engine.put(f"{plan.name}_proof_levels_{index}", rows.filter(there)),
        "type": qi.travel_type,
        "levels": [
            {"name": n, "null_group": int(g[absent[0]]) if len(absent) else None}
            for n, g in zip(names, of_value, strict=True)
        ],
    }


def _rows_by_leaf(engine: Engine, folded: exp.Table, index: int, hierarchy: Hierarchy) -> Ints:
    read = engine.ask("tables/certificate/prove_marginals", folded=folded, leaf=_name(index, 0))
    rows = np.zeros(hierarchy.leaves, dtype=np.int64)
    for leaf, n in zip(read.column("leaf").to_pylist(), read.column("n").to_pylist(), strict=True):
        if leaf is not None:
            rows[leaf] = n
    return rows


def _marginal(qi: QuasiIdentifier, hierarchy: Hierarchy, by_leaf: Ints) -> Marginal:
    rows, leaves = [], []
    for groups, labels in zip(hierarchy.groups, hierarchy.labels, strict=True):
        counted = np.zeros(len(labels), dtype=np.int64)
        np.add.at(counted, groups, by_leaf)
        rows.append(counted)
        leaves.append(np.bincount(groups, minlength=len(labels)).astype(np.int64))
    return Marginal(qi.name, qi.weight, tuple(rows), tuple(leaves))
