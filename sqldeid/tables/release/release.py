"""The way of one planned table release as stages: folded, searched, staged, verified and told; not yet published.

`way_of` states the one order of all stages, of the release's own and of those that accompany it. A run walks them
(`run`), and `--plan` shows them (`sqldeid.tables.release.planned`). What accompanies few releases is imported where it
is asked for: most runs do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

from sqldeid.attacked import ATTACKS, none_made
from sqldeid.errors import JobError
from sqldeid.hierarchy import named_level
from sqldeid.keys import Key
from sqldeid.making import Cohorts, Making
from sqldeid.publish import Note
from sqldeid.result import TableRelease
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Stage, Step, Target, walk
from sqldeid.tables.check.bases import room
from sqldeid.tables.disguise.disguise import days_noted
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.choosing import by_k, choosing
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.release.explain import explained
from sqldeid.tables.release.linking_values import linking, linking_values
from sqldeid.tables.release.node import checker_of, choose, find_node, judged_by_all
from sqldeid.tables.release.policy import Policy, apply_policy, kept_policy, retold, reused
from sqldeid.tables.release.summary import near_keys, summarise
from sqldeid.tables.search import Progress
from sqldeid.tables.verify.verify import noted_criteria, verify
from sqldeid.tables.write.codebook import with_codes
from sqldeid.tables.write.compared import compared_by
from sqldeid.tables.write.computed import frozen, stage_computed
from sqldeid.tables.write.disguised import disguised, drawing
from sqldeid.tables.write.draft import Beside, Draft, DraftStage
from sqldeid.tables.write.stage import stage
from sqldeid.tables.write.unchanged_source import source_unchanged

if TYPE_CHECKING:
    from sqldeid.ledger.core import Ledger
    from sqldeid.numbering import Partner

Statements = Callable[[Target], Iterator[Step]]


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

    def __init_subclass__(cls) -> None:
        """Refused: methods of these names would not be called, for the functions stand before them."""
        raise JobError.at("listener", "is not made by a class; give functions: sqldeid.Listener(step=…, search=…)")


@dataclass(frozen=True, slots=True)
class Company:
    """What a run asks for beside the release; nothing, where a plan is only shown."""

    key: Callable[[], Key | None] = lambda: None
    policy: Policy | None = None
    ledger: Ledger | None = None
    partner: Partner | None = None
    certificate: bool = False
    cohorts: Cohorts | None = None
    job_sha256: str = ""
    spared: Mapping[str, str] = field(default_factory=dict)


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
    company = Company(
        making.key, policy, making.ledger, making.partner, making.certificate, making.cohorts, making.job_sha256
    )
    company = replace(company, spared=making.spared.get(plan.name, {}))
    none = none_made("", company.spared) if company.spared.keys() >= {*ATTACKS} else None
    if none is not None:
        plan = replace(plan, attacks=False)
    draft = Draft(plan, making.engine, making.staging, making.listener, making.engine.moved)
    walk(way_of(plan, company), draft, draft.say)
    return draft.result if none is None else replace(draft.result, attacks=none)


def way_of(plan: TablePlan, company: Company, put: Statements | None = None) -> tuple[DraftStage, ...]:
    """The stages of a release, in order: the one place that knows all of them.

    Parameters
    ----------
    put
        The statements that write the release, where they are not those of one table.
    """
    put = put or (lambda target: _named().writing(plan, target))
    if plan.sampled:
        from sqldeid.tables.epsilon_safe.release import drawn_way
        from sqldeid.tables.ledger.budget import spending

        spent = spending(company.ledger, company.job_sha256) if company.ledger is not None else ()
        return (*drawn_way(plan, note_of, put), *spent)
    beside, held = tuple(_beside(plan, company)), company.ledger is not None or company.partner is not None
    return (
        Stage("", lambda draft: drawing(draft, company.key, repeated=company.ledger is not None)),
        *(_searched(plan) if company.policy is None else reused(plan, company.policy)),
        Stage("writing the release", _choose, lambda _: _named().keeping_failing(plan)),
        *(stage for each in beside for stage in each.before),
        Stage("", _write, put),
        Stage("verifying what was written", _verify, lambda target: _named().verifying(plan, target, held=held)),
        *(stage for each in beside for stage in each.after),
        Stage("", _tell, lambda _: _telling(plan)),
        *(stage for each in beside for stage in each.told),
    )


def _named() -> ModuleType:
    """The statements of the stages, which a run does not wait for: only who shows or watches them asks."""
    from sqldeid.tables.release import statements

    return statements


def _beside(plan: TablePlan, company: Company) -> Iterator[Beside]:
    """What accompanies the release, in order; each knows the release alone, and none of the others."""
    yield frozen(plan)
    yield disguised(plan)
    if company.partner is not None:
        from sqldeid.tables.followed.companion import followed_by

        yield followed_by(plan, company.partner)
    if company.ledger is not None:
        from sqldeid.tables.ledger.contents import held_to

        yield held_to(plan, company.ledger, company.job_sha256)
    if company.cohorts is not None:
        yield compared_by(company.cohorts)
    yield kept_policy(company.job_sha256)
    if company.policy is not None:
        yield retold()
    else:
        if not plan.search.blunt:  # why a finer node was not chosen is then no reason
            yield Beside(told=(Stage("", _explain, lambda _: _named().checking(plan)),))
        if company.certificate:
            from sqldeid.tables.certificate.proof import certified

            yield certified(plan)
    if plan.attacks:
        from sqldeid.tables.attacks.run import attacking
        from sqldeid.tables.release.remade import remake

        anew = company.policy is None
        yield attacking(plan, lambda: _searching_again(plan), remake, anew=anew, spared=company.spared)


def _searching_again(plan: TablePlan) -> Iterator[Step]:
    """The statements that find a node and what it suppresses, where a release is made once more; if it is."""
    yield from as_needed(*(s.template for s in (*_named().checking(plan), *_named().keeping_failing(plan))))


def _searched(plan: TablePlan) -> tuple[DraftStage, ...]:
    """How a node is found by a search of the lattice."""
    return (
        Stage("folding the source", _fold, lambda target: (*_named().folding(plan, target), *linking(plan))),
        Stage("searching the lattice", _search, lambda _: _named().checking(plan), _where),
    )


def _fold(draft: Draft) -> None:
    plan, engine = draft.plan, draft.engine
    draft.folded = fold(plan, engine, room(plan, engine))
    draft.warnings += linking_values(plan, engine, draft.folded.source)
    if any(q.uncovered == "top" for q in plan.qis):
        from sqldeid.tables.rows.hidden import hidden

        draft.warnings += hidden(plan, draft.folded.columns)


def _where(draft: Draft) -> str:
    return " by classes rolled up in the source" if draft.folded.far else ""


def _search(draft: Draft) -> None:
    """Find the node; `checker` is what checks it by all criteria, and `chooser` what it is chosen by."""
    plan, folded, engine = draft.plan, draft.folded, draft.engine
    checker = checker_of(plan, folded, engine)
    chooser = checker_of(choosing(plan), folded, engine) if by_k(plan) else checker
    outcome, found = find_node(choosing(plan), folded, chooser, draft.listener)
    if by_k(plan):
        outcome = judged_by_all(plan, folded.rows, outcome, checker([outcome.node])[0])
        draft.outcome, draft.checker, draft.chooser = outcome, checker, chooser
    else:
        draft.outcome, draft.checker, draft.chooser = outcome, found, found


def _choose(draft: Draft) -> None:
    """Take the classes of the node that its criteria suppress, and begin the note."""
    outcome = draft.outcome
    draft.folded = draft.checker.near(outcome.node).folded
    plan = draft.plan.with_m(outcome.m)
    draft.chosen = draft.out = choose(plan, draft.folded, outcome, draft.checker)
    draft.note = note_of(plan, outcome.node, draft.chosen.noted_k)


def _write(draft: Draft) -> None:
    write = stage_computed if draft.plan.computed else stage
    draft.written = write(draft.out, draft.engine, draft.staging, draft.note)


def _verify(draft: Draft) -> None:
    chosen, engine = draft.chosen, draft.engine
    failing = draft.outcome.evaluation.failing if draft.whole else None
    with source_unchanged(chosen.plan, draft.folded, failing, engine) as check:
        draft.verified = check(verify(chosen.claimed, draft.written, engine, draft.secrets, draft.held))


def _tell(draft: Draft) -> None:
    plan, engine, written = draft.plan, draft.engine, draft.written
    result = summarise(draft.chosen, draft.outcome, draft.verified, draft.checker, engine, draft.moved)
    result = with_codes(result, plan, draft.outcome.node, written, engine)
    near = near_keys(plan, written, draft.verified.released, engine) if draft.verified.released else ()
    draft.result = replace(result, warnings=(*result.warnings, *near, *draft.warnings))


def _telling(plan: TablePlan) -> Iterator[Step]:
    yield from _named().telling(plan)
    if plan.others:
        yield from as_needed("tables/release/count_distinct")


def _explain(draft: Draft) -> None:
    """Tell the nodes beside the chosen one, by what it is chosen by."""
    chosen = replace(draft.chosen, plan=choosing(draft.chosen.plan))
    draft.result = explained(draft.result, chosen, draft.outcome, draft.chooser)


def note_of(plan: TablePlan, node: Node, k: int) -> Note:
    """What is kept on the release: node, hierarchies' names, criteria; never a count of the source."""
    levels = dict(zip((q.name for q in plan.qis), node, strict=True))
    content: dict[str, object] = {
        "kind": "table",
        "node": levels,
        "hierarchies": {q.name: q.hierarchy_name for q in plan.qis},
        "criteria": noted_criteria(plan, k),
        **days_noted(plan, [node]),
    }
    if plan.sample is not None:
        content["sample"] = float(plan.sample)
    if plan.aggregated:
        content["aggregated"] = {c.name: c.noted for c in plan.aggregated}
    if by_k(plan):
        content["choose"] = plan.search.choose
    return Note(plan.name, content, {c.name: _comment(c, levels.get(c.name)) for c in plan.released})


def _comment(column: object, level: int | None) -> str:
    if isinstance(column, QuasiIdentifier) and level is not None:
        h, name = column.hierarchy, column.hierarchy_name
        return f"quasi-identifying, level {level} of {h.height - 1}{named_level(h, level)}, hierarchy {name}"
    return f"{getattr(column, 'role', '')}, {getattr(column, 'shown', None) or 'as in the source'}"
