"""The wing's work: one planned table release, folded, searched, staged and verified; not yet published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqldeid.engine.base import Engine
from sqldeid.errors import Interrupted, NoSolutionError
from sqldeid.making import Hearing, Making
from sqldeid.publish import Note
from sqldeid.result import TableRelease
from sqldeid.tables.certificate.certificate import NotProvenError
from sqldeid.tables.certificate.proof import certify
from sqldeid.tables.check.bases import Bases, room
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.check.persons import PersonJudge
from sqldeid.tables.check.profiling import Profiler
from sqldeid.tables.disguise.disguise import RUN_NOTE, Secrets, disguise, fresh_secrets, pseudonyms
from sqldeid.tables.epsilon_safe.release import run_safe
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.followed.companion import accompanied, accompany, followed, verify_joined
from sqldeid.tables.ledger.budget import spend
from sqldeid.tables.ledger.contents import admit, held_by, noted, with_ledger
from sqldeid.tables.model.evaluation import Evaluate, Evaluation
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan.choosing import allowed_beyond, allowed_of, by_k, choosing, within
from sqldeid.tables.plan.effective import with_m
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.release.explain import explained
from sqldeid.tables.release.linking_values import linking_values
from sqldeid.tables.release.policy import Policy, apply_policy, fold_again, retell, reuse, with_policy
from sqldeid.tables.release.summary import near_keys, summarise
from sqldeid.tables.search import Outcome, Problem, Progress, search
from sqldeid.tables.search.base import no_solution
from sqldeid.tables.verify.verify import noted_criteria, verify
from sqldeid.tables.write.codebook import with_codes
from sqldeid.tables.write.computed import fingerprint, stage_computed
from sqldeid.tables.write.stage import Chosen, stage
from sqldeid.tables.write.unchanged_source import source_unchanged

PROVING = ("frontier", "best-first", "ola")
"""Methods whose checks cover the lattice."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears how far a run is; the default hears nothing.

    Parameters
    ----------
    step
        Called with release and the step that begins.
    search
        Called with where the search stands, after every statement.
    """

    step: Callable[[str, str], None] = lambda release, step: None
    search: Callable[[Progress], None] = lambda progress: None


def run(planned: TablePlan, making: Making) -> TableRelease:
    """Produce one release up to, not including, its publication.

    Raises
    ------
    JobError, HierarchyError
        If the data breaks a rule of the job.
    NoSolutionError
        If no node is admissible.
    VerificationError
        If what was written fails its re-check.
    """
    plan, policy = planned, None
    if making.policies is not None:
        plan, policy = apply_policy(planned, making.policies, making.job_sha256)
    if plan.sampled:
        step = making.listener.step
        safe = run_safe(plan, making.engine, making.staging, lambda p, node, k: note_of(p, node, k, None), step)
        return safe if making.ledger is None else spend(making.ledger, plan, making.engine, safe, making.job_sha256)
    return _search_and_stage(plan, policy, making)


def _search_and_stage(plan: TablePlan, policy: Policy | None, making: Making) -> TableRelease:
    engine, listener, ledger, partner = making.engine, making.listener, making.ledger, making.partner
    key = making.key() if pseudonyms(plan) else None
    secrets = fresh_secrets(plan, key, repeated=ledger is not None)
    moved = engine.moved
    listener.step(plan.name, "folding the source")
    folded = fold(plan, engine, room(plan, engine)) if policy is None else fold_again(plan, engine)
    linking = linking_values(plan, engine, folded.source)
    outcome, checker, chooser = _node_of(plan, folded, engine, listener, policy)
    folded = seen = checker.near(outcome.node).folded
    asked, plan = plan, with_m(plan, outcome.m)
    listener.step(plan.name, "writing the release")
    if secrets is not None:
        folded = replace(folded, source=disguise(plan, engine, folded.source, secrets))
    chosen = choose(plan, folded, outcome, checker)
    frozen = fingerprint(plan, engine) if plan.part.frozen else None
    company = None if partner is None else accompany(chosen, partner, engine)
    if company is not None:
        listener.step(asked.name, "writing the release")
        chosen, plan, folded = company.chosen, company.chosen.plan, replace(folded, source=company.source)
    note = accompanied(note_of(plan, outcome.node, chosen.k, frozen, secrets), company)
    write = stage_computed if plan.part.view == "computed" else stage
    let_out = None if ledger is None else admit(ledger, chosen, engine, making.job_sha256)
    written = write(chosen if let_out is None else let_out.chosen, engine, making.staging, noted(note, let_out))
    listener.step(plan.name, "verifying what was written")
    hierarchies = [c.hierarchy for c in folded.columns]
    source, held = folded.source, held_by(let_out) if company is None else company.held
    whole = company is None and let_out is None  # else rows are left out that the search saw
    with source_unchanged(plan, seen, outcome.evaluation.failing if whole else None, engine) as check:
        verified = check(verify(plan, outcome.node, chosen.k, hierarchies, source, written, engine, secrets, held))
    joined = () if company is None else verify_joined(company, written, engine)
    chosen = replace(chosen, folded=folded)
    result = summarise(chosen, outcome, verified, checker, engine, moved)
    result = with_codes(result, asked, outcome.node, written, engine)
    near = near_keys(asked, written, verified.released, engine) if verified.released else ()
    result = with_ledger(replace(result, warnings=(*result.warnings, *near, *linking)), let_out)
    if company is not None:
        result = replace(result, followed=followed(company, joined))
    result = with_policy(result, asked, chosen.k, making.job_sha256, folded)
    if policy is not None:
        return retell(result, plan)
    result = explained(result, replace(chosen, plan=choosing(chosen.plan)), outcome, chooser)
    return _certified(result, chosen, outcome) if making.certificate else result


def _node_of(
    plan: TablePlan, folded: Folded, engine: Engine, listener: Hearing, policy: Policy | None
) -> tuple[Outcome, Checker, Checker]:
    """The node to release, found or the policy's; what checks it by all criteria, and what the node is chosen by."""
    checker = checker_of(plan, folded, engine)
    chooser = checker_of(choosing(plan), folded, engine) if by_k(plan) else checker
    if policy is not None:
        listener.step(plan.name, "checking the policy's node")
        return (*reuse(plan, folded, checker, policy), chooser)
    listener.step(plan.name, "searching the lattice" + (" by classes rolled up in the source" if folded.far else ""))
    outcome, found = find_node(choosing(plan), folded, chooser, listener)
    if by_k(plan):
        return _judged(plan, folded.rows, outcome, checker([outcome.node])[0]), checker, chooser
    return outcome, found, found


def _judged(plan: TablePlan, rows: int, outcome: Outcome, evaluation: Evaluation) -> Outcome:
    """The outcome with what all criteria suppress at the node that k alone chose; its loss and proof stay those of k.

    Raises
    ------
    NoSolutionError
        If more rows fail a criterion beyond k than `criteria_limit` allows.
    """
    few = outcome.evaluation.failing
    if within(plan, rows, few, evaluation.failing):
        return replace(outcome, evaluation=evaluation)
    beyond, allowed = evaluation.failing - few, allowed_beyond(plan, rows)
    levels = ", ".join(f"{q.name} = {x}" for q, x in zip(plan.qis, outcome.node, strict=True))
    raise NoSolutionError(
        f"{plan.key}: at the node that k alone chooses ({levels}), {beyond:,} rows are in classes of "
        f"{plan.part.privacy.k} and more that fail another criterion; {allowed:,} are allowed. Another node is not "
        "sought: it would be chosen by sensitive values. Raise privacy.criteria_limit or ask for less; what is changed "
        "because of this message is chosen by sensitive values, too, so state it before the next run, not by trying",
        key=f"{plan.key}.privacy.criteria_limit",
    )


def checker_of(plan: TablePlan, folded: Folded, engine: Engine) -> Checker:
    """What answers the search's questions, by all criteria of the plan."""
    k, name, bench = plan.part.privacy.k, plan.name, engine.bench
    judging = PersonJudge if plan.many else Judge
    judge = judging(bench, folded, k, plan.criteria, name, plan.concealing) if plan.beyond_k else None
    allowed = allowed_of(plan, folded.rows)
    if folded.room is None:
        return Checker(bench, folded, k, allowed, name, judge)

    def checking(brought: Folded) -> Checker:
        return checker_of(plan, brought, engine)

    most = folded.room
    return Bases(bench, folded, k, allowed, name, judge, plan=plan, source=engine, most=most, checking=checking)


def no_certificate(plan: TablePlan) -> str:
    """Why a release of this plan has no certificate; empty where its search proves what it finds."""
    return "" if plan.part.search.method in PROVING else f"{plan.part.search.method} proves nothing"


def _certified(result: TableRelease, chosen: Chosen, outcome: Outcome) -> TableRelease:
    """The result with the search's proof, or with a warning where there is none."""
    plan = choosing(chosen.plan)
    try:
        if reason := no_certificate(plan):
            raise NotProvenError(reason)
        proof = certify(
            plan,
            [c.marginal for c in chosen.folded.columns],
            result.rows,
            outcome.checked[outcome.node] if by_k(chosen.plan) else outcome.evaluation,
            outcome.bound,
            outcome.checked,
            optimal=outcome.optimal,
        )
    except NotProvenError as error:
        return replace(result, warnings=(*result.warnings, f"{plan.key}: there is no certificate: {error}"))
    return replace(result, certificate=proof)


def choose(plan: TablePlan, folded: Folded, outcome: Outcome, checker: Checker) -> Chosen:
    """The node with the classes that its criteria suppress."""
    k, near = outcome.k or plan.part.privacy.k, checker.near(outcome.node)
    failing = near.judge.keep_failing(near.arm(0, outcome.node)) if near.judge is not None else None
    return Chosen(plan, folded, outcome.node, k, near.judge, failing)


def find_node(plan: TablePlan, folded: Folded, checker: Checker, listener: Hearing) -> tuple[Outcome, Checker]:
    """Search the lattice by the job's method; the outcome, and the checker by whose k it is released.

    `inverse-ola` reads class sizes, or risks, alone: what the k or m that it found suppresses is asked at the end.
    """
    outcome = _search_lattice(plan, folded, checker, listener)
    if outcome.m is not None:
        checker = checker_of(with_m(plan, outcome.m), folded, checker.engine)
    elif outcome.k is None:
        return outcome, checker
    else:
        checker = replace(checker, k=outcome.k)
    return replace(outcome, evaluation=checker([outcome.node])[0]), checker


def _search_lattice(plan: TablePlan, folded: Folded, checker: Checker, listener: Hearing) -> Outcome:
    asked, hidden = plan.part.search, plan.part.privacy.m_concealing
    most_m = hidden.m if hidden is not None and asked.method == "inverse-ola" else None
    marginals = [c.marginal for c in folded.columns]
    problem = Problem(
        lattice=plan.lattice,
        marginals=marginals,
        rows=folded.rows,
        allowed=checker.allowed,
        loss=make_loss(asked.loss, marginals, folded.rows),
        evaluate=_evaluate(checker, profiled=most_m is not None),
        time_limit=asked.time_limit,
        checks_limit=asked.checks_limit,
        max_loss=asked.max_loss,
        least_k=plan.part.privacy.k,
        most_m=most_m,
        progress=listener.search,
    )
    try:
        return search(asked.method, problem)
    except Interrupted as stopped:
        raise _with_standing(problem, stopped) from None
    except NoSolutionError:
        if asked.max_loss is not None:
            raise
        problem.state.nearest = checker.nearest(problem.state.checked.values())
        raise no_solution(problem, exhausted=not problem.spent()) from None


def _evaluate(checker: Checker, *, profiled: bool) -> Evaluate:
    """What the search asks: failing rows by all criteria; or, where m is sought, by k alone, and every risk."""
    if not profiled or checker.judge is None:
        return checker
    return Profiler(replace(checker, judge=None), checker.judge)


def _with_standing(problem: Problem, stopped: Interrupted) -> Interrupted:
    """The interruption with the best node and the gap that were known."""
    best, standing = problem.state.best, problem.standing()
    message = f"{stopped.message}; nothing was published"
    if best is None or standing.best is None:
        return Interrupted(message)
    levels = {m.name: x for m, x in zip(problem.marginals, best.node, strict=True)}
    gap = max(standing.best - (standing.bound or 0.0), 0.0)
    return Interrupted(message, best={"node": levels, "loss": standing.best}, gap=gap)


def note_of(plan: TablePlan, node: Node, k: int, frozen: str | None, secrets: Secrets | None = None) -> Note:
    """What is kept on the release: node, hierarchies' names, criteria, a frozen source's fingerprint.

    With pseudonyms also the publication's public number, by which who has the key can compute them again.

    Never a count of the source.
    """
    levels = dict(zip((q.name for q in plan.qis), node, strict=True))
    content: dict[str, object] = {
        "kind": "table",
        "node": levels,
        "hierarchies": {q.name: q.hierarchy_name for q in plan.qis},
        "criteria": noted_criteria(plan, k),
    }
    if by_k(plan):
        content["choose"] = plan.part.search.choose
    if frozen is not None:
        content["source_fingerprint"] = frozen
    if secrets is not None and pseudonyms(plan):
        content[RUN_NOTE] = secrets.run
    return Note(plan.name, content, {c.name: _comment(c, levels.get(c.name)) for c in plan.released})


def _comment(column: object, level: int | None) -> str:
    if isinstance(column, QuasiIdentifier) and level is not None:
        h, name = column.hierarchy, column.hierarchy_name
        return f"quasi-identifying, level {level} of {h.height - 1} ({h.level_names[level]}), hierarchy {name}"
    return f"{getattr(column, 'role', '')}, {getattr(column, 'shown', None) or 'as in the source'}"
