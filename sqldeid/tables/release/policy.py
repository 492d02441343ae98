"""A policy: the node, criteria and hierarchies of an earlier result, applied to new data without a search.

A nightly load is coded as the first one was, so that its columns and levels never change. The node is checked once on
the new rows; where it no longer meets the criteria within the suppression limit, nothing is published and the shortfall
is named. What is published is verified like any release.

Source: settled.md, *Hierarchies*, *Finding a release again*.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from sqldeid.engine.base import Engine
from sqldeid.errors import HierarchyError, JobError, VerificationError, listed
from sqldeid.files import read_limited
from sqldeid.hierarchy.model import Hierarchy
from sqldeid.hierarchy.stored import StoredSource, pack, unpack
from sqldeid.hierarchy.topcoded import TopCoded
from sqldeid.hierarchy.tree import Tree
from sqldeid.stages import Stage
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.model.evaluation import Evaluation, allowed_rows
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan.choosing import allowed_beyond, by_k, within
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.release.linking_values import linking, linking_values
from sqldeid.tables.release.node import checker_of
from sqldeid.tables.search import Outcome
from sqldeid.tables.write.draft import Beside, Draft, DraftStage
from sqldeid.version import OTHER_FORM, is_known

Given = str | os.PathLike[str] | Mapping[str, Any]
"""What names policies: the file that `--json` wrote, or `Result.to_dict()`."""

FREE = {"source", "where", "search", "frozen", "attacks", "secrets"}
"""Keys of a release that may differ from the policy's: where the rows come from, how a node was searched, and what is
attacked."""
_SHOWN = 5
_OPTION = "--policy"
_ANEW = (
    f"search anew, without {_OPTION}; then readers see other levels, and with --ledger more rows may wait for a later "
    'load (page "Every night", "When the policy no longer fits")'
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What of an earlier release is used again.

    Parameters
    ----------
    node
        Level of each quasi-identifying column.
    k
        The k that the release was made with (greater than the job's with `inverse-ola`).
    job_sha256, asked
        Of the job that it was made by, and that job's keys for the release.
    trees
        Each column's hierarchy with all its leaves.
    """

    release: str
    node: Mapping[str, int]
    k: int
    job_sha256: str
    asked: Mapping[str, Any]
    trees: Mapping[str, Tree]


def keep_policy(
    plan: TablePlan, node: Node, k: int, job_sha256: str, hierarchies: Sequence[Hierarchy]
) -> Mapping[str, object]:
    """A release's policy as the holder's result keeps it; it holds data values (the leaves)."""
    return {
        "node": dict(zip((q.name for q in plan.qis), node, strict=True)),
        "k": k,
        "job_sha256": job_sha256,
        "asked": _asked(plan),
        "hierarchies": {q.name: pack(h) for q, h in zip(plan.qis, hierarchies, strict=True)},
    }


def kept_policy(job_sha256: str) -> Beside:
    """What accompanies every release: its policy, which is packed when the result is written as JSON."""

    def keep(draft: Draft) -> None:
        plan, result = draft.plan, draft.result
        node = tuple(result.node[q.name] for q in plan.qis)
        hierarchies = [c.hierarchy for c in draft.chosen.folded.columns]
        policy = partial(keep_policy, plan, node, draft.chosen.noted_k, job_sha256, hierarchies)
        draft.result = replace(result, policy=policy)

    return Beside(told=(Stage("", keep),))


def _asked(plan: TablePlan) -> dict[str, Any]:
    found = {key: value for key, value in plan.stated.items() if key not in FREE}
    return {**found, "search": {"choose": plan.search.choose}} if by_k(plan) else found


def read_policies(given: Given) -> dict[str, Policy]:
    """The policies of an earlier result, by release.

    Raises
    ------
    JobError
        If the file cannot be read, is of a form that this version does not know, or is not a result that holds any.
    """
    shown = "the result" if isinstance(given, Mapping) else str(os.fspath(given))
    content = given if isinstance(given, Mapping) else _read(Path(given))
    releases = content.get("releases") if isinstance(content, Mapping) else None
    if isinstance(content, Mapping) and releases and not is_known(content):
        raise JobError.at(_OPTION, f"{shown} {OTHER_FORM}")
    kept = {
        str(name): found["policy"]
        for name, found in (releases.items() if isinstance(releases, Mapping) else ())
        if isinstance(found, Mapping) and isinstance(found.get("policy"), Mapping)
    }
    if not kept:
        raise JobError.at(
            _OPTION, f"{shown} holds no policy; `sqldeid anonymize --json FILE` writes one for each table release"
        )
    return {name: _parse(name, found, shown) for name, found in kept.items()}


def _read(path: Path) -> object:
    try:
        return json.loads(read_limited(path))
    except OSError as error:
        raise JobError.at(_OPTION, f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise JobError.at(_OPTION, f"{path} is not JSON") from None


def _parse(name: str, kept: Mapping[str, Any], shown: str) -> Policy:
    try:
        node, k, asked, packed = kept["node"], kept["k"], kept["asked"], kept["hierarchies"]
        whole = isinstance(k, int) and k >= 1 and all(type(x) is int and x >= 0 for x in node.values())
        if not whole or not isinstance(asked, Mapping) or set(packed) != set(node):
            raise ValueError("not a policy")
        return Policy(name, node, k, str(kept["job_sha256"]), asked, {c: unpack(h) for c, h in packed.items()})
    except HierarchyError as error:
        raise JobError.at(_OPTION, f"{shown}: {name}: {error.message}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise JobError.at(_OPTION, f"{shown}: the policy of {name} is damaged; make it anew") from None


def apply_policy(plan: TablePlan, policies: Mapping[str, Policy], job_sha256: str) -> tuple[TablePlan, Policy]:
    """The plan with the policy's hierarchies in the place of the job's.

    Raises
    ------
    JobError
        If there is no policy of this release, or the job asks for something else by now: what differs is named.
    """
    policy = policies.get(plan.name)
    if policy is None:
        raise JobError.at(plan.key, f"{_OPTION} holds no policy of it; it has {', '.join(policies)}")
    if plan.sampled:
        raise JobError.at(
            f"{plan.key}.search.method", f"epsilon-safe draws its node anew for each release; leave {_OPTION} out"
        )
    if policy.job_sha256 != job_sha256:
        _refuse_other_job(plan, policy)
    heights = {q.name: q.hierarchy.height for q in plan.qis}
    if set(policy.node) != set(heights) or any(x >= heights[c] for c, x in policy.node.items()):
        raise JobError.at(plan.key, "the policy is of other quasi-identifying columns or levels")
    columns = tuple(_stored(plan, c, policy) if isinstance(c, QuasiIdentifier) else c for c in plan.columns)
    return replace(plan, columns=columns), policy


def _stored(plan: TablePlan, qi: QuasiIdentifier, policy: Policy) -> QuasiIdentifier:
    tree = policy.trees[qi.name]
    if tree.level_names != qi.hierarchy.level_names:
        key = f"{plan.key}.columns.{qi.name}.hierarchy"
        raise JobError.at(key, f"has other levels than the policy's; take the job back, or {_ANEW}")
    kept = qi.hierarchy.kept(tree) if isinstance(qi.hierarchy, TopCoded) else tree
    return replace(qi, hierarchy=StoredSource(kept, qi.hierarchy))


def _refuse_other_job(plan: TablePlan, policy: Policy) -> None:
    differing = sorted(set(_differences(policy.asked, _asked(plan), plan.key)))
    if differing:
        raise JobError(
            f"{listed(differing, _SHOWN)}: the job differs from the one that the policy was made by; take "
            f"the job back, or {_ANEW}",
            key=differing[0],
        )


def _differences(then: object, now: object, key: str) -> Iterator[str]:
    """The keys at which two jobs differ, dotted."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for name in {*then, *now}:
            if name not in then or name not in now:
                yield f"{key}.{name}"
            else:
                yield from _differences(then[name], now[name], f"{key}.{name}")
    elif then != now:
        yield key


def reused(plan: TablePlan, policy: Policy) -> tuple[DraftStage, ...]:
    """How a node is found by a policy: new data are folded, and its node is checked on them."""
    from sqldeid.tables.release.statements import checking, folding

    def fold_new(draft: Draft) -> None:
        draft.folded = fold_again(draft.plan, draft.engine)
        draft.warnings += linking_values(draft.plan, draft.engine, draft.folded.source)
        draft.warnings += _recoded(draft.plan, draft.folded)
        if any(q.uncovered == "top" for q in draft.plan.qis):
            from sqldeid.tables.rows.hidden import hidden

            draft.warnings += hidden(draft.plan, draft.folded.columns)

    def check(draft: Draft) -> None:
        checker = checker_of(draft.plan, draft.folded, draft.engine)
        draft.outcome, draft.checker = reuse(draft.plan, draft.folded, checker, policy)

    return (
        Stage("folding the source", fold_new, lambda target: (*folding(plan, target), *linking(plan))),
        Stage("checking the policy's node", check, lambda _: checking(plan)),
    )


def _recoded(plan: TablePlan, folded: Folded) -> tuple[str, ...]:
    """That a file was edited since: its values stay as they were, so that the edit is seen in new ones alone."""
    bound = {coded.qi.name: coded.hierarchy for coded in folded.columns}
    return tuple(
        f"{plan.key}.columns.{q.name}: the hierarchy {q.hierarchy.name} codes values of the first load otherwise by "
        f"now; they stay as the policy codes them, and new values alone follow it: take the edit back, or {_ANEW}"
        for q in plan.qis
        if isinstance(q.hierarchy, StoredSource)
        and q.hierarchy.recodes(bound[q.name], numeric=q.source.kind == "number", uncovered=q.uncovered)
    )


def fold_again(plan: TablePlan, engine: Engine) -> Folded:
    """Fold new data; fewer rows than k, or fewer values than l, are a shortfall, too.

    Raises
    ------
    VerificationError
        If there are fewer rows than k, or values than l.
    """
    try:
        return fold(plan, engine)
    except JobError as error:
        if error.key not in (f"{plan.key}.privacy.k", f"{plan.key}.privacy.l_diversity"):
            raise
        raise VerificationError(
            f"{error.message}; the policy cannot be applied, nothing was published", key=plan.key
        ) from None


def reuse(plan: TablePlan, folded: Folded, checker: Checker, policy: Policy) -> tuple[Outcome, Checker]:
    """The policy's node on new data, by one check; it counts as not proven best.

    Raises
    ------
    VerificationError
        If the criteria no longer hold within the suppression limit; the shortfall is named.
    """
    started = monotonic()
    k = max(policy.k, plan.demands.k)
    checker = replace(checker, k=k, judge=None if checker.judge is None else replace(checker.judge, k=k))
    node = tuple(policy.node[q.name] for q in plan.qis)
    evaluation = checker([node])[0]
    alone = _by_k_alone(plan, checker, node) if by_k(plan) else evaluation
    if not within(plan, folded.rows, alone.failing, evaluation.failing):
        raise VerificationError(_shortfall(plan, folded, checker, node), key=plan.key)
    loss = make_loss(plan.search.loss, [c.marginal for c in folded.columns], folded.rows)
    exact = loss.of(alone)
    outcome = Outcome(
        node=node,
        evaluation=evaluation,
        exact=exact,
        loss=loss.value(exact),
        optimal=False,
        bound=0,
        gap=loss.value(exact),
        checks=1,
        statements=1,
        seconds=monotonic() - started,
        checked={node: alone},
        k=k if k > plan.demands.k else None,
    )
    return outcome, checker


def _by_k_alone(plan: TablePlan, checker: Checker, node: Node) -> Evaluation:
    """The node by the size of its classes, in persons where they may have many rows, as the search sees it."""
    return replace(checker, judge=_judge_of_k(plan, checker))([node])[0]


def _judge_of_k(plan: TablePlan, checker: Checker) -> Judge | None:
    """What counts the persons of classes; None where a row is a person, whom the classes count themselves."""
    judge = checker.judge
    return replace(judge, criteria=(), concealing=None) if judge is not None and plan.many else None


def _shortfall(plan: TablePlan, folded: Folded, checker: Checker, node: Node) -> str:
    """What the node lacks: rows over the limit, by criterion."""
    arm, k = checker.arm(0, node), checker.k
    judge, of_k = checker.judge, _judge_of_k(plan, checker)
    few = replace(checker, judge=None, overall=None)([node])[0].failing if of_k is None else _failing(of_k, arm)
    fewer = f"fewer than {k} persons" if plan.many else f"fewer than {k}"
    parts = [f"{_rows(few)} in classes of {fewer}"] if few else []
    failing = few
    if judge is not None:
        for criterion in judge.criteria:
            found = _failing(replace(judge, criteria=(criterion,), concealing=None, k_map=None, presence=None), arm)
            parts += [f"{_rows(found - few)} in classes that fail {criterion.name} of {criterion.column}"] * (
                found > few
            )
        if judge.concealing is not None:
            found = _failing(replace(judge, criteria=(), k_map=None, presence=None), arm)
            if found > few:
                parts.append(f"{_rows(found - few)} in classes that fail {judge.concealing.name}")
        if judge.k_map is not None:
            found = _failing(replace(judge, criteria=(), concealing=None, presence=None), arm)
            parts += [f"{_rows(found - few)} in classes of too few persons of the population"] * (found > few)
        if judge.presence is not None:
            found = _failing(replace(judge, criteria=(), concealing=None, k_map=None), arm)
            parts += ["all, for the share of a class of the population is out of bounds"] * (found > few)
        failing = _failing(judge, arm)
    if plan.overall is not None:
        together, failing = failing, checker([node])[0].failing
        if failing > together:
            names = " and ".join(w.name for w in plan.overall.words)
            parts.append(f"{_rows(failing - together)} in the smallest other classes, for {names}")
    demands, limit = plan.demands, f"suppression_limit = {plan.demands.suppression_limit:g} allows"
    over = failing - checker.allowed
    if by_k(plan):
        limit = f"{limit} for classes of {fewer} and criteria_limit = {demands.criteria_limit:g} for the others"
        beyond = allowed_beyond(plan, folded.rows)
        over = max(few - allowed_rows(demands.suppression_limit, folded.rows), 0) + max(failing - few - beyond, 0)
    return (
        f"{plan.key}: the policy's node no longer meets the criteria: {_rows(failing)} of {folded.rows:,} would be "
        f"suppressed, {max(over, 0):,} more than {limit} "
        f"({'; '.join(parts)}). Nothing was published. Where the data has changed for good, {_ANEW}"
    )


def _failing(judge: Judge, arm: dict[str, object]) -> int:
    verdicts = judge.verdicts([arm])
    found = judge.sums(verdicts)[int(str(arm["id"]))].failing
    judge.drop(verdicts)
    return found


def _rows(number: int) -> str:
    return f"{number:,} row{'s' * (number != 1)}"


def retold() -> Beside:
    """What accompanies a release by policy: its method is told, and that nobody looked for a better node."""

    def tell(draft: Draft) -> None:
        key, result = draft.plan.key, draft.result
        better = f"{key}: the node is the policy's; whether another loses less on these rows was not asked"
        stale = f"{key}: the node is the best one found"
        warnings = (better, *(w for w in result.warnings if not w.startswith(stale)))
        draft.result = replace(result, search=replace(result.search, method="policy"), warnings=warnings)

    return Beside(told=(Stage("", tell),))
