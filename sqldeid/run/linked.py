"""Linked tables in a run: gathered into one piece of work, made, checked and assessed as the join that they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.insight import assess as assessing
from sqldeid.job import Job
from sqldeid.job.link_rules import link_groups
from sqldeid.keys import read_key
from sqldeid.publish import Staging, published
from sqldeid.result import Risk, TableRelease, Tradeoff
from sqldeid.run.explaining import explain
from sqldeid.run.places import Options, destination
from sqldeid.run.wings import Plan
from sqldeid.tables.certificate.proof import Proven, check_certificate
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.linking import Linked, link
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.linked import Made, as_one, recheck_linked, run_linked, tell_apart
from sqldeid.tables.release.release import Listener
from sqldeid.tables.release.tradeoff import Asked, trade
from sqldeid.tables.rows.linked import join_sources, join_written
from sqldeid.tables.verify.verify import Verified

Unit = TablePlan | Plan | Linked
"""What is planned and made at once: a release, or several that are linked."""


def groups_of(job: Job) -> list[tuple[str, ...]]:
    """The job's linked table releases."""
    return link_groups(job.model_dump(include={"tables": {"__all__": {"link"}}}))


def refuse_split(job: Job, names: Sequence[str], only: Sequence[str]) -> None:
    """Linked tables are made, checked and looked at together.

    Raises
    ------
    JobError
        If `only` takes some of them alone.
    """
    for group in groups_of(job):
        chosen = [name for name in group if name in names]
        if only and chosen and len(chosen) < len(group):
            missing = ", ".join(name for name in group if name not in names)
            raise JobError(
                f"{job.name}: --only: tables.{chosen[0]} is linked with {missing}, and linked tables are one release; "
                f"give --only {' --only '.join(group)}",
                key="--only",
            )


def gather(job: Job, names: Sequence[str], plan: Callable[[str], TablePlan | Plan]) -> list[Unit]:
    """Plan releases in their order, linked ones in the place of the first of them."""
    linked = {name: group for group in groups_of(job) for name in group}
    found: list[Unit] = []
    for name in names:
        group = linked.get(name, (name,))
        if name != group[0]:
            continue
        planned = [plan(n) for n in group]
        tables = [p for p in planned if isinstance(p, TablePlan)]
        found.append(link(tables) if len(tables) > 1 else planned[0])
    return found


def gather_tables(job: Job, names: Sequence[str], engine: Engine) -> list[TablePlan | Linked]:
    """Plan table releases that have a lattice, linked ones in the place of the first of them.

    Raises
    ------
    JobError
        If one has none.
    """
    units = gather(job, names, lambda name: planning.plan(name, job.tables[name], engine, job.folder))
    return [u for u in units if isinstance(u, TablePlan | Linked)]


def single(units: Sequence[Unit], options: Options) -> list[TablePlan | Plan]:
    """The releases that are not linked tables: only of them there is a policy, or a ledger.

    Raises
    ------
    JobError
        If one is asked for with linked tables.
    """
    for unit in units:
        if not isinstance(unit, Linked):
            continue
        if options.policy is not None:
            raise JobError(
                f"{unit.key}: --policy applies the node of one table, and linked tables have a common one; search anew "
                "without it",
                key="--policy",
            )
        if options.ledger is not None:
            raise JobError(
                f"{unit.key}: --ledger compares single tables with earlier releases, not the join of linked ones; take "
                "link out, or release them once and without --ledger",
                key="--ledger",
            )
    return [u for u in units if not isinstance(u, Linked)]


def make_linked(
    linked: Linked, engine: Engine, staging: Staging, sha256: str, listener: Listener, options: Options
) -> list[TableRelease]:
    """Make linked releases: staged and verified, not yet published."""
    key = read_key(options.key_file)
    made = run_linked(linked, engine, staging, sha256, listener, certificate=options.certificate, key=key)
    if options.explain:
        release = explain(made.joined.plan, made.release, engine, as_one(linked, listener))
        made = Made(made.joined, release) if isinstance(release, TableRelease) else made
    return tell_apart(made)


def recheck_published(job: Job, linked: Linked, engine: Engine, options: Options) -> dict[str, Verified]:
    """Check published linked releases: each has what was counted on their join."""
    there = [published(engine, destination(job), name) for name in linked.names]
    notes, written = [note for _, note in there], [relation for relation, _ in there]
    found = recheck_linked(linked, notes, written, engine, read_key(options.key_file))
    return dict.fromkeys(linked.names, found)


def prove_linked(linked: Linked, certificates: Sequence[object], engine: Engine) -> Proven:
    """Check the certificate of linked releases, which is one.

    Raises
    ------
    VerificationError
        If it does not hold, or theirs differ.
    """
    first = certificates[0]
    if not isinstance(first, dict) or any(c != first for c in certificates):
        raise VerificationError(
            f"{linked.key}: the file does not hold one certificate of all the linked tables", key=linked.key
        )
    with linked.naming():
        return check_certificate(join_sources(linked, engine).plan, first, engine)


def assess_linked(job: Job, linked: Linked, engine: Engine, *, release: bool) -> Risk:
    """Class sizes, criteria and risk of the join: of the sources, or of what was released."""
    with linked.naming():
        joined = join_sources(linked, engine)
        plan = joined.plan
        relation, columns = plan.source, [q.source.name for q in plan.qis]
        if release:
            written = [published(engine, destination(job), name)[0] for name in linked.names]
            relation, columns = join_written(linked, written, engine), [q.name for q in plan.qis]
        risk = assessing.assess(relation, columns, engine)
        return assessing.assess_criteria(risk, plan, plan.source, relation, engine)


def trade_linked(linked: Linked, engine: Engine, asked: Asked, listener: Listener) -> Tradeoff:
    """What k and the suppression limit cost on the join."""
    with linked.naming():
        traded = trade(join_sources(linked, engine).plan, engine, asked, as_one(linked, listener))
    return replace(traded, name=linked.name)
