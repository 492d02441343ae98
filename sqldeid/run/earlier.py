"""Open what a run takes over from earlier ones: a policy to apply again, and the ledger."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, SqldeidError, VerificationError
from sqldeid.events.plan import EventsPlan
from sqldeid.job.problems import did_you_mean
from sqldeid.keys import VARIABLE, read_key
from sqldeid.ledger.book import Book
from sqldeid.ledger.core import Ledger
from sqldeid.ledger.file import LedgerFile
from sqldeid.ledger.hashing import label_of
from sqldeid.ledger.recurrence import NEW_PERSONS, NEW_VALUES, Insisted
from sqldeid.publish import LEDGER_MARK, LEDGER_NOTE, Staging, key_of
from sqldeid.run.places import Options
from sqldeid.run.wings import Plan
from sqldeid.series.plan import SeriesPlan
from sqldeid.tables.ledger.audit import unreleased
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.policy import Policy, apply_policy, read_policies


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier runs left.

    Parameters
    ----------
    policies
        By release; None where nodes are searched anew.
    ledger
        What was released of whom; None where releases are not held to earlier ones.
    """

    policies: Mapping[str, Policy] | None
    ledger: Ledger | None

    def fit(self, plan: TablePlan, job_sha256: str) -> tuple[TablePlan, Policy | None]:
        """The plan with the hierarchies of its policy, and the policy, where there is one."""
        return (plan, None) if self.policies is None else apply_policy(plan, self.policies, job_sha256)

    def publish(self, staging: Staging) -> tuple[str, ...]:
        """Write the releases down in the ledger, publish them; where that fails, the ledger is as it was before."""
        if self.ledger is None:
            return staging.publish()
        file = self.ledger.book.file
        file.record()
        try:
            written = staging.publish()
        except SqldeidError:
            file.restore()
            raise
        file.confirm()
        return written


def open_earlier(
    options: Options,
    plans: Sequence[TablePlan | Plan],
    stack: ExitStack,
    held: Sequence[Mapping[str, object]],
    into: Path | None,
) -> Earlier:
    """Read what the options name; the ledger is locked until the stack is closed.

    Parameters
    ----------
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
    if options.policy is not None:
        if options.certificate:
            raise JobError("--certificate: a policy's node is not searched, and has no proof; leave one of them out")
        _refuse_others("--policy", plans)
    policies = None if options.policy is None else read_policies(options.policy)
    _refuse_unheard(options, plans)
    if options.ledger is None:
        return Earlier(policies, None)
    if into is not None and os.path.realpath(into) == os.path.realpath(options.ledger):
        raise JobError("--ledger: is where releases go (release.into); name another file", key="--ledger")
    _refuse_many(plans)
    ledger = _open_ledger(options, plans, stack)
    _refuse_another(ledger, held)
    return Earlier(policies, ledger)


def _refuse_many(plans: Sequence[TablePlan | Plan]) -> None:
    for planned in plans:
        if isinstance(planned, TablePlan) and planned.many:
            key = f"{planned.key}.rows"
            raise JobError(
                f'{key}: --ledger knows each person by one row, and does not go with rows = "many"; give one row per '
                "person (a source query that picks one), or choose other releases with --only",
                key=key,
            )


def _refuse_unheard(options: Options, plans: Sequence[TablePlan | Plan]) -> None:
    """What is said to a ledger where there is none, or of a column that no release tells."""
    for option, given in ((NEW_PERSONS, options.new_persons), (NEW_VALUES, options.new_values)):
        if given and options.ledger is None:
            raise JobError(f"{option}: it is said to a ledger; name that with --ledger, or leave it out", key=option)
    told = {label_of(c.name) for p in plans if isinstance(p, TablePlan) for c in p.others}
    for name in options.new_values:
        if label_of(name) not in told and all(isinstance(p, TablePlan) for p in plans):
            hint = did_you_mean(name, told)
            raise JobError(f"{NEW_VALUES}: no release shows a column {name} beside its classes{hint}", key=NEW_VALUES)


def _refuse_another(ledger: Ledger, held: Sequence[Mapping[str, object]]) -> None:
    """A ledger that did not take down what is replaced: another one, or a copy from before."""
    known = {row["mark"] for row in ledger.book.releases()} - {None}
    for note in held:
        if note.get(LEDGER_MARK) not in known:
            raise JobError(
                f"{key_of(note)}: {ledger.book.file.path} does not know the release that is there; it is "
                "another ledger, or an old copy, and whoever compares releases may single people out",
                key="--ledger",
            )


def _open_ledger(options: Options, plans: Sequence[TablePlan | Plan], stack: ExitStack) -> Ledger:
    for planned in plans:
        private = isinstance(planned, EventsPlan) and planned.method == "laplace"
        if not private and not isinstance(planned, (TablePlan, SeriesPlan)):
            raise JobError(
                f"{planned.key}: --ledger is for tables (but for mondrian), series, and events with laplace; choose "
                "them with --only",
                key=planned.key,
            )
    key = read_key(options.key_file)
    if key is None:
        raise JobError(
            f"--ledger: it keeps persons by a keyed hash; name the key with --key-file, or set {VARIABLE}",
            key="--key-file",
        )
    book = Book(stack.enter_context(LedgerFile(Path(options.ledger or ""), options.settings)), key)
    return Ledger(book, Insisted(options.new_persons, frozenset(label_of(name) for name in options.new_values)))


def held_back(plan: TablePlan, note: Mapping[str, object], engine: Engine, options: Options) -> exp.Table | None:
    """Whom a published release leaves out for the ledger's sake; None where it was made without one.

    Raises
    ------
    VerificationError
        If the ledger is not given, or is another.
    """
    with ExitStack() as stack:
        found = noted_ledger(plan, note, options, stack)
        return None if found is None else unreleased(found[0].book, plan, engine, found[1], note.get(LEDGER_MARK))


def noted_ledger(
    plan: TablePlan | SeriesPlan, note: Mapping[str, object], options: Options, stack: ExitStack
) -> tuple[Ledger, int] | None:
    """The ledger that a release was made with, open until the stack is closed, and the release's number there.

    Raises
    ------
    VerificationError
        If the ledger is not given.
    """
    release = note.get(LEDGER_NOTE)
    if not isinstance(release, int):
        return None
    if options.ledger is None:
        what = "rows" if isinstance(plan, TablePlan) else "persons"
        raise VerificationError(
            f"{plan.key}: a ledger held {what} back from this release; name it with --ledger, and its key", key=plan.key
        )
    if not Path(options.ledger).exists():
        raise JobError(f"--ledger: {options.ledger} does not exist", key="--ledger")
    return _open_ledger(options, [plan], stack), release


def _refuse_others(option: str, plans: Sequence[TablePlan | Plan]) -> None:
    for planned in plans:
        if not isinstance(planned, TablePlan):
            raise JobError(f"{planned.key}: {option} is for table releases; choose them with --only", key=planned.key)
