"""Check a published table release again that series follow: by labels and never by codes, with the series' own members.

The series' wing computes once more who is in both, within the classes that are computed here from the source; whose
new number is whose is not kept anywhere, so numbers are checked as a numbering, and through the series as a link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.keys import Key
from sqldeid.making import Published
from sqldeid.numbering import NOTED, NUMBER, Members, TableClasses
from sqldeid.publish import names_of
from sqldeid.sql import column, identifier, render
from sqldeid.tables.disguise.disguise import disguise, kept_of, noted_secrets
from sqldeid.tables.followed.companion import CLASS, INNER, beside, check_numbers, give, hold, judge_of, numbered, place
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.bind import bind
from sqldeid.tables.rows.shape import count_persons, keep
from sqldeid.tables.verify import verify as verifying
from sqldeid.tables.verify.judgement import Judgement
from sqldeid.tables.verify.verify import Verified

Admit = Callable[[TableClasses], Members]
"""Has the series say, given the table's classes, who is in both."""


def recheck_accompanied(
    plan: TablePlan, there: Published, engine: Engine, series: str, admit: Admit, key: Key | None = None
) -> tuple[Verified, exp.Table, Callable[[exp.Table], None]]:
    """Verify a published release against source and series as they are now.

    Returns
    -------
    Verified
        What was counted.
    exp.Table
        What the release says of each number: number, class; NULL: of none that it may have.
    Callable
        Refuses the release if its rows are not those of the classes that they have together with their series, given
        which of these each number's series could be of: number, class, on the workbench.

    Raises
    ------
    VerificationError
        If the release is not what job, note, source and series say.
    """
    written, note = there
    _refuse_changed(plan, note, written, series, engine)
    node, k = verifying._noted_node(plan, dict(note)), verifying._noted_k(plan, dict(note))
    source = keep(plan, engine)
    rows = count_persons(plan, engine, source).rows
    hierarchies = [bind(plan, i, engine, source).hierarchy for i in range(len(plan.qis))]
    secrets = noted_secrets(plan, note, key)
    if secrets is not None:
        source = disguise(plan, engine, source, secrets)
    labelled = [
        verifying._labelled(plan, i, q, h, level, engine)
        for i, (q, h, level) in enumerate(zip(plan.qis, hierarchies, node, strict=True))
    ]
    judgement = Judgement(plan, engine, source, labelled, written, source)
    flagged = judgement.flag(verifying._group_source(plan, labelled, source, engine, secrets), k)
    persons, labels = _label_persons(plan, labelled, flagged, source, engine)
    members = admit(TableClasses(plan.name, k, persons, judge_of(plan, source, engine)))
    check_numbers(plan, written, engine)
    content = exp.Subquery(this=exp.select(*(column(c.name, "w") for c in plan.released)).from_(_named(written)))
    held = hold(plan, persons, members.table, engine)
    verified = verifying.verify(verifying.Claimed(plan, node, k, hierarchies, source), content, engine, secrets, held)
    placed = place(plan, written, labels, [f"q{i}" for i in range(len(plan.qis))], engine)
    return replace(verified, rows=rows), placed, partial(_hold_members, plan, written, source, members, engine)


def _hold_members(
    plan: TablePlan, written: exp.Expr, source: exp.Expr, members: Members, engine: Engine, fit: exp.Table
) -> None:
    """Refuse a release in which a class of both lacks its members' rows, for which criteria hold on the join."""
    kept = [kept_of(plan, released=released) for released in (False, True)]
    if not kept[0]:
        return
    name = beside(plan, CLASS)
    given = give(plan, source, members.table, "class", engine)
    statement = render(
        "tables/followed/compare_members",
        given=given,
        combined=column(name, "s"),
        source_columns=kept[0],
        written=written,
        number=column(NUMBER, "r"),
        written_columns=kept[1],
        fit=engine.from_bench(fit),
    )
    missing = int(engine.query(statement).to_pylist()[0]["missing"])
    if missing:
        raise VerificationError.at(
            plan.key,
            f"the release failed its re-check with its series: {missing} rows are not beside series of their class",
        )


def _named(written: exp.Expr) -> exp.Expr:
    """The release as `w`."""
    return exp.alias_(written.copy(), "w", table=True, quoted=True)


def _refuse_changed(
    plan: TablePlan, note: Mapping[str, object], written: exp.Expr, series: str, engine: Engine
) -> None:
    if note.get(NOTED) != series:
        raise VerificationError.at(
            plan.key, f"the release was not made with series.{series} linked to it, as the job states"
        )
    there = names_of(engine.columns(written, key=plan.key), plan.key)
    if there != [c.name for c in numbered(plan).released]:
        raise VerificationError.at(
            plan.key, f"the release failed its re-check: its columns are not {NUMBER} and those that the job names"
        )


def _label_persons(
    plan: TablePlan, labelled: list[dict[str, object]], flagged: exp.Table, source: exp.Expr, engine: Engine
) -> tuple[exp.Table, exp.Table]:
    """The class of each person whom the release could have, and the classes by label."""
    names = [identifier(f"q{i}") for i in range(len(plan.qis))]
    classes, rows, persons = (engine.workbench(f"{plan.name}_{x}") for x in ("places", "labelled", "label_persons"))
    engine.run("tables/followed/place_labels", classes=classes, flagged=flagged, columns=names)
    known = [{"name": identifier(INNER), "column": plan.person_column}]
    engine.run("tables/verify/label_rows", labelled=rows, source=source, columns=labelled, known=known)
    engine.run(
        "tables/followed/place_persons",
        persons=persons,
        labelled=rows,
        person=identifier(INNER),
        classes=classes,
        columns=names,
    )
    return persons, classes
