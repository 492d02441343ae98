"""What persons spend in differentially private releases: ε and δ add up, and any other release voids the total."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from sqldeid.ledger.book import Subject
from sqldeid.ledger.core import Ledger
from sqldeid.ledger.hashing import hash_persons
from sqldeid.ledger.recurrence import refuse_strangers
from sqldeid.ledger.store import table_of


@dataclass(frozen=True, slots=True)
class Spent:
    """What a release costs its persons; `proven` is false where its promise is for comparison or tests only.

    What is not proven costs without bound, and is noted so: every later total of the ledger is void.
    """

    epsilon: float
    delta: float
    proven: bool


@dataclass(frozen=True, slots=True)
class Account:
    """What persons have spent by now, and what is to be said of it."""

    content: Mapping[str, object]
    warnings: tuple[str, ...]


def spend(ledger: Ledger, subject: Subject, persons: pa.ChunkedArray, cost: Spent, job_sha256: str) -> Account:
    """Add a private release's ε and δ to what its persons have spent, and take the release down.

    Every person of the source spends, sampled or not. By basic composition (Dwork & Roth 2014, §3.5.1) a person's
    releases together are (Σε, Σδ)-private, whether of a table or of events; with any other release of the person the
    total says nothing.

    Parameters
    ----------
    persons
        Of the source, as text of a pinned session; a person may be there more than once.

    Raises
    ------
    JobError
        If the ledger follows other persons, or knows hardly any of these.
    """
    book = ledger.book
    book.refuse_person(subject)
    release = book.next_release()
    hashed = hash_persons(book.key, subject.person_type, persons)
    rows = book.engine.put("persons", pa.table({"person": hashed}))
    strangers = refuse_strangers(book, subject, rows, ledger.insisted, ("people", "budgets"))
    budgets = table_of("budgets")
    spent = book.engine.make(
        "ledger/spend_budget", "spent", rows=rows, budgets=budgets, epsilon=cost.epsilon, delta=cost.delta
    )
    book.engine.run("ledger/clear_budget", budgets=budgets, spent=spent)
    book.engine.run("ledger/append_ledger", table=budgets, rows=spent)
    row = book.engine.row("ledger/sum_budget", spent=spent, people=table_of("people"), releases=table_of("releases"))
    book.enter_types(subject)
    noted = cost.epsilon if cost.proven else math.inf
    book.enter_release(release, subject.name, "private", job_sha256, None, "[]", noted, cost.delta)
    account = {
        "release": release,
        "epsilon_total": row["epsilon"],
        "delta_total": row["delta"],
        "void": bool(row["void"] or row["unproven"]) or not cost.proven,
    }
    total = f"ε = {row['epsilon']:g}, δ = {row['delta']:g}"
    told = [*strangers, f"{subject.key}: with the earlier private releases in the ledger a person has spent {total}"]
    if row["void"]:
        told.append(
            f"{subject.key}: {row['void']:,} of its persons are in releases that are not differentially private; the "
            "total of ε and δ is void for them"
        )
    if row["unproven"]:
        told.append(
            f"{subject.key}: {row['unproven']:,} of the earlier private releases in the ledger promised nothing, such "
            "as one with a seed; the total of ε and δ is void"
        )
    return Account(account, tuple(told))
