"""The beginning of a transaction on Postgres that publishes: it has a schema alone, from before its snapshot on.

A run looks at the releases of a schema once, and publishes long after. What another one published meanwhile it could
not be held to. So a run has the schema from its first statement to its end, and its snapshot is not older than that.

Source: engines.md, *Publishing*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqldeid.errors import EngineError
from sqldeid.sql import literal, render

MOST = 1000
"""Times that a transaction is begun anew, since others were committed while it began: of a busy server one in some."""

Read = Callable[..., list[tuple[Any, ...]]]


def claim_place(place: str, read: Read, send: Callable[[str], None]) -> None:
    """Have a schema for this transaction alone, which has run nothing else yet, until it ends in whatever way.

    Raises
    ------
    EngineError
        If another run has it.
    """
    for _ in range(MOST):
        claimed, stale = read("engine/claim_place", place=literal(place.casefold()))[0]
        if not claimed:
            raise EngineError.at(
                "release.schema",
                f"another run of sqldeid is publishing into the schema {place}, and each must know of the other's "
                "releases; nothing was published: run again when it is done",
            )
        if not stale:
            return
        send(render("engine/begin_anew", "postgres"))
    raise EngineError.at(
        "release.schema",
        "the server commits so much that no moment was found to begin in; nothing was published: run again",
    )
