"""What an epsilon-safe release of a table enters in the ledger."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqldeid.ledger.budget import Spent
from sqldeid.ledger.budget import spend as spend_budget
from sqldeid.ledger.core import Ledger
from sqldeid.sql.steps import once
from sqldeid.stages import Stage
from sqldeid.tables.ledger.contents import subject_of
from sqldeid.tables.write.draft import Draft, DraftStage


def spending(ledger: Ledger, job_sha256: str) -> tuple[DraftStage, ...]:
    """The stage that adds a release's ε and δ to what its persons have spent; the result has the totals."""

    def spend(draft: Draft) -> None:
        plan, engine, result = draft.plan, draft.engine, draft.result
        subject = subject_of(plan, engine)
        ledger.book.refuse_person(subject)
        promised = result.guarantee or {}
        epsilon, delta = (float(Fraction(str(promised[name]))) for name in ("epsilon", "delta"))
        source = engine.ask("tables/ledger/list_persons", source=plan.source, person=plan.person_column)
        cost = Spent(epsilon, delta, bool(promised.get("proven", False)))
        account = spend_budget(ledger, subject, source.column("person"), cost, job_sha256)
        warnings = (*result.warnings, *account.warnings)
        draft.result = replace(result, ledger=account.content, warnings=warnings)

    return (Stage("", spend, lambda _: once("tables/ledger/list_persons")),)
