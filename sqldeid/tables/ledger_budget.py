"""What persons spend in differentially private releases: ε and δ add up, and any other release voids the total."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from sqldeid.engine.base import Engine
from sqldeid.ledger.core import Ledger
from sqldeid.ledger.hashing import hash_persons
from sqldeid.ledger.recurrence import refuse_strangers
from sqldeid.ledger.store import table_of
from sqldeid.result import TableRelease
from sqldeid.sql import render
from sqldeid.tables.ledger import subject_of
from sqldeid.tables.plan import TablePlan


def spend(ledger: Ledger, plan: TablePlan, engine: Engine, result: TableRelease, job_sha256: str) -> TableRelease:
    """Add a private release's ε and δ to what its persons have spent; the result with the totals.

    Every person of the source spends, sampled or not. By basic composition (Dwork & Roth 2014, §3.5.1) a person's
    releases together are (Σε, Σδ)-private; with any other release of the person the total says nothing.
    """
    book, subject = ledger.book, subject_of(plan)
    book.refuse_person(subject)
    promised = result.guarantee or {}
    epsilon, delta = (float(Fraction(str(promised[name]))) for name in ("epsilon", "delta"))
    release = book.next_release()
    source = engine.query(render("tables/list_persons", source=plan.source, person=plan.person_column))
    rows = book.engine.put(
        "persons", pa.table({"person": hash_persons(book.key, plan.person_type, source.column("person"))})
    )
    strangers = refuse_strangers(book, subject, rows, ledger.insisted, ("people", "budgets"))
    spent, budgets = book.engine.workbench("spent"), table_of("budgets")
    book.engine.execute(
        render("tables/spend_budget", spent=spent, rows=rows, budgets=budgets, epsilon=epsilon, delta=delta)
    )
    book.engine.execute(render("tables/clear_budget", budgets=budgets, spent=spent))
    book.engine.execute(render("tables/append_ledger", table=budgets, rows=spent))
    row = book.engine.query(render("tables/sum_budget", spent=spent, people=table_of("people"))).to_pylist()[0]
    book.enter_types(subject)
    proven = bool(promised.get("proven", False))
    book.enter_release(release, plan.name, "private", job_sha256, None, "[]", epsilon, delta)
    account = {
        "release": release,
        "epsilon_total": row["epsilon"],
        "delta_total": row["delta"],
        "void": bool(row["void"]) or not proven,
    }
    total = f"ε = {row['epsilon']:g}, δ = {row['delta']:g}"
    told = [*strangers, f"{plan.key}: with the earlier private releases in the ledger a person has spent {total}"]
    if row["void"]:
        told.append(
            f"{plan.key}: {row['void']:,} of its persons are in releases that are not differentially private; the "
            "total of ε and δ is void for them"
        )
    return replace(result, ledger=account, warnings=(*result.warnings, *told))
