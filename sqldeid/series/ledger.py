"""Enter a release of series in the ledger, and hold persons back before targets are computed.

Notes
-----
*Guarantee*: that of `sqldeid.ledger`, where a class is a feature class with the variables that its members are released
with, and what is told beside it is, variable by variable, the shortened series. In particular: let n·f be the sum of a
published feature over the n persons of a class. Whatever combination of such sums, of any releases, an attacker
computes, each difference is a sum over no person or over at least k; and so is each change of a person's values.

*Proof.* Persons of one cell are in the same class of each release, and of each variable the same release was the first
to tell the series (`series.memory`). A published number is a function of the series of all members of a class, and a
class is a disjoint union of released parts of cells: so sums over classes, and their combinations, are combinations of
sums over cells in one state of their series, and each cell and part has 0 or at least k persons (`ledger.parts`).
Persons are held back after lengths and classes are formed and before targets are: neither a mean nor a window depends
on who is held back. What is left of each class is again a union of parts of at least k persons with the same variables,
so that no class, variable or combination of variables falls below k. Where a length would be left with fewer than
`durations.k` persons, all of that length are held back, and the ledger is asked again without them; this ends, for
there are ever fewer. Persons released before keep length, class and variables (`series.republication`), which makes
fewer wait; nothing of the proof rests on it. ∎

*Assumes* NULL mode `null-pattern` (others are refused): else fewer than k persons of a class may share its variables.

*Does not protect*: that lengths and classes were formed among all, those held back among them (where a class ends says
little, but not nothing, of them); with methods other than `shared` a series keeps its own shape, by which releases of
the same person can be matched.

Source
------
soundness.md 6, 18.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.job.ledger_rules import REFUSED
from sqldeid.ledger.audit import Released, released_in
from sqldeid.ledger.book import Book, Subject
from sqldeid.ledger.core import Entered, Ledger, Load
from sqldeid.ledger.groups import Group, enter_groups, groups_of
from sqldeid.ledger.hashing import spelling
from sqldeid.publish import LEDGER_MARK, LEDGER_NOTE, Note
from sqldeid.series.features import withhold
from sqldeid.series.memory import Told, persons_left, told
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.republication import Looking
from sqldeid.series.result import SeriesRelease
from sqldeid.series.shape import Shaped

_KIND = "shortened series"
"""Of the digests of shortened series, to the book."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the ledger lets out: the same lengths and classes, without those who are held back."""

    shaped: Shaped
    entered: Entered


@dataclass(frozen=True, slots=True)
class Audited:
    """What a ledger says of a published release: who is in it, and in which groups its persons had been before."""

    released: Released
    looking: Looking


def subject_of(plan: SeriesPlan, variables: tuple[str, ...] = ()) -> Subject:
    """The release as the ledger's book knows it."""
    labels = [_label(name) for name in variables]
    return Subject(
        plan.name,
        plan.key,
        plan.person.name,
        spelling(plan.person),
        dict.fromkeys(labels, _KIND),
        dict.fromkeys(labels, f"{plan.key}.variables"),
    )


def admit(ledger: Ledger, plan: SeriesPlan, shaped: Shaped, engine: Engine, job_sha256: str) -> Admitted:
    """Hold back who would be singled out beside the releases before; enter the rest.

    Cost: one pass over the shortened series; a hash of each released person and variable.

    Raises
    ------
    JobError
        If the release is of a kind that the ledger cannot keep.
    VerificationError
        If nobody may be released.
    """
    _refuse(plan)
    found, measured = told(shaped, engine), shaped.measured
    subject = subject_of(plan, found.variables)
    ledger.book.refuse_person(subject)
    ledger.book.refuse_types(subject)
    there = found.there.copy()
    while True:
        also_held = int(found.there.sum() - there.sum())
        settled = ledger.settle(_load(plan, subject, shaped, found, there), also_held=also_held)
        released = there.copy()
        released[np.flatnonzero(there)[settled.held.to_numpy()]] = False
        lengths, sizes = np.unique(measured.lengths[released], return_counts=True)
        short = lengths[sizes < plan.part.durations.k]
        if not len(short):
            break
        there = there & ~np.isin(measured.lengths, short)
    enter_groups(ledger.book, ledger.book.next_release(), _groups(shaped, found, released))
    entered = ledger.enter(settled, job_sha256, also_held=also_held)
    return Admitted(without(plan, shaped, found.there & ~released), entered)


def audit(book: Book, plan: SeriesPlan, release: int, mark: object) -> Audited:
    """What the ledger says of a published release; `mark` is the one on it.

    Raises
    ------
    VerificationError
        If the ledger has no such release.
    """
    return Audited(released_in(book, subject_of(plan), release, mark), looking_up(book, plan, release))


def looking_up(book: Book, plan: SeriesPlan, before: int | None = None) -> Looking:
    """Who asks the ledger in which group each person was released last."""
    return partial(groups_of, book, subject_of(plan), before=before)


def _groups(shaped: Shaped, found: Told, released: Flags) -> dict[int, Group]:
    """The released groups, by number."""
    measured, classes, names = shaped.measured, shaped.classes, shaped.prepared.variables.names
    groups: dict[int, Group] = {}
    numbers, first = np.unique(found.group[released], return_index=True)
    for number, person in zip(numbers.tolist(), np.flatnonzero(released)[first].tolist(), strict=True):
        rows = np.flatnonzero((measured.person_at == person) & ~classes.dropped)
        variables = json.dumps(sorted(names[v] for v in measured.features.variable_number[rows]))
        groups[number] = Group(int(classes.of_person[person]), int(measured.lengths[person]), variables)
    return groups


def leave_out(plan: SeriesPlan, shaped: Shaped, released: Released) -> Shaped:
    """The same lengths and classes for those alone who are in a release that was made with a ledger."""
    people = shaped.people if shaped.people is not None else pa.array([], pa.string())
    there = persons_left(shaped.measured, shaped.classes.dropped)
    return without(plan, shaped, there & ~released(pa.chunked_array([people])))


def without(plan: SeriesPlan, shaped: Shaped, held: Flags) -> Shaped:
    """The same lengths and classes without some persons, and targets of the others.

    Raises
    ------
    VerificationError
        If anybody else would lose a variable by that: then what was settled would not be what is released.
    """
    if not held.any():
        return shaped
    before, measured = shaped.classes, shaped.measured
    classes = withhold(plan, shaped.prepared.variables, measured, before, held)
    if (classes.dropped != (before.dropped | held[measured.person_at])).any():
        raise VerificationError(f"{plan.key}: what the ledger lets out falls below k; nothing was published")
    return replace(shaped, classes=classes)


def _load(plan: SeriesPlan, subject: Subject, shaped: Shaped, found: Told, there: Flags) -> Load:
    at, people = pa.array(np.flatnonzero(there), pa.int64()), shaped.people
    if people is None:
        raise VerificationError(f"{plan.key}: persons were not named for the ledger; nothing was published")
    columns: dict[str, pa.Array] = {"person": people.take(at), "class": pa.array(found.group[there], pa.int64())}
    columns |= {f"c{i}": pa.array(digests[there], pa.string()) for i, digests in enumerate(found.series)}
    return Load(subject, "series", plan.part.privacy.k, pa.table(columns), [_label(name) for name in found.variables])


def _label(variable: str) -> str:
    """What the ledger calls a variable: never as a column of a table."""
    return f"series variable {variable.casefold()}"


def _refuse(plan: SeriesPlan) -> None:
    """What the theorem does not cover."""
    if plan.part.privacy.nulls != "null-pattern":
        raise JobError.at(f"{plan.key}.privacy.nulls", REFUSED["nulls"])


def noted(note: Note, entered: Entered | None) -> Note:
    """The note of a release with its number in the ledger: who checks it again must ask the ledger who is in it."""
    if entered is None:
        return note
    kept: Mapping[str, object] = {LEDGER_NOTE: entered.account["release"], LEDGER_MARK: entered.mark}
    return replace(note, content={**note.content, **kept})


def with_ledger(result: SeriesRelease, entered: Entered | None) -> SeriesRelease:
    """The result with what the ledger says of it."""
    if entered is None:
        return result
    return replace(result, ledger=entered.account, warnings=(*result.warnings, *entered.warnings))
