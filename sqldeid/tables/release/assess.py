"""Class sizes and re-identification risk of a job's tables and releases (Mazzone 2019, ch. 3; El Emam 2013)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.making import Published
from sqldeid.result import Measured, Risk, risk_of, risk_of_persons
from sqldeid.sql import column, identifier
from sqldeid.tables.itemset.plan import ChildPlan
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.mondrian.criteria import measure_written
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.linked import join_sources, join_written
from sqldeid.tables.rows.shape import count_persons, keep, refuse_more
from sqldeid.tables.verify.judgement import Judgement
from sqldeid.tables.verify.overall import measured_together
from sqldeid.tables.verify.persons import PersonJudgement, as_they_are
from sqldeid.tables.verify.population import Mapped, Population
from sqldeid.tables.verify.verify import Verified, labelled_as, recheck


def assess(
    plan: TablePlan | PartitionPlan | LocalPlan | Linked | ChildPlan, there: Sequence[Published] | None, engine: Engine
) -> Risk:
    """Class sizes, criteria achieved and risk of a source as it stands, or of what was released.

    Parameters
    ----------
    there
        The published release, or the linked ones in their order; None where the source is looked at.

    Raises
    ------
    JobError
        For a child table, which has no classes of its own.
    VerificationError
        If what was released has not the job's columns, or its classes would look larger by this job than they are.
    """
    if plan.way == "child":
        raise JobError.at(plan.key, "a child table has the classes of its parent; assess that one")
    if plan.way == "linked":
        return _of_linked(plan, there, engine)
    if plan.way == "local":  # classes are those of equal labels, whatever their levels
        return assess(plan.table, there, engine)
    _refuse_other(plan, there, engine)
    if plan.way == "mondrian":
        return _of_parts(plan, there, engine)
    if plan.many:
        if there is None:
            return _of_persons(plan, keep(plan, engine), engine)
        relation, note = there[0]
        return _of_released(recheck(plan, dict(note), relation, engine))
    source = keep(plan, engine) if there is None or plan.beyond_k else plan.source
    relation, columns = source, [q.source.name for q in plan.qis]
    if there is not None:
        relation, columns = there[0][0], [q.name for q in plan.qis]
    risk = replace(_sizes(relation, columns, engine), counted=f"{plan.unit}s")
    found = _with_criteria(risk, plan, source, relation, engine)
    if plan.demands.estimated is not None:
        from sqldeid.tables.criteria.uniqueness import uniqueness

        return replace(found, uniqueness=uniqueness(dict(risk.class_sizes), plan.demands.estimated.size))
    if plan.population is None:
        return found
    return _in_population(found, plan, (source, relation), there, engine)


def _refuse_other(plan: TablePlan | PartitionPlan, there: Sequence[Published] | None, engine: Engine) -> None:
    """Refuse a release of another job, of whose risk the classes of this one tell nothing, or too little.

    A column more in the job's classes is a reader who knows more, and is looked at. One less is not: who knows what the
    release was made for finds smaller classes.
    """
    if there is None:
        return
    relation, note = there[0]
    columns = plan.cuts if plan.way == "mondrian" else plan.qis
    wanted = {c.name.casefold() for c in columns}
    if note.get("kind", "table") != "table":
        raise VerificationError.at(plan.key, "what is there is no release of a table")
    if wanted - {c.name.casefold() for c in engine.columns(relation, key=plan.key)}:
        raise VerificationError.at(plan.key, "the release has not the quasi-identifying columns that the job names")
    if not _noted(note, "hierarchies") | _noted(note, "columns_cut") <= wanted:
        raise VerificationError.at(
            plan.key, "the release was made with quasi-identifying columns that the job does not name as such"
        )
    criteria = note.get("criteria")
    many = isinstance(criteria, dict) and criteria.get("rows") == "many"
    if many and not (plan.way == "lattice" and plan.many):
        raise VerificationError.at(
            plan.key, 'persons may have many rows in the release, and the job counts each for one; write rows = "many"'
        )


def _noted(note: Mapping[str, object], name: str) -> frozenset[str]:
    """Names of columns that a note has under a name."""
    found = note.get(name)
    return frozenset(str(n).casefold() for n in found) if isinstance(found, dict) else frozenset()


def _in_population(
    risk: Risk,
    plan: TablePlan,
    both: tuple[exp.Expr, exp.Expr],
    there: Sequence[Published] | None,
    engine: Engine,
) -> Risk:
    """The risk with what its population says: the journalist's, the marketer's among all persons of it, and k-map.

    Parameters
    ----------
    both
        The rows of the source, and of what is assessed: these again, or the release.

    Cost: one scan of the table, and one of the population.
    """
    source, relation = both
    labelled, shown = as_they_are(plan), as_they_are(plan)
    if there is not None:
        labelled = labelled_as(plan, dict(there[0][1]), engine)
        shown = [{**c, "column": column(q.name, "s")} for c, q in zip(shown, plan.qis, strict=True)]
    population = Population.of(plan, engine, labelled)
    if population is None:
        return risk
    asked: dict[str, Any] = {"others": []}
    grouped = engine.make("tables/verify/group_source", "assess_population", source=relation, columns=shown, **asked)
    every = grouped
    if there is not None and plan.presence is not None:
        every = engine.make("tables/verify/group_source", "assess_every", source=source, columns=labelled, **asked)
    found = population.measure(grouped)
    return replace(
        risk,
        journalist=found.journalist,
        journalist_is_prosecutor=False,
        marketer=found.marketer,
        criteria=(*risk.criteria, *population.measured(found, every), *_attacked_in(plan, found)),
    )


def _attacked_in(plan: TablePlan, found: Mapped) -> Iterator[Measured]:
    """The game against who does not know whom a table holds, by the population."""
    if plan.demands.game is not None and plan.demands.game.attacker == "journalist":
        yield plan.demands.game.measured(found.least, rows=bool(found.rows))


def _of_linked(linked: Linked, there: Sequence[Published] | None, engine: Engine) -> Risk:
    """The risk of the join: of the sources, or of what was released."""
    with linked.naming():
        plan = join_sources(linked, engine).plan
        relation, columns = plan.source, [q.source.name for q in plan.qis]
        if there is not None:
            relation = join_written(linked, [written for written, _ in there], engine)
            columns = [q.name for q in plan.qis]
        return _with_criteria(_sizes(relation, columns, engine), plan, plan.source, relation, engine)


def _of_parts(plan: PartitionPlan, there: Sequence[Published] | None, engine: Engine) -> Risk:
    """The risk of a release by Mondrian, or of its source."""
    relation, columns = plan.source, [cut.source.name for cut in plan.cuts]
    named = {wanted: identifier(source.name) for wanted, source, _ in plan.others}
    if there is not None:
        relation, columns = there[0][0], [cut.name for cut in plan.cuts]
        named = {wanted: identifier(wanted) for wanted in named}
    risk = _sizes(relation, columns, engine)
    return replace(risk, criteria=measure_written(plan.criteria, relation, columns, engine, named))


def _sizes(relation: exp.Expr, columns: Sequence[str], engine: Engine) -> Risk:
    """Group a table by its quasi-identifying columns and derive the risk of its class sizes.

    Parameters
    ----------
    relation
        Table, subquery or file function.
    columns
        The quasi-identifying columns, as the table names them.

    Cost: one scan of the table.
    """
    grouped = engine.make(
        "tables/release/group_classes", "assess", source=relation, columns=[identifier(c) for c in columns]
    )
    rows = engine.rows("tables/verify/count_sizes", grouped=grouped)
    engine.drop(grouped)
    return risk_of({int(r["size"]): int(r["classes"]) for r in rows})


def _of_persons(plan: TablePlan, source: exp.Expr, engine: Engine) -> Risk:
    """The risk of a source whose persons may have many rows, by the persons of its classes; with the job's criteria.

    Parameters
    ----------
    source
        The rows of `plan`, from `sqldeid.tables.rows.shape.keep`.

    Cost: one scan of the table, and one per sensitive column.
    """
    count_persons(plan, engine, source)
    judgement = PersonJudgement(plan, engine, source, as_they_are(plan), source)
    sizes = judgement.sizes()
    share = max((s for *_, s in sizes), default=0.0)
    criteria, _ = judgement.measured()
    return replace(risk_of_persons(((p, classes, rows) for p, classes, rows, _ in sizes), share), criteria=criteria)


def _of_released(verified: Verified) -> Risk:
    """The risk of a release whose persons may have many rows: it does not show whose a row is, its re-check does."""
    found = verified.persons
    if found is None:
        raise ValueError("the release has one row a person")
    criteria = tuple(Measured(c.name, c.column, c.asked, c.achieved, met=True) for c in verified.criteria)
    return replace(risk_of_persons(found.sizes, found.greatest_share), criteria=criteria)


def _attacked(plan: TablePlan, risk: Risk) -> Iterator[Measured]:
    """The game against who knows whom a table holds, by the sizes of its classes."""
    if plan.demands.game is not None and plan.demands.game.attacker == "prosecutor":
        fewest = min((size for size, _ in risk.class_sizes), default=0)
        yield plan.demands.game.measured(fewest, rows=bool(risk.class_sizes))


def _estimated(plan: TablePlan, risk: Risk) -> Iterator[Measured]:
    """k-map by its estimate, by the sizes of a table's classes."""
    if plan.demands.estimated is not None:
        refuse_more(plan, sum(size * n for size, n in risk.class_sizes))
        fewest = min((size for size, _ in risk.class_sizes), default=0)
        yield plan.demands.estimated.measured(fewest, rows=bool(risk.class_sizes))


def _with_criteria(risk: Risk, plan: TablePlan, source: exp.Expr, relation: exp.Expr, engine: Engine) -> Risk:
    """Add what a table achieves by the criteria of a job beyond k: l, t, and 1/m with the worst knowledge state.

    Parameters
    ----------
    risk
        From the class sizes.
    source
        The rows of `plan`, from `sqldeid.tables.rows.shape.keep`; t-closeness is measured against them.
    relation
        `source` again, or the release.

    Cost: two scans of the table per sensitive column. m-concealing walks all of its knowledge states.
    """
    together = (*measured_together(plan, dict(risk.class_sizes)), *_attacked(plan, risk), *_estimated(plan, risk))
    if not plan.beyond_k:
        return replace(risk, criteria=together)
    criteria, hidden = Judgement(plan, engine, source, (), relation).measured()
    criteria = (*criteria, *together)
    if hidden is None:
        return replace(risk, criteria=criteria)
    one_over_m = 1 / hidden.greatest if hidden.greatest else None
    return replace(risk, criteria=criteria, one_over_m=one_over_m, worst_state=hidden.worst_state)
