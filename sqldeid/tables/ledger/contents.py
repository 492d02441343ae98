"""Enter a table release in the ledger (`sqldeid.ledger`) and hold back the rows that it must not show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.engine.offers import NAMES
from sqldeid.errors import JobError
from sqldeid.job.ledger_rules import REFUSED
from sqldeid.ledger.book import DUCKDB, Subject
from sqldeid.ledger.core import Ledger, Load
from sqldeid.ledger.hashing import label_of, spelling
from sqldeid.publish import LEDGER_MARK, LEDGER_NOTE
from sqldeid.sql import identifier
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Stage, Step
from sqldeid.tables.ledger.rules import marginals_of, refuse_unkept, rules_of
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.held_back import without_held_back
from sqldeid.tables.write.draft import Beside, Draft
from sqldeid.tables.write.stage import Chosen, keep_classes


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the ledger lets out of a load.

    Parameters
    ----------
    chosen
        The node on the source without the rows that are held back.
    held
        The persons of these rows, as the source spells them; None where there are none.
    account
        What the result says of it.
    mark
        Drawn for this release: by it a ledger knows what it wrote down itself.
    """

    chosen: Chosen
    held: exp.Table | None
    account: Mapping[str, object]
    warnings: tuple[str, ...]
    mark: str


def subject_of(plan: TablePlan, engine: Engine) -> Subject:
    """The release as the ledger's book knows it."""
    return Subject(
        plan.name,
        plan.key,
        plan.person,
        plan.person_type,
        {label_of(c.name): spelling(c.source) for c in plan.others},
        {label_of(c.name): f"{plan.key}.columns.{c.name}" for c in plan.others},
        engine.capabilities.dialect,
    )


def admit(ledger: Ledger, chosen: Chosen, engine: Engine, job_sha256: str) -> Admitted:
    """Hold back what would single persons out beside the releases before; enter the rest.

    Cost: two scans of the source, two where rows are held back; a hash of each released row's person and values.

    Raises
    ------
    JobError
        If the release is of a kind that the ledger cannot keep.
    VerificationError
        If no row may be released.
    """
    plan, book = chosen.plan, ledger.book
    subject = subject_of(plan, engine)
    refuse_unfit(ledger, plan, subject)
    rows, release = _rows_of(chosen, engine), book.next_release()
    load = Load(
        subject,
        "classes",
        chosen.k,
        rows,
        [label_of(c.name) for c in plan.others],
        rules_of(plan, release),
        marginals_of(plan, chosen.folded, engine, book.key, release),
    )
    settled = ledger.settle(load)
    entered = ledger.enter(settled, job_sha256)
    if not len(settled.held):
        return Admitted(chosen, None, entered.account, entered.warnings, entered.mark)
    persons = engine.put(f"{plan.name}_held", pa.table({"person": rows.column("person").take(settled.held)}))
    return Admitted(_without(chosen, engine, persons), persons, entered.account, entered.warnings, entered.mark)


def refuse_unfit(ledger: Ledger, plan: TablePlan, subject: Subject) -> None:
    """Refuse what the theorem does not cover.

    Raises
    ------
    JobError
        If the release has no persons, other ones or values of other types than before, blanked rows, a computed view,
        blunted levels, a criterion that the ledger does not keep, or a column whose values have no one text on a
        server.
    """
    ledger.book.refuse_person(subject)
    ledger.book.refuse_types(subject)
    _refuse_unspelt(plan, subject)
    if plan.demands.blanks:
        key = f"{plan.key}.privacy.suppression"
        raise JobError.at(key, REFUSED['suppression = "blank"'])
    if plan.computed:
        key = f"{plan.key}.view"
        raise JobError.at(key, REFUSED['view = "computed"'])
    if plan.search.blunt:
        key = f"{plan.key}.search.blunt"
        raise JobError.at(key, REFUSED["blunt"])
    refuse_unkept(plan)


def _refuse_unspelt(plan: TablePlan, subject: Subject) -> None:
    """Columns whose values and texts are not one to one: a UNION's, and those of a server that do not travel."""
    if subject.dialect == DUCKDB:
        for c in (c for c in plan.others if _TAGGED.search(c.source.type)):
            raise JobError.at(
                subject.keys[label_of(c.name)],
                f"is of type {c.source.shown_type}, whose members the ledger cannot tell apart: a number and its text "
                "may be two values of it; cast it to text in a source query, or leave it out",
            )
        return
    for c in plan.others:
        if c.source.kind == "other":
            raise JobError.at(
                subject.keys[label_of(c.name)],
                f"is of type {c.source.shown_type}, whose values the ledger cannot tell apart on "
                f"{NAMES[subject.dialect]}; cast it to text in a source query, or leave it out",
            )
    if subject.person_type in _UNSPELT:
        raise JobError.at(
            f"{plan.key}.person",
            f"is of type {subject.person_type}, which the ledger cannot follow on {NAMES[subject.dialect]}; cast it to "
            "text in a source query",
        )


_TAGGED = re.compile(r"(?<!\")\bUNION\(")
_MOMENT = "TIMESTAMP WITH TIME ZONE"
_UNSPELT = (_MOMENT, "NUMERIC", "BLOB", "INTERVAL")
"""Types of keys that a server spells in more than one way, or without their zone."""


def fields_of(plan: TablePlan, engine: Engine) -> list[dict[str, object]]:
    """What is released beside the class, as `list_admissible` takes it; Spark, which is in UTC, tells no zone."""
    zoneless = engine.capabilities.dialect == "spark"
    return [
        {"name": identifier(f"c{i}"), "column": c.column, "utc": zoneless and c.source.type == _MOMENT}
        for i, c in enumerate(plan.others)
    ]


def _rows_of(chosen: Chosen, engine: Engine) -> pa.Table:
    """Every row of a released class: person, class, and what is released beside the class."""
    plan = chosen.plan
    kept = keep_classes(chosen, engine)
    rows = engine.ask(
        "tables/ledger/list_admissible",
        source=chosen.folded.source,
        person=plan.person_column,
        kept=kept,
        words=chosen.words,
        fields=fields_of(plan, engine),
    )
    engine.drop(kept)
    return rows


def _without(chosen: Chosen, engine: Engine, held: exp.Table) -> Chosen:
    """The node on the source without these persons."""
    plan, folded = chosen.plan, chosen.folded
    source = without_held_back(plan, engine, folded.source, held)
    classes = engine.make(
        "tables/fold/fold_classes", f"{plan.name}_admitted_classes", source=source, words=chosen.words, sensitive=[]
    )
    return replace(chosen, folded=replace(folded, source=source, table=classes, at_source=None))


def held_to(plan: TablePlan, ledger: Ledger, job_sha256: str) -> Beside:
    """What accompanies a release that is held to earlier ones: less goes out, and the ledger's account is told."""
    found: list[Admitted] = []

    def hold(draft: Draft) -> None:
        let_out = admit(ledger, draft.out, draft.engine, job_sha256)
        # Who checks the release again must ask the ledger who is in it.
        draft.note = draft.note.also({LEDGER_NOTE: let_out.account["release"], LEDGER_MARK: let_out.mark})
        draft.out, draft.held = let_out.chosen, let_out.held
        draft.whole = draft.whole and let_out.held is None
        found.append(let_out)

    def tell(draft: Draft) -> None:
        [let_out] = found
        warnings = (*draft.result.warnings, *let_out.warnings)
        draft.result = replace(draft.result, ledger=let_out.account, warnings=warnings)

    return Beside(before=(Stage("", hold, lambda _: _holding(plan)),), told=(Stage("", tell),))


def _holding(plan: TablePlan) -> Iterator[Step]:
    yield step("tables/write/label_values", None)
    yield from once("tables/write/keep_classes", "tables/ledger/list_admissible")
    if plan.beyond_k:
        yield from as_needed("tables/fold/list_ranked", "tables/verify/rank_values", "tables/verify/fail_classes")
    yield from as_needed("tables/rows/keep_admitted", "tables/fold/fold_classes")
