"""Refuse a load whose persons or values hardly recur: it cannot be compared with what was released before.

A ledger knows persons and values by keyed hashes. Where keys or values are spelled otherwise than before (another case,
leading zeros, a recoded column), everybody is new to it, nothing is held back, and the one true change goes out among
changes that only look like some. So a load in which hardly anybody, or hardly any value of a column, recurs is refused
until its holder says that they are new indeed.

Source: soundness.md 19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.errors import JobError
from sqldeid.ledger.book import Book, Subject
from sqldeid.ledger.hashing import hash_of_null
from sqldeid.ledger.store import table_of

HARDLY = 0.05
"""Less than one in twenty recur. Loads of one population keep more: even where nine in ten left since the last load, as
many of the smaller of load and ledger are found as stayed. A recoding keeps none, or the few whose spelling is the same
under both. Persons are compared with everybody whom the ledger ever released, so that who comes back counts."""

NEW_PERSONS, NEW_VALUES = "--new-persons", "--new-values"


@dataclass(frozen=True, slots=True)
class Insisted:
    """What the holder says is new indeed.

    Parameters
    ----------
    persons
        Whether the load's persons are others than those in the ledger.
    values
        Columns, as the ledger calls them, whose values are new for nearly everybody: a measurement that never repeats,
        the date of the extraction.
    """

    persons: bool = False
    values: frozenset[str] = frozenset()


def refuse_strangers(
    book: Book, subject: Subject, rows: exp.Table, insisted: Insisted, known: Sequence[str] = ("people",)
) -> list[str]:
    """Refuse persons of whom hardly one is in the ledger; what is to be said where the holder insists.

    An empty ledger (a first release) has nobody to compare with.

    Raises
    ------
    JobError
        If fewer than `HARDLY` of the persons of the smaller of both are found in the other, and nobody insists.
    """
    tables = [table_of(name) for name in known]
    found = book.engine.row("ledger/count_recurring", rows=rows, known=tables)
    smaller = min(found["load"], found["known"])
    told = f"{found['recurring']:,} of {found['load']:,} persons of the load are among the {found['known']:,}"
    key = f"{subject.key}.{subject.person_key}"
    if not smaller or found["recurring"] >= HARDLY * smaller:
        return [_needless(NEW_PERSONS, key)] if insisted.persons and smaller else []
    if insisted.persons:
        return [f"{key}: {told} in the ledger; by {NEW_PERSONS} they are taken for other persons"]
    raise JobError.at(
        key,
        f"{told} in the ledger, as if nearly everybody had gone. Where the keys were recoded (leading zeros, "
        "upper or lower case, a prefix), earlier releases cannot be compared with this one, and a single change would "
        f"be seen: spell them as before, in a source query. Where they are other persons indeed, say so by "
        f"{NEW_PERSONS}",
    )


def refuse_recoded(
    book: Book,
    subject: Subject,
    members: exp.Table,
    fields: Sequence[Mapping[str, object]],
    k: int,
    insisted: Insisted,
) -> list[str]:
    """Refuse a column of which hardly anybody has a value that was told before; what is to be said else.

    Fewer than k persons who are there again are not asked: of them nothing is released that tells them from others.

    Raises
    ------
    JobError
        If the values of fewer than `HARDLY` of those who have one now and had one before recur, and nobody insists.
    """
    told = []
    for field in fields:
        label = str(field["column"])
        row = book.engine.row(
            "ledger/count_kept",
            members=members,
            contents=table_of("contents"),
            field=field["name"],
            label=field["label"],
            missing=hash_of_null(book.key, label, subject.types[label]),
        )
        again, kept, key = row["again"], row["kept"], subject.keys[label]
        share = f"{kept:,} of {again:,} persons who are in the ledger have a value of it that was released before"
        if again < k or kept >= HARDLY * again:
            told += [_needless(f"{NEW_VALUES} {label}", key)] if label in insisted.values and again >= k else []
        elif label in insisted.values:
            told.append(f"{key}: {share}; by {NEW_VALUES} these changes are taken for true ones")
        else:
            raise JobError.at(
                key,
                f"only {share}, as if the column had been recoded; then a single true change among them would "
                "be seen. Spell the values as before, in a source query, or give the column another name. Where they "
                f"are new for nearly everybody indeed, say so by {NEW_VALUES} {label}",
            )
    return told


def _needless(option: str, key: str) -> str:
    return f"{key}: {option} was not needed; leave it out, for with it a recoding would not be noticed"
