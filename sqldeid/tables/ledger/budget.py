"""What an epsilon-safe release of a table enters in the ledger."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqldeid.engine.base import Engine
from sqldeid.ledger.budget import Spent
from sqldeid.ledger.budget import spend as spend_budget
from sqldeid.ledger.core import Ledger
from sqldeid.result import TableRelease
from sqldeid.sql import render
from sqldeid.tables.ledger.contents import subject_of
from sqldeid.tables.plan.plan import TablePlan


def spend(ledger: Ledger, plan: TablePlan, engine: Engine, result: TableRelease, job_sha256: str) -> TableRelease:
    """Add the release's ε and δ to what its persons have spent; the result with the totals."""
    subject = subject_of(plan)
    ledger.book.refuse_person(subject)
    promised = result.guarantee or {}
    epsilon, delta = (float(Fraction(str(promised[name]))) for name in ("epsilon", "delta"))
    source = engine.query(render("tables/ledger/list_persons", source=plan.source, person=plan.person_column))
    cost = Spent(epsilon, delta, bool(promised.get("proven", False)))
    account = spend_budget(ledger, subject, source.column("person"), cost, job_sha256)
    return replace(result, ledger=account.content, warnings=(*result.warnings, *account.warnings))
