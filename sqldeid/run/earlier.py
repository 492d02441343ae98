"""Open what a run takes over from earlier ones: a policy to apply again, and the ledger.

Most runs have no ledger, and do not wait for its rooms.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqldeid import tables
from sqldeid.errors import JobError, SqldeidError, VerificationError
from sqldeid.job import Job
from sqldeid.job.problems import did_you_mean
from sqldeid.keys import VARIABLE, read_key
from sqldeid.ledger.hashing import label_of
from sqldeid.publish import LEDGER_MARK, LEDGER_NOTE, Staging, key_of
from sqldeid.run.places import Options
from sqldeid.run.wings import Plan, is_linked, nature_of

if TYPE_CHECKING:
    from sqldeid.ledger.core import Ledger


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier runs left.

    Parameters
    ----------
    policies
        By release; None where nodes are searched anew.
    ledger
        What was released of whom; None where releases are not held to earlier ones.
    entered
        Marks of the releases that the ledger took down before this run.
    """

    policies: Mapping[str, Any] | None
    ledger: Ledger | None
    entered: frozenset[str] = frozenset()

    def publish(self, staging: Staging, *, certain: bool) -> tuple[str, ...]:
        """Write the releases down in the ledger, then publish them.

        Parameters
        ----------
        certain
            Whether nothing is published where publishing fails: then the ledger is as it was before. A server may have
            taken in what it no longer could confirm; then the releases count as published, as after a kill.
        """
        if self.ledger is None:
            return staging.publish()
        self.ledger.book.close()
        file = self.ledger.book.file
        file.record()
        try:
            written = staging.publish()
        except SqldeidError:
            if certain:
                file.restore()
            raise
        file.confirm()
        return written


def refuse_unfit(job: Job, names: Sequence[str], options: Options) -> None:
    """Refuse what does not go with a ledger before anything is opened, all of it at once; and a ledger without a key.

    Raises
    ------
    JobError
        With a line for each fault: who mends a job should not learn of them one run after the other.
    """
    if options.ledger is None:
        return
    from sqldeid.job.ledger_rules import REFUSED, unfit

    faults = [(key, f"{job.name}: {key}: {REFUSED[what]}") for key, what in unfit(job, names)]
    try:
        keyless = None if read_key(options.key_file) is not None else _keyless()
    except JobError as error:
        keyless = error
    if keyless is not None:
        faults.append((keyless.key, keyless.message))
    if faults:
        raise JobError("\n".join(text for _, text in faults), key=faults[0][0])


def open_earlier(
    options: Options,
    units: Sequence[Plan],
    stack: ExitStack,
    held: Sequence[Mapping[str, object]],
    into: Path | None,
) -> Earlier:
    """Read what the options name; the ledger is locked until the stack is closed.

    Parameters
    ----------
    units
        What the run makes, linked tables at once.
    held
        Notes of the releases that are replaced and were held to a ledger.
    into
        Where releases go, if not to the source database.

    Raises
    ------
    JobError
        If it cannot be read, or does not fit the plans or the other options.
    EngineError
        If another run uses the ledger.
    """
    plans = _single(units, options)
    if options.policy is not None:
        if options.certificate:
            raise JobError("--certificate: a policy's node is not searched, and has no proof; leave one of them out")
        _refuse_others("--policy", plans)
    policies = None if options.policy is None else tables.read_policies(options.policy)
    _refuse_unheard(options, plans)
    if options.ledger is None:
        return Earlier(policies, None)
    if into is not None and os.path.realpath(into) == os.path.realpath(options.ledger):
        raise JobError.at("--ledger", "is where releases go (release.into); name another file")
    _refuse_many(plans)
    ledger = _open_ledger(options, plans, stack)
    entered = frozenset(str(row["mark"]) for row in ledger.book.releases() if row["mark"] is not None)
    _refuse_another(ledger, held, entered)
    return Earlier(policies, ledger, entered)


def _single(units: Sequence[Plan], options: Options) -> list[Plan]:
    """The releases that are not linked tables: only of them there is a policy, or a ledger.

    Raises
    ------
    JobError
        If one is asked for with linked tables.
    """
    for unit in units:
        if not is_linked(unit):
            continue
        if options.policy is not None:
            raise JobError(
                f"{unit.key}: --policy applies the node of one table, and linked tables have a common one; search anew "
                "without it",
                key="--policy",
            )
        if options.ledger is not None:
            from sqldeid.job.ledger_rules import REFUSED

            raise JobError(f"{unit.key}: {REFUSED['link']}", key="--ledger")
    return [unit for unit in units if not is_linked(unit)]


def _refuse_many(plans: Sequence[Plan]) -> None:
    for planned in plans:
        if nature_of(planned).many:
            from sqldeid.job.ledger_rules import REFUSED

            raise JobError.at(f"{planned.key}.rows", REFUSED['rows = "many"'])


def _refuse_unheard(options: Options, plans: Sequence[Plan]) -> None:
    """What is said to a ledger where there is none, or of a column that no release tells."""
    if not (options.new_persons or options.new_values):
        return
    from sqldeid.ledger.recurrence import NEW_PERSONS, NEW_VALUES

    for option, given in ((NEW_PERSONS, options.new_persons), (NEW_VALUES, options.new_values)):
        if given and options.ledger is None:
            raise JobError.at(option, "it is said to a ledger; name that with --ledger, or leave it out")
    columns = [nature_of(p).columns for p in plans] if options.new_values else []
    told = {label for found in columns for label in found or ()}
    for name in options.new_values:
        if label_of(name) not in told and None not in columns:
            hint = did_you_mean(name, told)
            raise JobError.at(NEW_VALUES, f"no release shows a column {name} beside its classes{hint}")


def _refuse_another(ledger: Ledger, held: Sequence[Mapping[str, object]], entered: frozenset[str]) -> None:
    """A ledger that did not take down what is replaced: another one, or a copy from before."""
    for note in held:
        if note.get(LEDGER_MARK) not in entered:
            raise JobError(
                f"{key_of(note)}: {ledger.book.file.path} does not know the release that is there; it is "
                "another ledger, or an old copy, and whoever compares releases may single people out: name the ledger "
                "that this release was made with, its newest copy; where that is lost, make a release of another name "
                "with a new ledger, and hand nobody both",
                key="--ledger",
            )


def _open_ledger(options: Options, plans: Sequence[Plan], stack: ExitStack) -> Ledger:
    from sqldeid.ledger.book import Book
    from sqldeid.ledger.core import Ledger
    from sqldeid.ledger.file import LedgerFile
    from sqldeid.ledger.recurrence import Insisted

    for planned in plans:
        if not nature_of(planned).ledger:
            raise JobError.at(
                planned.key,
                "--ledger is for tables whose classes are levels of hierarchies (not for mondrian, nor for local with "
                'choose = "by-k", where all criteria decide who stays, nor for child tables), series, and events with '
                "laplace",
            )
    key = read_key(options.key_file)
    if key is None:
        raise _keyless()
    book = Book(stack.enter_context(LedgerFile(Path(options.ledger or ""), options.settings)), key)
    return Ledger(book, Insisted(options.new_persons, frozenset(label_of(name) for name in options.new_values)))


def _keyless() -> JobError:
    return JobError(
        f"--ledger: it keeps persons by a keyed hash; name the key with --key-file, or set {VARIABLE}",
        key="--key-file",
    )


@contextmanager
def noted_ledger(plan: Plan, note: Mapping[str, object], options: Options) -> Iterator[tuple[Ledger, int] | None]:
    """The ledger that a release was made with, and the release's number there; None where it was made without one.

    Raises
    ------
    VerificationError
        If the ledger is not given.
    """
    release = note.get(LEDGER_NOTE)
    if not isinstance(release, int):
        yield None
        return
    if options.ledger is None:
        held = nature_of(plan).held
        raise VerificationError.at(
            plan.key, f"a ledger held {held} back from this release; name it with --ledger, and its key"
        )
    if not Path(options.ledger).exists():
        raise JobError.at("--ledger", f"{options.ledger} does not exist")
    with ExitStack() as stack:
        yield _open_ledger(options, [plan], stack), release


def _refuse_others(option: str, plans: Sequence[Plan]) -> None:
    for planned in plans:
        if not nature_of(planned).policy:
            raise JobError.at(
                planned.key,
                f"{option} applies the node of an earlier table release, and mondrian, local and child tables have "
                "none: how a row is shown depends on who else is there. With local, a ledger keeps those who were "
                "released at their levels; choose others with --only",
            )
