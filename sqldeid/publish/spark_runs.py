"""Find what runs on Spark left in a schema, and whether another run is still at work there.

A staged table carries its run, the time and the process in its note until it is published. Of a run of this machine
that was killed, the mark tells (`sqldeid.engine.mark`); any other is taken for alive for a day, after which no run
publishes what it staged (`refuse_too_old`). So nothing that a live run needs is ever dropped, and what dead ones left
goes, sooner or later. Host and process are said to people alone: names of hosts and numbers of processes recur.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from sqldeid.engine.base import Relation
from sqldeid.engine.mark import is_dead
from sqldeid.errors import EngineError
from sqldeid.publish.notes import STAGED, read_note

FOLDER = "folder"
"""Key of that entry where the release goes into a folder, which the run has claimed, and never into the catalogue."""

DEAD_AFTER = timedelta(hours=24)
TOO_OLD = timedelta(hours=23)
"""An hour less: clocks differ."""
_HOST = re.compile(r"[A-Za-z0-9._-]{1,255}")


def stamp(run: str) -> dict[str, str]:
    """What is noted on a table that a run stages now."""
    return {"run": run, "at": datetime.now(UTC).isoformat(timespec="seconds")}


def signed(run: str) -> dict[str, str]:
    """The same for a note, with the process: whoever finds it can see whether the run lives. It goes with the entry."""
    return {**stamp(run), "host": platform.node(), "process": str(os.getpid())}


def when_and_where(staged: Mapping[str, str]) -> str:
    """How long ago a table was staged, and by which process, in words; earlier versions did not say the latter."""
    ago = f"{minutes_of(staged)} minutes ago"
    host, process = (str(staged.get(name, "")) for name in ("host", "process"))
    return f"{ago} (process {process} on {host})" if _HOST.fullmatch(host) and process.isdecimal() else ago


def snapshots(text: str, name: str) -> set[str]:
    """The tables of runs of release `name` that a view's definition reads."""
    return set(re.findall(rf"\b({re.escape(name.casefold())}__[0-9a-f]{{8}})\b", text.casefold()))


def refuse_alive(key: str, left: Sequence[Relation]) -> None:
    """Refuse to go on where another run may be writing the release.

    Parameters
    ----------
    left
        Tables of the release that are not the present one's.

    Raises
    ------
    EngineError
        Naming the table that the other run staged.
    """
    for relation in left:
        staged = staged_by(relation)
        if staged is None or is_over(staged):
            continue
        table = ".".join(relation.parts)
        raise EngineError.at(
            key,
            f"another run is writing it: it staged {table} {when_and_where(staged)}; wait for it, or, once its process "
            f"is no more, DROP TABLE {table} (a day later the next run does)",
        )


def is_left_behind(relation: Relation) -> bool:
    """Whether a table was staged by a run that is over, and not published."""
    staged = staged_by(relation)
    return staged is not None and is_over(staged)


def is_over(staged: Mapping[str, str]) -> bool:
    """Whether the run of a stamp is known to be dead, or taken for dead."""
    return is_dead(staged["run"]) or _age(staged) > DEAD_AFTER


def minutes_of(staged: Mapping[str, str]) -> int:
    """How long ago a stamp was made."""
    return max(int(_age(staged).total_seconds() // 60), 0)


def refuse_too_old(at: datetime) -> None:
    """Refuse to publish what others may take for left behind.

    Raises
    ------
    EngineError
        If it was staged too long ago.
    """
    if datetime.now(UTC) - at > TOO_OLD:
        hours = int(TOO_OLD.total_seconds() // 3600)
        raise EngineError(f"the release was staged more than {hours} hours ago, and others may clear it; run again")


def staged_by(relation: Relation) -> Mapping[str, str] | None:
    """Who staged a table, and when; None where it was published, or nobody said so."""
    found = (read_note(relation.comment) or {}).get(STAGED)
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in ("run", "at")):
        return None
    return found


def _age(staged: Mapping[str, str]) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(staged["at"])
    except (TypeError, ValueError):
        return DEAD_AFTER * 2
