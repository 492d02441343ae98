"""Everything that sqldeid raises on purpose.

    SqldeidError                 exit code 1, kind "internal"
    ├── UnknownKindError         1  a criterion, loss or the like that some part of the program does not know: a bug
    ├── JobError                 2  what the user can mend: arguments, job file, data that breaks a rule of the job
    │   ├── HierarchyError       2  a hierarchy file or rule that does not load, nest or cover
    │   │   └── UncoveredError   2  likewise, of a column's values that are in no hierarchy; how to list them is said
    │   └── UnreadError          2  a column with a value that does not come out of a server
    ├── EngineError              1  the database, a lock, the disk, a server
    │   ├── UnshownError         1  likewise, in words of the database that may quote rows and are kept back
    │   └── AttackFailedError    1  an attack on a release failed and took what was staged with it; it is made once more
    ├── NoSolutionError          3  no node of the lattice is admissible; the nearest one is named
    ├── VerificationError        4  what was staged is not what was promised, or what is looked at is not there
    └── Interrupted              130  Ctrl-C, or a time limit of the caller; nothing was published

Messages name file, release, key, table or column and the mend; they never hold a data value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Self

NO_COLUMN = "A column is named as in the source; a text value stands in single quotes, as in sex = 'F'."
"""What to try where the job's SQL names a column that is not there."""

OUT_OF_RANGE = "a value cannot be converted or is out of range in the job's SQL or source view (not shown)"
"""What every engine's words for a value that cannot be reckoned with are turned into."""

RAISED = (
    "a view of the source, or a function that it calls, stopped with an error of its own (not shown, for it may hold "
    "data); read the view yourself to see it, and mend the rows that it refuses, or the view"
)
"""What is said of an error that whoever wrote a view had raised: not the database failed, and no run mends it."""

MOST_NAMED = 8
"""Names in a message."""


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Names for a message: of many the first, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class SqldeidError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message
        One or two sentences for the user: where, what, how much, and what to do. Never a data value.
    key
        The job-file key, column or argument concerned, dotted (``tables.patients.columns.zip``); empty if none.
    """

    code: ClassVar[int] = 1
    kind: ClassVar[str] = "internal"

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key

    @property
    def message(self) -> str:
        """The text, which whoever knows more of the place may complete; it is what is shown, whatever shows it."""
        return str(self.args[0])

    @message.setter
    def message(self, text: str) -> None:
        self.args = (text,)

    @classmethod
    def at(cls, key: str, text: str, *, unnamed: str = "") -> Self:
        """An error whose message begins with its key; with `unnamed` where whoever asks has no key."""
        return cls(f"{key or unnamed}: {text}", key=key)

    def to_dict(self) -> dict[str, object]:
        """The ``error`` entry that ``--json`` writes: code, kind, key, message."""
        return {"code": self.code, "kind": self.kind, "key": self.key, "message": self.message}


class UnknownKindError(SqldeidError):
    """A kind that some part of the program does not know: a bug there, and never taken for one that it knows.

    Parameters
    ----------
    kind
        What it is called: a criterion's class, or a word of the job's schema, never a value of the data.
    what
        What it is one of ("criterion", "loss").
    """

    def __init__(self, kind: object, what: str) -> None:
        super().__init__(
            f"the {what} {kind} is not known everywhere in this program, so nothing is judged or said of it; this is a "
            "bug, please report it"
        )


class JobError(SqldeidError):
    """Something the user can mend in arguments, job file or source."""

    code = 2
    kind = "job"


class HierarchyError(JobError):
    """A hierarchy that cannot be loaded, does not nest, or does not cover the data."""

    kind = "hierarchy"


class UncoveredError(HierarchyError):
    """Values of a column that its hierarchy does not cover; whoever knows the job completes how they are listed.

    Parameters
    ----------
    release, column
        Their names in the job.
    """

    release = ""
    column = ""


class UnreadError(JobError):
    """A column of a query holds a value that does not come out of a server.

    Parameters
    ----------
    what
        The fault and what to do, to be said of a column.
    column
        Its name in the query; whoever wrote the query knows which of the job's columns that is. Empty if unknown.
    """

    def __init__(self, what: str, column: str = "") -> None:
        super().__init__(f"{f'column {column}' if column else 'a column'} {what}")
        self.what = what
        self.column = column


@contextmanager
def naming_unread(key_of: Callable[[str], str]) -> Iterator[None]:
    """Name the column of the job whose values do not come out; `key_of` knows its key by its name in the query."""
    try:
        yield
    except UnreadError as error:
        if not error.column:
            raise
        raise JobError.at(key_of(error.column), error.what) from None


class EngineError(SqldeidError):
    """The database, a lock, the disk or a server failed."""

    code = 1
    kind = "engine"


class UnshownError(EngineError):
    """What the database says in words that may quote rows, and that are kept back: mostly the job's SQL met it."""


class AttackFailedError(EngineError):
    """An attack on a release failed, and the database ended the transaction in which the release was staged.

    Parameters
    ----------
    release, attack
        Their names.
    reason
        Why, in words that hold no data value.
    """

    def __init__(self, release: str, attack: str, reason: str) -> None:
        super().__init__(f"{release}: {attack}: {reason}")
        self.release = release
        self.attack = attack
        self.reason = reason


class NoSolutionError(SqldeidError):
    """No node of the lattice meets the criteria within the suppression limit."""

    code = 3
    kind = "no-solution"


class VerificationError(SqldeidError):
    """What was staged is not what the job promises; nothing was published."""

    code = 4
    kind = "verification"


class Interrupted(SqldeidError):
    """The run was interrupted; nothing was published.

    Parameters
    ----------
    best
        The best admissible node that a search knew, as ``{"node": {column: level}, "loss": …}``; None outside a search,
        and while no such node was known.
    gap
        Its loss less the proven bound, in the loss's unit; None where `best` is.
    """

    code = 130
    kind = "interrupted"

    def __init__(
        self,
        message: str,
        *,
        key: str = "",
        best: Mapping[str, object] | None = None,
        gap: float | None = None,
    ) -> None:
        super().__init__(message, key=key)
        self.best = best
        self.gap = gap

    def to_dict(self) -> dict[str, object]:
        """The ``error`` entry, with `best` and `gap` where a search had them."""
        known = {} if self.best is None else {"best": dict(self.best), "gap": self.gap}
        return {**super().to_dict(), **known}
