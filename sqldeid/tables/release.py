"""The wing's work: one planned table release, folded, searched, staged and verified; not yet published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import Interrupted, NoSolutionError
from sqldeid.publish import Note, Staging
from sqldeid.result import ColumnResult, Criterion, SearchResult, TableRelease, risk_of
from sqldeid.sql import column, identifier, render
from sqldeid.tables.certificate import NotProvenError
from sqldeid.tables.check import Checker
from sqldeid.tables.computed import fingerprint, stage_computed
from sqldeid.tables.evaluation import Marginal, allowed_rows
from sqldeid.tables.fold import Folded, fold
from sqldeid.tables.judge import Judge
from sqldeid.tables.lattice import Node
from sqldeid.tables.loss import LossReport, all_losses, make_loss
from sqldeid.tables.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.privacy.k_anonymity import KAnonymity
from sqldeid.tables.proof import certify
from sqldeid.tables.safe_release import run_safe
from sqldeid.tables.search import Outcome, Problem, Progress, search
from sqldeid.tables.search.base import no_solution
from sqldeid.tables.stage import Chosen, stage, suppression_by
from sqldeid.tables.verify import Verified, noted_criteria, verify

NEAR_KEY = 0.7
"""Share of distinct values among released rows from which a column is called nearly unique."""

NEAR_KEY_ROWS = 20
"""Rows from which that is asked."""

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


def run(
    plan: TablePlan,
    engine: Engine,
    staging: Staging,
    job_sha256: str,
    listener: Listener,
    *,
    certificate: bool = False,
) -> TableRelease:
    """Produce one release up to, not including, its publication.

    Parameters
    ----------
    certificate
        Whether the search's proof is wanted with the result.

    Raises
    ------
    JobError, HierarchyError
        If the data breaks a rule of the job.
    NoSolutionError
        If no node is admissible.
    VerificationError
        If what was written fails its re-check.
    """
    if plan.sampled:
        return run_safe(plan, engine, staging, lambda p, node, k: note_of(p, node, k, job_sha256, None), listener.step)
    moved = engine.moved
    listener.step(plan.name, "folding the source")
    folded = fold(plan, engine)
    listener.step(plan.name, "searching the lattice")
    outcome, checker = find_node(plan, folded, checker_of(plan, folded, engine), listener)
    listener.step(plan.name, "writing the release")
    chosen = choose(plan, folded, outcome, checker)
    note = note_of(plan, outcome.node, chosen.k, job_sha256, fingerprint(plan, engine) if plan.part.frozen else None)
    write = stage_computed if plan.part.view == "computed" else stage
    written = write(chosen, engine, staging, note)
    listener.step(plan.name, "verifying what was written")
    hierarchies = [c.hierarchy for c in folded.columns]
    verified = verify(plan, outcome.node, chosen.k, hierarchies, folded.source, written, engine)
    result = _result(chosen, outcome, verified, checker, engine, moved)
    if verified.released:
        result = replace(result, warnings=(*result.warnings, *_near_keys(plan, written, verified.released, engine)))
    return _certified(result, chosen, outcome) if certificate else result


def checker_of(plan: TablePlan, folded: Folded, engine: Engine) -> Checker:
    """What answers the search's questions, by all criteria of the plan."""
    k, name = plan.part.privacy.k, plan.name
    judge = Judge(engine, folded, k, plan.criteria, name, plan.concealing) if plan.beyond_k else None
    return Checker(engine, folded, k, allowed_rows(plan.part.privacy.suppression_limit, folded.rows), name, judge)


def no_certificate(plan: TablePlan) -> str:
    """Why a release of this plan has no certificate; empty where its search proves what it finds."""
    return "" if plan.part.search.method in PROVING else f"{plan.part.search.method} proves nothing"


def _certified(result: TableRelease, chosen: Chosen, outcome: Outcome) -> TableRelease:
    """The result with the search's proof, or with a warning where there is none."""
    plan = chosen.plan
    try:
        if reason := no_certificate(plan):
            raise NotProvenError(reason)
        proof = certify(
            plan,
            [c.marginal for c in chosen.folded.columns],
            result.rows,
            outcome.evaluation,
            outcome.bound,
            outcome.checked,
            optimal=outcome.optimal,
        )
    except NotProvenError as error:
        return replace(result, warnings=(*result.warnings, f"{plan.key}: there is no certificate: {error}"))
    return replace(result, certificate=proof)


def choose(plan: TablePlan, folded: Folded, outcome: Outcome, checker: Checker) -> Chosen:
    """The node with the classes that its criteria suppress."""
    k, judge = outcome.k or plan.part.privacy.k, checker.judge
    failing = judge.keep_failing(checker.arm(0, outcome.node)) if judge is not None else None
    return Chosen(plan, folded, outcome.node, k, judge, failing)


def find_node(plan: TablePlan, folded: Folded, checker: Checker, listener: Listener) -> tuple[Outcome, Checker]:
    """Search the lattice by the job's method; the outcome, and the checker by whose k it is released.

    `inverse-ola` reads class sizes alone: what the k that it found suppresses is asked at the end.
    """
    outcome = _search_lattice(plan, folded, checker, listener)
    if outcome.k is None:
        return outcome, checker
    checker = replace(checker, k=outcome.k)
    return replace(outcome, evaluation=checker([outcome.node])[0]), checker


def _search_lattice(plan: TablePlan, folded: Folded, checker: Checker, listener: Listener) -> Outcome:
    asked = plan.part.search
    marginals = [c.marginal for c in folded.columns]
    problem = Problem(
        lattice=plan.lattice,
        marginals=marginals,
        rows=folded.rows,
        allowed=checker.allowed,
        loss=make_loss(asked.loss, marginals, folded.rows),
        evaluate=checker,
        time_limit=asked.time_limit,
        checks_limit=asked.checks_limit,
        max_loss=asked.max_loss,
        least_k=plan.part.privacy.k,
        progress=listener.search,
    )
    try:
        return search(asked.method, problem)
    except Interrupted as stopped:
        raise _with_standing(problem, stopped) from None
    except NoSolutionError:
        problem.state.nearest = checker.nearest(problem.state.checked.values())
        raise no_solution(problem, exhausted=not problem.spent()) from None


def _with_standing(problem: Problem, stopped: Interrupted) -> Interrupted:
    """The interruption with the best node and the gap that were known."""
    best, standing = problem.state.best, problem.standing()
    message = f"{stopped.message}; nothing was published"
    if best is None or standing.best is None:
        return Interrupted(message)
    levels = {m.name: x for m, x in zip(problem.marginals, best.node, strict=True)}
    gap = max(standing.best - (standing.bound or 0.0), 0.0)
    return Interrupted(message, best={"node": levels, "loss": standing.best}, gap=gap)


def note_of(plan: TablePlan, node: Node, k: int, job_sha256: str, frozen: str | None) -> Note:
    """What is kept on the release: node, hierarchies' names, criteria, job hash, a frozen source's fingerprint.

    Never a count of the source.
    """
    levels = dict(zip((q.name for q in plan.qis), node, strict=True))
    content: dict[str, object] = {
        "kind": "table",
        "node": levels,
        "hierarchies": {q.name: q.hierarchy_name for q in plan.qis},
        "criteria": noted_criteria(plan, k),
        "job_sha256": job_sha256,
    }
    if frozen is not None:
        content["source_fingerprint"] = frozen
    return Note(plan.name, content, {c.name: _comment(c, levels.get(c.name)) for c in plan.released})


def _comment(column: object, level: int | None) -> str:
    if isinstance(column, QuasiIdentifier) and level is not None:
        h, name = column.hierarchy, column.hierarchy_name
        return f"quasi-identifying, level {level} of {h.height - 1} ({h.level_names[level]}), hierarchy {name}"
    return f"{getattr(column, 'role', '')}, as in the source"


def _result(
    chosen: Chosen,
    outcome: Outcome,
    verified: Verified,
    checker: Checker,
    engine: Engine,
    moved_before: tuple[int, int],
) -> TableRelease:
    plan = chosen.plan
    bottom = checker([plan.lattice.bottom], histogram=True)[0]
    marginals = [c.marginal for c in chosen.folded.columns]
    losses = all_losses(outcome.evaluation, marginals, verified.rows, bottom.squares)
    moved = tuple(after - before for after, before in zip(engine.moved, moved_before, strict=True))
    return TableRelease(
        name=plan.name,
        rows=verified.rows,
        released=verified.released,
        suppressed=verified.suppressed,
        node=dict(zip((q.name for q in plan.qis), outcome.node, strict=True)),
        k=verified.k,
        classes=verified.classes,
        criteria=(_k_anonymity(chosen.k, verified.k), *verified.criteria),
        one_over_m=_one_over_m(plan, verified),
        loss={
            "loss": losses.loss,
            "prec": losses.prec,
            "dm_star": losses.dm_star,
            "dm_star_original": losses.dm_star_original,
            "entropy": losses.entropy,
        },
        columns=_columns(plan, outcome.node, losses),
        risk={"source": risk_of(dict(bottom.histogram or {})), "release": risk_of(verified.sizes)},
        suppression_by=suppression_by(chosen, engine) if verified.suppressed else {},
        search=_search(plan, outcome),
        written=(),
        moved={"rows": moved[0], "bytes": moved[1]},
        warnings=tuple(_warnings(plan, outcome, verified, marginals)),
    )


def _near_keys(plan: TablePlan, written: exp.Expr, rows: int, engine: Engine) -> Iterator[str]:
    """Columns that are released as they stand and nearly unique."""
    if not plan.others or rows < NEAR_KEY_ROWS:
        return
    columns = [{"column": column(c.name, "r"), "name": identifier(f"d{i}")} for i, c in enumerate(plan.others)]
    row = engine.query(render("tables/count_distinct", release=written, columns=columns)).to_pylist()[0]
    for c, distinct in zip(plan.others, row.values(), strict=True):
        if distinct > NEAR_KEY * rows:
            yield (
                f"{plan.key}.columns.{c.name}: is {c.role} and released as it is, but nearly every row has a value of "
                "its own: whoever knows that value finds the person, whatever k is"
            )


def _one_over_m(plan: TablePlan, verified: Verified) -> float:
    """Of the release: by m-concealing where it is asked for, else its smallest class; 0 for an empty release."""
    if plan.concealing is None:
        return float(verified.k)
    greatest = next(c.achieved for c in verified.criteria if c.name == plan.concealing.name)
    return 1 / greatest if greatest else 0.0


def _k_anonymity(asked: int, achieved: int) -> Criterion:
    return Criterion("k-anonymity", None, asked, achieved, KAnonymity(asked).promise)


def _search(plan: TablePlan, outcome: Outcome) -> SearchResult:
    return SearchResult(
        method=plan.part.search.method,
        loss=plan.part.search.loss,
        optimal=outcome.optimal,
        gap=outcome.gap,
        lattice_size=plan.lattice.size,
        checks=outcome.checks,
        statements=outcome.statements,
        seconds=round(outcome.seconds, 4),
    )


def _columns(plan: TablePlan, node: Node, losses: LossReport) -> dict[str, ColumnResult]:
    levels = dict(zip((q.name for q in plan.qis), node, strict=True))
    found = {}
    for c in plan.columns:
        if isinstance(c, QuasiIdentifier):
            level, h = levels[c.name], c.hierarchy
            found[c.name] = ColumnResult(
                "quasi-identifying", level, h.level_names[level], h.height, c.hierarchy_name, losses.columns[c.name]
            )
        else:
            found[c.name] = ColumnResult(c.role)
    return found


def _warnings(plan: TablePlan, outcome: Outcome, verified: Verified, marginals: list[Marginal]) -> list[str]:
    found = []
    if not outcome.optimal:
        found.append(f"{plan.key}: the node is the best one found, not proven best; gap {outcome.gap:.6g}")
    if not verified.released:
        found.append(f"{plan.key}: the release is empty: every row is suppressed")
    if plan.part.privacy.suppression == "blank" and verified.released < verified.rows:
        found.append(f"{plan.key}: the blanked rows together do not meet the criteria, so they were dropped")
    for m in marginals:
        if len(m.rows[0]) == 1:
            found.append(f"{plan.key}.columns.{m.name}: has one value only; it tells nothing and costs nothing")
    return found
