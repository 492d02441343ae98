"""Find the node of a release: what checks nodes, the search by the job's method, and the classes that it suppresses."""

from __future__ import annotations

from dataclasses import replace
from random import SystemRandom

from sqldeid.engine.base import Engine
from sqldeid.errors import Interrupted, NoSolutionError, SqldeidError
from sqldeid.making import Hearing
from sqldeid.tables.check.bases import Bases
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.check.persons import PersonJudge
from sqldeid.tables.criteria import terms_of
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.model.evaluation import Evaluate, Evaluation
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan.choosing import allowed_beyond, allowed_of, within
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.search import Outcome, Problem, search
from sqldeid.tables.search.base import no_solution
from sqldeid.tables.search.blunt import blunted
from sqldeid.tables.write.stage import Chosen

BOUNDING = ("frontier", "best-first", "flash")
"""Methods that need of a node that cannot win no more than that."""


def judged_by_all(plan: TablePlan, rows: int, outcome: Outcome, evaluation: Evaluation) -> Outcome:
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
        f"{plan.demands.k} and more that fail another criterion; {allowed:,} are allowed. Another node is not "
        "sought: it would be chosen by sensitive values. Raise privacy.criteria_limit or ask for less; what is changed "
        "because of this message is chosen by sensitive values, too, so state it before the next run, not by trying",
        key=f"{plan.key}.privacy.criteria_limit",
    )


def checker_of(plan: TablePlan, folded: Folded, engine: Engine) -> Checker:
    """What answers the search's questions, by all criteria of the plan."""
    k, name, bench = plan.demands.k, plan.name, engine.bench
    judging = PersonJudge if plan.many else Judge
    asked = (plan.criteria, name, plan.concealing, plan.k_map, plan.presence)
    judge = judging(bench, folded, k, *asked) if plan.beyond_k else None
    overall = plan.overall
    allowed = allowed_of(plan, folded.rows)
    if folded.room is None:
        return Checker(bench, folded, k, allowed, name, judge, overall=overall)

    def checking(brought: Folded) -> Checker:
        return checker_of(plan, brought, engine)

    most = folded.room
    return Bases(
        *(bench, folded, k, allowed, name, judge),
        overall=overall,
        plan=plan,
        source=engine,
        most=most,
        checking=checking,
    )


def choose(plan: TablePlan, folded: Folded, outcome: Outcome, checker: Checker) -> Chosen:
    """The node with the classes that its criteria suppress.

    Raises
    ------
    SqldeidError
        If all released classes must meet something together, and the node was not checked for it: a bug.
    """
    least, near = outcome.evaluation.least, checker.near(outcome.node)
    if plan.overall is not None and not least:
        raise SqldeidError("the chosen node was not checked for what all released classes must meet together")
    k, judge = least or outcome.k or plan.demands.k, near.judge
    if judge is not None and least:
        judge = replace(judge, k=least)
    failing = judge.keep_failing(near.arm(0, outcome.node)) if judge is not None else None
    return Chosen(plan, folded, outcome.node, k, judge, failing)


def find_node(plan: TablePlan, folded: Folded, checker: Checker, listener: Hearing) -> tuple[Outcome, Checker]:
    """Search the lattice by the job's method; the outcome, and the checker by whose k it is released.

    `inverse-ola` reads class sizes, or risks, alone: what the k or m that it found suppresses is asked at the end.
    """
    outcome = _search_lattice(plan, folded, checker, listener)
    if outcome.m is not None:
        checker = checker_of(plan.with_m(outcome.m), folded, checker.engine)
    elif outcome.k is None:
        return outcome, checker
    else:
        checker = replace(checker, k=outcome.k)
    return replace(outcome, evaluation=checker([outcome.node])[0]), checker


def _search_lattice(plan: TablePlan, folded: Folded, checker: Checker, listener: Hearing) -> Outcome:
    asked, hidden = plan.search, plan.concealing
    most_m = hidden.asked if hidden is not None and asked.method == "inverse-ola" else None
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
        least_k=plan.demands.k,
        most_m=most_m,
        progress=listener.search,
        full_statements=any(terms_of(c).distance != "none" for c in plan.criteria),
    )
    try:
        checker.hopeless = problem.hopeless if asked.method in BOUNDING else None
        found = search(asked.method, problem)
        if not asked.blunt:
            return found
        checker.hopeless = None  # a drawn node's loss is asked for, though it cannot win
        return blunted(problem, found, asked.blunt, SystemRandom())
    except Interrupted as stopped:
        raise _with_standing(problem, stopped) from None
    except NoSolutionError:
        if asked.max_loss is not None:
            raise
        problem.state.nearest = checker.nearest(problem.state.checked.values())
        raise no_solution(problem, exhausted=not problem.spent()) from None
    finally:
        checker.hopeless = None


def _evaluate(checker: Checker, *, profiled: bool) -> Evaluate:
    """What the search asks: failing rows by all criteria; or, where m is sought, by k alone, and every risk."""
    if not profiled or checker.judge is None:
        return checker
    from sqldeid.tables.check.profiling import Profiler

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
