"""Certificates as files: written from a search's outcome, and checked against the source without trusting a number.

A certificate shows counts of the source: it is for the data holder. The check shares hierarchies, the losses'
definitions and the tree walk with the search; its fold, its SQL and every count are its own (`recount`, `rejudge`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn, cast

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.result import HOLDER
from sqldeid.stages import Stage
from sqldeid.tables.certificate.certificate import Claim, Facts, NotProvenError, Tree, proves
from sqldeid.tables.certificate.recount import Recount
from sqldeid.tables.certificate.split_tree import cover
from sqldeid.tables.model.evaluation import Evaluation, Marginal, admissible, allowed_rows
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan.choosing import by_k, choosing
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.search import Outcome
from sqldeid.tables.write.draft import Beside, Draft

_ALWAYS = ("l_diversity", "t_closeness")
"""Criteria that a certificate names also where they are not asked for."""

FORMAT = 1

_OWN = ("rows", "node", "suppressed", "value", "bound", "optimal", "nodes", "tree")
"""Keys of a certificate beside those that the job gives."""

_FRACTION = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")


def certify(
    plan: TablePlan, marginals: Sequence[Marginal], rows: int, best: Evaluation, outcome: Outcome
) -> dict[str, object]:
    """The certificate of a search's outcome, ready for JSON.

    Parameters
    ----------
    best
        The node by what it was chosen by.

    Raises
    ------
    NotProvenError
        If the checks do not cover the lattice in a bounded number of boxes.
    """
    loss = make_loss(plan.search.loss, marginals, rows)
    allowed = allowed_rows(plan.demands.suppression_limit, rows)
    exact = loss.of(best)
    claim = Claim(plan.lattice.heights, allowed, loss, (exact, best.failing, best.node), outcome.bound, outcome.optimal)
    tree, nodes = cover(claim, outcome.checked)
    return {
        "audience": HOLDER,
        "format": FORMAT,
        **terms_of_claim(plan),
        "rows": rows,
        "node": list(best.node),
        "suppressed": best.failing,
        "value": str(loss.unit * exact),
        "bound": str(loss.unit * outcome.bound),
        "optimal": outcome.optimal,
        "nodes": [[list(e.node), e.failing] for e in nodes],
        "tree": [list(step) for step in tree],
    }


def certified(plan: TablePlan) -> Beside:
    """What accompanies a release whose optimum is proven: the search's proof, or why there is none, is told."""

    def tell(draft: Draft) -> None:
        chosen, outcome = draft.chosen, draft.outcome
        marginals = [c.marginal for c in chosen.folded.columns]
        best = outcome.checked[outcome.node] if by_k(chosen.plan) else outcome.evaluation
        try:
            if reason := no_certificate(plan):
                raise NotProvenError(reason)
            proof = certify(choosing(chosen.plan), marginals, draft.result.rows, best, outcome)
        except NotProvenError as error:
            told = f"{plan.key}: there is no certificate: {error}"
            draft.result = replace(draft.result, warnings=(*draft.result.warnings, told))
        else:
            draft.result = replace(draft.result, certificate=proof)

    return Beside(told=(Stage("", tell),))


def no_certificate(plan: TablePlan) -> str:
    """Why a release of this plan has no certificate; empty where its search proves what it finds."""
    if plan.search.blunt:
        return "blunted levels are drawn, and no optimum"
    return "" if plan.search.proves else f"{plan.search.method} proves nothing"


def terms_of_claim(plan: TablePlan) -> dict[str, object]:
    """What the claim is about; compared with the job, word for word."""
    demands, search = plan.demands, plan.search
    return {
        "release": plan.name,
        **({"unit": "person of many rows"} if plan.many else {}),
        "columns": {q.name: {"hierarchy": q.hierarchy_name, "height": q.hierarchy.height} for q in plan.qis},
        "weights": {q.name: str(q.weight) for q in plan.qis},
        "k": demands.k,
        "suppression_limit": demands.suppression_limit,
        "criteria": _criteria(plan),
        "loss": search.loss,
        **({"other_persons": sorted(stated)} if (stated := plan.stated.get("other_persons")) else {}),
        **({} if search.choose == "by-all" else {"choose": search.choose}),
    }


def _criteria(plan: TablePlan) -> dict[str, object]:
    """The criteria beyond k; keys that are newer than certificates are there where they are asked for alone."""
    asked = plan.demands.noted()
    return {name: value for name, value in asked.items() if value or name in _ALWAYS}


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

    Cost: two scans of the source, and one GROUP BY over its distinct combinations for each listed node; with criteria
    beyond k, one more scan per sensitive column and one more GROUP BY per criterion and node. m-concealing walks every
    knowledge state of the node's classes.
    """
    plan = choosing(plan)
    terms = terms_of_claim(plan)
    if "unit" in certificate and "unit" not in terms:
        refuse(plan, "its classes are counted in persons of many rows, those of the job in rows")
    refuse_others(plan, certificate, terms, _OWN)
    parsed = _parse(plan, certificate)
    proof = Recount.of(plan, engine)
    if certificate.get("rows") != proof.rows:
        refuse(plan, "the source has another number of rows")
    found = proof.evaluate([parsed.best, *parsed.nodes])
    if [e.failing for e in found] != [parsed.suppressed, *parsed.failing]:
        refuse(plan, "its suppressed rows are not those that the source gives")
    return _conclude(plan, parsed, proof, found[0], found[1:])


def _conclude(
    plan: TablePlan, parsed: _Parsed, proof: Recount, best: Evaluation, nodes: Sequence[Evaluation]
) -> Proven:
    loss = make_loss(plan.search.loss, proof.marginals, proof.rows)
    if not admissible(best, proof.allowed):
        refuse(plan, "its node is not admissible")
    exact, bound = loss.of(best), parsed.bound / loss.unit
    if loss.unit * exact != parsed.value or bound.denominator != 1 or bound > exact:
        refuse(plan, "its loss is not what the source gives")
    if parsed.optimal and bound != exact:
        refuse(plan, "it calls a node optimal whose loss is not its bound")
    key = (exact, best.failing, best.node)
    claim = Claim(plan.lattice.heights, proof.allowed, loss, key, int(bound), parsed.optimal)
    if not proves(parsed.tree, Facts(claim, tuple(nodes))):
        refuse(plan, "its boxes do not prove its claim")
    names = [q.name for q in plan.qis]
    boxes = sum(isinstance(step[0], str) for step in parsed.tree)
    node = dict(zip(names, best.node, strict=True))
    return Proven(node, loss.value(exact), loss.value(int(bound)), parsed.optimal, len(nodes), boxes)


def refuse_others(
    plan: TablePlan, certificate: Mapping[str, object], terms: Mapping[str, object], own: Collection[str]
) -> None:
    """Refuse a certificate that says of the job what the job does not say, or says more.

    Parameters
    ----------
    terms
        What it must say, by key. The order of its columns is that of the levels of its nodes.
    own
        Keys of what it says besides, which is checked elsewhere.

    Raises
    ------
    VerificationError
        If it does.
    """
    expected = {"audience": HOLDER, "format": FORMAT, **terms}
    for name, value in expected.items():
        if name not in certificate or _text(certificate[name]) != _text(value):
            refuse(plan, f"its {name.replace('_', ' ')} are not those of the job")
    if list(cast(Mapping[str, object], certificate["columns"])) != list(cast(Mapping[str, object], terms["columns"])):
        refuse(plan, "its columns are in another order than the job's, so that its levels are of others")
    if set(certificate) - set(expected) - set(own):
        refuse(plan, "it has a key that a certificate of this job has not")


def _text(value: object) -> str:
    """A value as JSON: 1 is neither true nor 1.0 there."""
    return json.dumps(value, sort_keys=True, default=str)


def refuse(plan: TablePlan, why: str) -> NoReturn:
    """Refuse a certificate.

    Raises
    ------
    VerificationError
        Always.
    """
    raise VerificationError.at(plan.key, f"the certificate does not hold: {why}")


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
        if not isinstance(certificate["optimal"], bool):
            raise TypeError
        listed = [(_node(plan, node), _whole(failing)) for node, failing in _items(certificate["nodes"])]
        tree = [(str(a) if isinstance(a, str) else _whole(a), _whole(b)) for a, b in _items(certificate["tree"])]
        return _Parsed(
            best=_node(plan, certificate["node"]),
            suppressed=_whole(certificate["suppressed"]),
            value=fraction(certificate["value"]),
            bound=fraction(certificate["bound"]),
            optimal=certificate["optimal"],
            nodes=tuple(node for node, _ in listed),
            failing=tuple(failing for _, failing in listed),
            tree=tree,  # type: ignore[arg-type]  # pairs, each first part a kind or an axis
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise VerificationError.at(plan.key, "the file is not a certificate of this version of sqldeid") from None


def fraction(value: object) -> Fraction:
    """A fraction as `certify` writes it.

    Raises
    ------
    ValueError
        If it is written otherwise: as a decimal its exponent alone could take all memory.
    ZeroDivisionError
        If it is none.
    """
    if not isinstance(value, str) or not _FRACTION.fullmatch(value):
        raise ValueError
    return Fraction(value)


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
