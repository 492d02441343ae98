"""Refuse a release whose source changed while it was made, where the engine has no snapshot.

What was written is compared with the source as it is then (`sqldeid.tables.verify.verify`). A change that is in both,
what was written and what it is compared with, shows in the persons or in what is suppressed; where it shows in neither,
the release is what the source gives now, but for the search, which saw the rows before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.shape import persons_now


class _Counted(Protocol):
    @property
    def suppressed(self) -> int:
        """Rows of the source that are in no released class."""


C = TypeVar("C", bound=_Counted)


class Check(Protocol):
    """What is given the counts of a re-check."""

    def __call__(self, verified: C) -> C:
        """The same counts, with the rows that were folded."""


@contextmanager
def source_unchanged(plan: TablePlan, folded: Folded, failing: int | None, engine: Engine) -> Iterator[Check]:
    """Where there is no snapshot, refuse a release whose source has other persons, or suppresses other rows, by now.

    Parameters
    ----------
    folded
        With the source as the persons were counted in it, before anything in it was disguised.
    failing
        Rows that the search's node suppresses; None where the release is of other rows than it saw.

    Yields
    ------
    What to give to the re-check's counts; it gives them the rows that were folded.

    Raises
    ------
    VerificationError
        If it has, or the re-check failed: the message then says that this may be why.

    Cost: one scan of the source, where the engine has no snapshot.
    """
    still = engine.capabilities.snapshot_reads

    def check(verified: C) -> C:
        if not still:
            now, suppressed = persons_now(plan, engine, folded.source), verified.suppressed
            if (now.rows, now.keys) != (folded.rows, folded.keys) or failing not in (None, suppressed):
                raise VerificationError.at(plan.key, "the release is not of the rows that were folded")
        return cast(C, replace(cast(Any, verified), rows=folded.rows))

    with telling_of_changes(engine):
        yield check


@contextmanager
def telling_of_changes(engine: Engine) -> Iterator[None]:
    """Where there is no snapshot, have a failed re-check say that the source may have changed meanwhile."""
    try:
        yield
    except VerificationError as error:
        if engine.capabilities.snapshot_reads:
            raise
        raise VerificationError(
            f"{error.message}; where the source changed meanwhile, run again while nobody writes to it", key=error.key
        ) from None
