"""An attack that fails: what counts as that, and what becomes of the release.

*Guarantee*: a release is never lost to its attacks where the engine, or memory, is all that failed: the attack is left
out by name, with the engine's own reason, and the release is what it is without it. Attacks write nothing but temporary
tables, so nothing of one that ended halfway stands in a release.

What counts is what the place of the run lacks (`sqldeid.attacked.TOLERATED`): an engine's error (memory, disk, time, a
server that ended a statement) and Python's own lack of memory. Everything else ends the run: a source that changed
while it was read, an SQL that does not bind, and an error of Python are faults of the source or of this program, which
must be seen; Ctrl-C is the user's will.

A database that ends its transaction with the statement takes what was staged with it. Then `AttackFailedError` asks for
the run once more without that attack and those that share its work, and where a second one fails without any on this
release (`sqldeid.attacked.spared_after`). No savepoint keeps the transaction: DuckDB has none, and of the attacks' work
on a server all but the fold is done beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqldeid import attacked
from sqldeid.errors import AttackFailedError, EngineError
from sqldeid.tables.attacks.base import Attacked

T = TypeVar("T")


def once(work: Callable[[], T]) -> Callable[[], T]:
    """Work that several attacks ask for: done when first asked for, and not tried again where it failed."""
    done: list[T] = []
    failed: list[Exception] = []

    def ask() -> T:
        if failed:
            raise failed[0]
        if not done:
            try:
                done.append(work())
            except attacked.TOLERATED as error:
                failed.append(error)
                raise
        return done[0]

    return ask


def reason_of(release: Attacked, name: str, error: Exception) -> str:
    """Why an attack is left out that failed.

    Raises
    ------
    AttackFailedError
        If what was staged is lost with it.
    """
    reason = attacked.why_failed(error)
    try:
        release.engine.columns(release.written)
        release.engine.bench.rows("engine/read_transaction")
    except EngineError:
        raise AttackFailedError(release.plan.name, name, reason) from None
    return reason
