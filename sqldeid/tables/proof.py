"""Certificates as files: written from a search's outcome, and checked against the source without trusting a number.

A certificate shows counts of the source: it is for the data holder. The check shares hierarchies, the losses'
definitions and the tree walk with the search; its fold, its SQL and every count are its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.result import HOLDER
from sqldeid.sql import identifier, render
from sqldeid.tables.bind import bind
from sqldeid.tables.certificate import Claim, Facts, Tree, proves
from sqldeid.tables.covering import cover
from sqldeid.tables.evaluation import Counts, Evaluation, Marginal, admissible, allowed_rows
from sqldeid.tables.lattice import Node
from sqldeid.tables.loss import make_loss
from sqldeid.tables.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.shape import count_persons, keep

FORMAT = 1
_NODES_PER_STATEMENT = 64


def certify(
    plan: TablePlan,
    marginals: Sequence[Marginal],
    rows: int,
    best: Evaluation,
    bound: int,
    checked: Mapping[Node, Evaluation],
    *,
    optimal: bool,
) -> dict[str, object]:
    """The certificate of a search's outcome, ready for JSON.

    Parameters
    ----------
    bound
        Units of the loss that no node is below; the optimum's own when `optimal`.

    Raises
    ------
    NotProvenError
        If the checks do not cover the lattice in a bounded number of boxes.
    """
    loss = make_loss(plan.part.search.loss, marginals, rows)
    allowed = allowed_rows(plan.part.privacy.suppression_limit, rows)
    exact = loss.of(best)
    claim = Claim(plan.lattice.heights, allowed, loss, (exact, best.failing, best.node), bound, optimal)
    tree, nodes = cover(claim, checked)
    return {
        "audience": HOLDER,
        "format": FORMAT,
        **_terms(plan),
        "rows": rows,
        "node": list(best.node),
        "suppressed": best.failing,
        "value": str(loss.unit * exact),
        "bound": str(loss.unit * bound),
        "optimal": optimal,
        "nodes": [[list(e.node), e.failing] for e in nodes],
        "tree": [list(step) for step in tree],
    }


def _terms(plan: TablePlan) -> dict[str, object]:
    """What the claim is about; compared with the job, word for word."""
    privacy, search = plan.part.privacy, plan.part.search
    return {
        "release": plan.name,
        "columns": {q.name: {"hierarchy": q.hierarchy_name, "height": q.hierarchy.height} for q in plan.qis},
        "weights": {q.name: str(q.weight) for q in plan.qis},
        "k": privacy.k,
        "suppression_limit": privacy.suppression_limit,
        "loss": search.loss,
    }


@dataclass(frozen=True, slots=True)
class Proven:
    """What a checked certificate proves: no node loses less than `bound`; `optimal` also decides ties."""

    node: dict[str, int]
    value: float
    bound: float
    optimal: bool
    nodes: int
    boxes: int


def check_certificate(plan: TablePlan, certificate: Mapping[str, object], engine: Engine) -> Proven:
    """Check a certificate against the source as it is now.

    Raises
    ------
    VerificationError
        If any part of it is not what job and source say, or its boxes do not prove its claim.

    Cost: two scans of the source, and one GROUP BY over its distinct combinations for each listed node.
    """
    if plan.beyond_k:
        _refuse(plan, "this version certifies k-anonymity alone")
    terms = _terms(plan)
    for name, value in terms.items():
        if certificate.get(name) != value:
            _refuse(plan, f"its {name.replace('_', ' ')} are not those of the job")
    parsed = _parse(plan, certificate)
    proof = _Proof.of(plan, engine)
    if certificate.get("rows") != proof.rows:
        _refuse(plan, "the source has another number of rows")
    found = proof.evaluate([parsed.best, *parsed.nodes])
    if [e.failing for e in found] != [parsed.suppressed, *parsed.failing]:
        _refuse(plan, "its suppressed rows are not those that the source gives")
    return _conclude(plan, parsed, proof, found[0], found[1:])


def _conclude(plan: TablePlan, parsed: _Parsed, proof: _Proof, best: Evaluation, nodes: Sequence[Evaluation]) -> Proven:
    loss = make_loss(plan.part.search.loss, proof.marginals, proof.rows)
    if not admissible(best, proof.allowed):
        _refuse(plan, "its node is not admissible")
    exact, bound = loss.of(best), parsed.bound / loss.unit
    if loss.unit * exact != parsed.value or bound.denominator != 1 or bound > exact:
        _refuse(plan, "its loss is not what the source gives")
    if parsed.optimal and bound != exact:
        _refuse(plan, "it calls a node optimal whose loss is not its bound")
    key = (exact, best.failing, best.node)
    claim = Claim(plan.lattice.heights, proof.allowed, loss, key, int(bound), parsed.optimal)
    if not proves(parsed.tree, Facts(claim, tuple(nodes))):
        _refuse(plan, "its boxes do not prove its claim")
    names = [q.name for q in plan.qis]
    boxes = sum(isinstance(step[0], str) for step in parsed.tree)
    node = dict(zip(names, best.node, strict=True))
    return Proven(node, loss.value(exact), loss.value(int(bound)), parsed.optimal, len(nodes), boxes)


def _refuse(plan: TablePlan, why: str) -> None:
    raise VerificationError(f"{plan.key}: the certificate does not hold: {why}", key=plan.key)


@dataclass(frozen=True, slots=True)
class _Parsed:
    best: Node
    suppressed: int
    value: Fraction
    bound: Fraction
    optimal: bool
    nodes: tuple[Node, ...]
    failing: tuple[int, ...]
    tree: Tree


def _parse(plan: TablePlan, certificate: Mapping[str, object]) -> _Parsed:
    """The certificate's own parts, by type; anything odd is refused."""
    try:
        if certificate["format"] != FORMAT or not isinstance(certificate["optimal"], bool):
            raise TypeError
        listed = [(_node(plan, node), _whole(failing)) for node, failing in _items(certificate["nodes"])]
        tree = [(str(a) if isinstance(a, str) else _whole(a), _whole(b)) for a, b in _items(certificate["tree"])]
        return _Parsed(
            best=_node(plan, certificate["node"]),
            suppressed=_whole(certificate["suppressed"]),
            value=Fraction(str(certificate["value"])),
            bound=Fraction(str(certificate["bound"])),
            optimal=certificate["optimal"],
            nodes=tuple(node for node, _ in listed),
            failing=tuple(failing for _, failing in listed),
            tree=tree,  # type: ignore[arg-type]  # pairs, each first part a kind or an axis
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise VerificationError(
            f"{plan.key}: the file is not a certificate of this version of sqldeid", key=plan.key
        ) from None


def _items(value: object) -> list[tuple[object, object]]:
    if not isinstance(value, list):
        raise TypeError
    return [(a, b) for a, b in value]


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _node(plan: TablePlan, value: object) -> Node:
    if not isinstance(value, list):
        raise TypeError
    node = tuple(_whole(x) for x in value)
    if not all(0 <= x < h for x, h in zip(node, plan.lattice.heights, strict=True)):
        raise ValueError
    return node


@dataclass(frozen=True, slots=True)
class _Proof:
    """The source folded for the proof, and its marginals."""

    plan: TablePlan
    engine: Engine
    folded: exp.Table
    marginals: tuple[Marginal, ...]
    rows: int
    allowed: int

    @classmethod
    def of(cls, plan: TablePlan, engine: Engine) -> _Proof:
        source = keep(plan, engine)
        rows = count_persons(plan, engine, source)
        hierarchies = [bind(plan, i, engine, source).hierarchy for i in range(len(plan.qis))]
        columns = [_levels(plan, i, q, h, engine) for i, (q, h) in enumerate(zip(plan.qis, hierarchies, strict=True))]
        folded = engine.workbench(f"{plan.name}_proof")
        engine.execute(render("tables/prove_fold", folded=folded, source=source, columns=columns))
        marginals = tuple(
            _marginal(q, h, _rows_by_leaf(engine, folded, i, h))
            for i, (q, h) in enumerate(zip(plan.qis, hierarchies, strict=True))
        )
        if any(int(m.rows[0].sum()) != rows for m in marginals):
            _refuse(plan, "a value of the source is in no group of its hierarchy")
        return cls(plan, engine, folded, marginals, rows, allowed_rows(plan.part.privacy.suppression_limit, rows))

    def evaluate(self, nodes: Sequence[Node]) -> list[Evaluation]:
        """The nodes' counts, by the proof's own SQL."""
        found: list[Evaluation] = []
        for start in range(0, len(nodes), _NODES_PER_STATEMENT):
            found += self._batch(nodes[start : start + _NODES_PER_STATEMENT])
        return found

    def _batch(self, nodes: Sequence[Node]) -> list[Evaluation]:
        k = self.plan.part.privacy.k
        arms = [{"id": i, "columns": [_group(j, x) for j, x in enumerate(node)]} for i, node in enumerate(nodes)]
        rows = self.engine.query(render("tables/prove_nodes", folded=self.folded, nodes=arms, k=k)).to_pylist()
        counted = {row["node"]: row for row in rows}
        passing = [arm for arm in arms if counted[arm["id"]]["failing"] <= self.allowed]
        leaves = self._leaves(passing, nodes) if passing else {}
        return [
            Evaluation(
                node,
                int(counted[i]["failing"]),
                int(counted[i]["failing"]),
                int(counted[i]["classes"]),
                int(counted[i]["squares"]),
                leaves.get(i),
            )
            for i, node in enumerate(nodes)
        ]

    def _leaves(self, arms: Sequence[dict[str, object]], nodes: Sequence[Node]) -> dict[int, tuple[int, ...]]:
        k = self.plan.part.privacy.k
        read = self.engine.query(render("tables/prove_failing", folded=self.folded, nodes=arms, k=k))
        owner, size = read.column("node").to_numpy(), read.column("size").to_numpy()
        groups = [read.column(f"c{j}").to_numpy() for j in range(len(self.marginals))]
        found = {}
        for arm in arms:
            number = int(str(arm["id"]))
            mine = owner == number
            found[number] = tuple(
                int((size[mine] * (m.leaves[x][g[mine]] - 1)).sum())
                for m, x, g in zip(self.marginals, nodes[number], groups, strict=True)
            )
        return found


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


def _rows_by_leaf(engine: Engine, folded: exp.Table, index: int, hierarchy: Hierarchy) -> Counts:
    read = engine.query(render("tables/prove_marginals", folded=folded, leaf=_name(index, 0)))
    rows = np.zeros(hierarchy.leaves, dtype=np.int64)
    for leaf, n in zip(read.column("leaf").to_pylist(), read.column("n").to_pylist(), strict=True):
        if leaf is not None:
            rows[leaf] = n
    return rows


def _marginal(qi: QuasiIdentifier, hierarchy: Hierarchy, by_leaf: Counts) -> Marginal:
    rows, leaves = [], []
    for groups, labels in zip(hierarchy.groups, hierarchy.labels, strict=True):
        counted = np.zeros(len(labels), dtype=np.int64)
        np.add.at(counted, groups, by_leaf)
        rows.append(counted)
        leaves.append(np.bincount(groups, minlength=len(labels)).astype(np.int64))
    return Marginal(qi.name, qi.weight, tuple(rows), tuple(leaves))
