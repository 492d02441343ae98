"""A table release whose persons have series in another release, under the same new numbers (`[series.NAME] link`).

The table's node is found first, as ever. Its classes then go to the series, which are formed within them; the rows of
whom they cannot release are dropped here, as the ledger's are, and each row left gets its person's new number. What is
left of a class is a union of combined classes, each of k persons or more that meets every criterion (the proof is in
`sqldeid.series.link`), so no other class fails for it, and nothing is searched again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.numbering import NOTED, NUMBER, Members, Partner, TableClasses
from sqldeid.result import Criterion
from sqldeid.sql import identifier, literal
from sqldeid.stages import Stage
from sqldeid.tables.disguise.disguise import disguised
from sqldeid.tables.followed.statements import handing_over, verifying_joined
from sqldeid.tables.plan.columns import LINKED, OtherColumn, QuasiIdentifier
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.held_back import without_held_back
from sqldeid.tables.rows.shape import kept_columns
from sqldeid.tables.verify.judgement import Judgement
from sqldeid.tables.write.draft import Beside, Draft
from sqldeid.tables.write.stage import Chosen, keep_classes, kept_name

INNER, CLASS = "sqldeid number", "sqldeid class"
"""What numbers and classes are called beside the columns of the source, unless one of these has that name."""


@dataclass(frozen=True, slots=True)
class Accompanied:
    """What a release lets out beside its series.

    Parameters
    ----------
    chosen
        The node, on the rows of those who are in both, with the new number among the released columns.
    source
        All rows, with the number of whom has one.
    held
        Persons whom the table alone could release.
    members
        Who is in both.
    classes
        The classes by label: labels, place.
    """

    chosen: Chosen
    source: exp.Table
    held: exp.Table
    members: Members
    classes: exp.Table
    partner: Partner


def numbered(plan: TablePlan) -> TablePlan:
    """The plan with the new number as the first released column.

    Raises
    ------
    JobError
        If a released column has its name.
    """
    for c in plan.released:
        if c.name.casefold() == NUMBER:
            key = f"{plan.key}.columns.{c.name}"
            raise JobError.at(
                key, f"a linked release has a column {NUMBER} of its own; rename this one in a source query"
            )
    number = OtherColumn(NUMBER, Column(beside(plan, INNER), "BIGINT", "integer"), LINKED)
    return replace(plan, columns=(number, *plan.columns))


def beside(plan: TablePlan, name: str) -> str:
    """The name, or a longer one where a column that the run needs has it."""
    taken = {c.name.casefold() for c in kept_columns(plan)} | {c.name.casefold() for c in plan.released}
    while name.casefold() in taken:
        name += "_"
    return name


def accompany(chosen: Chosen, partner: Partner, engine: Engine) -> Accompanied:
    """Hand the classes to the series, and take who is left.

    Cost: two scans of the source; two more where a criterion goes beyond k.
    """
    plan, source = chosen.plan, chosen.folded.source
    kept = keep_classes(chosen, engine)
    persons = engine.make(
        "tables/followed/class_persons",
        f"{plan.name}_class_persons",
        source=source,
        person=plan.person_column,
        kept=kept,
        words=chosen.words,
    )
    members = partner.admit(
        TableClasses(plan.name, chosen.k, persons, judge_of(plan, source, engine), judges_of(plan, source, engine))
    )
    held = hold(plan, persons, members.table, engine)
    whole = give(plan, source, members.table, "number", engine)
    linked = numbered(plan)
    left = without_held_back(linked, engine, whole, held)
    classes = engine.make(
        "tables/fold/fold_classes", f"{plan.name}_left_classes", source=left, words=chosen.words, sensitive=[]
    )
    folded = replace(chosen.folded, source=left, table=classes, at_source=None)
    return Accompanied(replace(chosen, plan=linked, folded=folded), whole, held, members, kept, partner)


def followed_by(plan: TablePlan, partner: Partner) -> Beside:
    """What accompanies a release that series follow: they are formed within its classes, and verified on the join."""
    found: list[Accompanied] = []
    joined: list[Criterion] = []

    def hand_over(draft: Draft) -> None:
        company = accompany(draft.chosen, partner, draft.engine)
        draft.say("writing the release")  # until now it was heard of the series
        draft.note = draft.note.also({NOTED: partner.name})
        draft.out = company.chosen
        draft.chosen = replace(company.chosen, folded=replace(draft.chosen.folded, source=company.source))
        draft.held, draft.whole = company.held, False
        found.append(company)

    def verify(draft: Draft) -> None:
        joined.extend(verify_joined(found[0], draft.written, draft.engine))

    def tell(draft: Draft) -> None:
        draft.result = replace(draft.result, followed=followed(found[0], tuple(joined)))

    return Beside(
        before=(Stage("", hand_over, lambda _: handing_over(plan)),),
        after=(Stage("", verify, lambda _: verifying_joined(plan)),),
        told=(Stage("", tell),),
    )


def followed(company: Accompanied, criteria: tuple[Criterion, ...]) -> dict[str, object]:
    """What the result tells of the series, and of both together."""
    told = [{"name": c.name, "column": c.column, "asked": c.asked, "achieved": c.achieved} for c in criteria]
    return {"series": company.partner.name, **company.members.account, **({"criteria": told} if told else {})}


def hold(plan: TablePlan, persons: exp.Table, members: exp.Table, engine: Engine) -> exp.Table:
    """The persons of classes who are not among the members: person VARCHAR."""
    return engine.make("tables/followed/hold_unlinked", f"{plan.name}_unlinked", persons=persons, members=members)


def verify_joined(company: Accompanied, written: exp.Expr, engine: Engine) -> tuple[Criterion, ...]:
    """Check the written release together with the classes of its series: numbers, and each criterion on the join.

    Returns
    -------
    tuple
        The criteria beyond k, with what the join achieves.

    Raises
    ------
    VerificationError
        If the numbers are not a fresh numbering of its rows, or a class of both fails a criterion.
    """
    plan = company.chosen.plan
    check_numbers(plan, written, engine)
    names = [identifier(c.name) for c in engine.columns(written, key=plan.key)]
    joined = engine.make(
        "tables/followed/join_written",
        f"{plan.name}_joined",
        written=written,
        columns=names,
        number=identifier(NUMBER),
        members=company.members.table,
        name=identifier(beside(plan, CLASS)),
    )
    achieved = _judgement(plan, company.source, joined, company.source, engine).achieved()
    company.partner.beside(place(plan, written, company.classes, [kept_name(i) for i in range(len(plan.qis))], engine))
    return achieved


def check_numbers(plan: TablePlan, written: exp.Expr, engine: Engine) -> None:
    """Refuse new numbers that are not 1 to the number of rows, each once: anything else could tell something."""
    row = engine.row("tables/followed/check_numbers", written=written, number=identifier(NUMBER))
    if not row["rows"] == row["numbers"] == row["greatest"] or row["least"] != 1:
        raise VerificationError.at(
            plan.key, f"the release failed its re-check: {NUMBER} does not number its rows anew, each once"
        )


def place(plan: TablePlan, written: exp.Expr, classes: exp.Table, labels: Sequence[str], engine: Engine) -> exp.Table:
    """The class of each number, by what was written of it: number BIGINT, class BIGINT (NULL: of none)."""
    return engine.make(
        "tables/followed/place_written",
        f"{plan.name}_placed",
        written=written,
        number=identifier(NUMBER),
        classes=classes,
        columns=[
            {"name": identifier(label), "released": identifier(q.name)}
            for label, q in zip(labels, plan.qis, strict=True)
        ],
    )


def judge_of(plan: TablePlan, source: exp.Expr, engine: Engine) -> Callable[[exp.Table], Ints] | None:
    """What judges classes finer than the release's own by its criteria beyond k; None where it has none."""
    if not plan.beyond_k:
        return None

    def failing(members: exp.Table) -> Ints:
        part = give(plan, source, members, "class", engine)
        judgement = _judgement(plan, part, part, source, engine)
        grouped = engine.make(
            "tables/verify/group_source",
            f"{plan.name}_combined",
            source=part,
            columns=list(judgement.labelled),
            others=[],
        )
        flagged = judgement.flag(grouped, 1)
        read = engine.ask("tables/followed/failing_numbers", flagged=flagged, column=identifier("q0"))
        return np.asarray(read.column("class").to_numpy(), dtype=np.int64)

    return failing


def judges_of(plan: TablePlan, source: exp.Expr, engine: Engine) -> tuple[tuple[str, Callable[[exp.Table], Ints]], ...]:
    """What judges by each criterion of the job alone, with its name: which of them costs how many persons."""
    found = []
    for name, alone in plan.demands.one_by_one():
        judge = judge_of(replace(plan, demands=alone), source, engine)
        if judge is not None:
            found.append((name, judge))
    return tuple(found)


def _judgement(plan: TablePlan, source: exp.Expr, written: exp.Expr, whole: exp.Expr, engine: Engine) -> Judgement:
    """Criteria by one column, the combined class, in the place of all quasi-identifying ones: it tells these, too."""
    first = plan.qis[0]
    name = beside(plan, CLASS)
    only = QuasiIdentifier(name, Column(name, "BIGINT", "integer"), first.hierarchy, "refuse", Fraction(1))
    labelled: Mapping[str, object] = {
        "name": identifier("q0"),
        "column": only.column,
        "alias": identifier("m0"),
        "labels": None,
        "type": only.travel_type,
        "null_label": literal(None),
        "text": False,
    }
    return Judgement(replace(plan, columns=(only, *plan.others)), engine, source, [labelled], written, whole)


def give(
    plan: TablePlan, source: exp.Expr, members: exp.Table, given: Literal["number", "class"], engine: Engine
) -> exp.Table:
    """The source with what its persons were given: with numbers all of its rows, with classes those that have one."""
    numbers = given == "number"
    wanted = {c.name.casefold() for c in kept_columns(plan)}
    wanted |= {c.disguised_name.casefold() for c in disguised(plan)}
    there = engine.columns(source, key=plan.key)
    return engine.make(
        "tables/followed/number_source",
        f"{plan.name}_given",
        columns=[identifier(c.name) for c in there if c.name.casefold() in wanted],
        source=source,
        person=plan.person_column,
        members=members,
        given=identifier(given),
        name=identifier(beside(plan, INNER if numbers else CLASS)),
        all=numbers,
    )
