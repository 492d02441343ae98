"""An attack that fails: what counts as that, and what becomes of the release.

*Guarantee*: a release is never lost to its attacks where the engine, or memory, is all that failed: the attack is left
out by name, with the engine's own reason, and the release is what it is without it. Attacks write nothing but temporary
tables, so nothing of one that ended halfway stands in a release.

What counts is what the place of the run lacks (`TOLERATED`): an engine's error (memory, disk, time, a server that
ended a statement) and Python's own lack of memory. Everything else ends the run: a source that changed while it was
read, an SQL that does not bind, and an error of Python are faults of the source or of this program, which must be seen;
Ctrl-C is the user's will.

A database that ends its transaction with the statement takes what was staged with it. Then `AttackFailedError` asks for
the run once more without the attacks on this release (`sqldeid.run.orchestrator`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqldeid.errors import AttackFailedError, EngineError, SqldeidError
from sqldeid.tables.attacks.base import Attacked

T = TypeVar("T")

TOLERATED: tuple[type[Exception], ...] = (EngineError, MemoryError)
"""What costs an attack and not the release. Tests tolerate nothing, unless they ask for it."""

_NOTHING = "; nothing was published"


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
            except TOLERATED as error:
                failed.append(error)
                raise
        return done[0]

    return ask


def why_failed(attacked: Attacked, name: str, error: Exception) -> str:
    """Why an attack is left out that failed; no data value, for errors hold none.

    Raises
    ------
    AttackFailedError
        If what was staged is lost with it.
    """
    said = error.message if isinstance(error, SqldeidError) else "the program ran out of memory"
    reason = f"it could not be made: {said.removesuffix(_NOTHING)}"
    try:
        attacked.engine.columns(attacked.written)
        attacked.engine.bench.rows("engine/read_transaction")
    except SqldeidError as lost:
        if not isinstance(lost, EngineError):
            raise
        raise AttackFailedError(attacked.plan.name, name, reason) from None
    return reason
