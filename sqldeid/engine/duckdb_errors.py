"""DuckDB's errors as ours: what to do, and never a data value (DuckDB quotes values in conversion errors)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from sqldeid.engine.csv_lines import MALFORMED
from sqldeid.errors import NO_COLUMN, OUT_OF_RANGE, EngineError, Interrupted, JobError, SqldeidError, UnshownError

_NO_COLUMN = "Binder Error: Referenced column "
_LINE = re.compile(r"csv error on line: (\d+)")
_CHECKSUM = "corrupt database file"  # an IOException in 1.4, of no kind of its own in 2.0
_DAMAGED = "a database file is damaged; bring a copy of it back"
_ENCRYPTED = (
    "the file is encrypted, and no command takes its key; in Python, attach it to a connection with its "
    "ENCRYPTION_KEY, choose it with USE, and give sqldeid that connection (docs/how-to/python.md, Encrypted databases)"
)
CONVERSION = OUT_OF_RANGE
INTERRUPTED = "interrupted; nothing was published"
_NO_PARQUET = "a file is called Parquet and is none; remove it, or name another place"
_INVALID = {
    "more than one row returned by a subquery": (
        "a subquery of the job's SQL or source view stands for one value and gives several rows; use IN or MIN"
    ),
    "too small to be a parquet file": _NO_PARQUET,
    "no magic bytes found": _NO_PARQUET,
    "parquet magic bytes": _NO_PARQUET,
    "could not parse string": CONVERSION,  # STRPTIME
    "malformed json": CONVERSION,
    "map keys must be unique": CONVERSION,
    "invalid input for hex digit": CONVERSION,
    "python exception occurred while executing the udf": (
        "a function of Python that the job's SQL or source view calls failed (what it says may hold data and is not "
        "shown); run the query by itself"
    ),
    "the 'null_handling' was set to default": (
        "a function of Python that the job's SQL or source view calls gives NULL, which DuckDB does not take from it; "
        "create it with null_handling='special'"
    ),
    "already been consumed": (
        "the source is a reader whose rows can be read once, and a run reads them several times; register a table "
        "(reader.read_all())"
    ),
}
"""What DuckDB's words for invalid input mean; of a value that a function cannot read, as of one that no cast can."""


class InvalidInputError(UnshownError):
    """What DuckDB calls invalid input, in words that are not known: its own, or those of a view that calls `error`."""


@contextmanager
def heard() -> Iterator[None]:
    """Around statements in the main thread, where DuckDB hears a signal itself and tells of it by a RuntimeError.

    Raises
    ------
    Interrupted
        If it did.
    """
    try:
        yield
    except RuntimeError as error:
        if is_interruption(error):
            raise Interrupted(INTERRUPTED) from None
        raise


def is_interruption(error: Exception) -> bool:
    """Whether rows that were being fetched ended with a signal."""
    return "Query interrupted" in str(error)


def translate(error: duckdb.Error) -> SqldeidError:
    """Our error for one of DuckDB's. Texts that can hold data values are replaced."""
    first = str(error).strip().split("\n")[0]
    if isinstance(error, duckdb.InterruptException):
        return Interrupted(INTERRUPTED)
    if _disk_is_full(first):
        return EngineError("the disk is full; free some space, or point --temp-dir at a larger disk")
    if isinstance(error, duckdb.OutOfMemoryException):
        return EngineError(f"the database ran out of memory ({_without_kind(first)}); raise --memory-limit")
    if type(error).__name__ == "ResourceInUseException" or "file handle conflict" in first.lower():  # 2.0 or 1.4
        return _in_use()
    if isinstance(error, duckdb.IOException):
        return _io_error(first)
    if isinstance(error, duckdb.PermissionException):
        return JobError("the statement needs files, network or extensions, which are closed while a job runs")
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        return _unresolved(first)
    if isinstance(error, duckdb.DataError):
        return JobError(_beyond(first) or CONVERSION)
    if isinstance(error, duckdb.TransactionException):
        return EngineError(_without_kind(first))
    return _input_error(error)


def _unresolved(text: str) -> JobError:
    """Of a name that is not there, or SQL that means nothing; and of a file without its key, which is one to DuckDB."""
    if "Cannot open encrypted database" in text:
        return JobError(_ENCRYPTED)
    return JobError(_without_kind(text) + (f" {NO_COLUMN}" if text.startswith(_NO_COLUMN) else ""))


def _beyond(text: str) -> str | None:
    """What is said of times that microseconds do not hold; DuckDB 2.0 names their column, and no value."""
    if not text.startswith("Conversion Error: Could not convert Timestamp"):
        return None
    named = text.partition("when casting from source column ")[2]
    return (
        f"a time {f'in the column {named} ' if named else ''}is beyond the year 294246, which a column of the type "
        "TIMESTAMP_S or TIMESTAMP_MS holds and nothing that is reckoned with times; make it NULL in the source"
    )


def _input_error(error: duckdb.Error) -> SqldeidError:
    """What DuckDB calls invalid input is told apart by its words, which are never repeated: they quote rows."""
    if _CHECKSUM in str(error).lower():
        return JobError(_DAMAGED)
    if isinstance(error, duckdb.ConnectionException) and "closed" in str(error):
        return EngineError("the connection to the database is closed; give one that is open")
    text = str(error).strip().lower() if isinstance(error, duckdb.InvalidInputException) else ""
    if "this file is not utf-8 encoded" in text:
        return JobError("the file is not UTF-8; convert it to UTF-8 first")
    if (line := _LINE.search(text)) is not None:
        return JobError(
            f"line {line[1]} of the file is not like the others: it has more or fewer fields, or a quote that does not "
            "end (not shown); mend that line"
        )
    if "error when sniffing file" in text:
        return JobError(MALFORMED)
    if (told := next((told for words, told in _INVALID.items() if words in text), None)) is not None:
        return JobError(told)
    if isinstance(error, duckdb.SyntaxException) and "escape string" in str(error).lower():
        return JobError("ESCAPE takes one character, or none; write LIKE … ESCAPE '!'")
    if text.startswith("invalid input error: division by zero"):
        return JobError("a number is divided by zero in the job's SQL or source view; write NULLIF(divisor, 0)")
    kind = InvalidInputError if isinstance(error, duckdb.InvalidInputException) else UnshownError
    return kind(f"the database failed with {type(error).__name__} (its text may hold data and is not shown)")


def _io_error(text: str) -> SqldeidError:
    lower = text.lower()
    if _CHECKSUM in lower:
        return JobError(_DAMAGED)
    if "too many open files" in lower:
        return EngineError("this process may not open more files; raise its limit (ulimit -n)")
    if "not a valid duckdb database" in lower:
        return JobError("the file is not a DuckDB database; give a .duckdb file, a CSV or a Parquet file")
    if "does not exist" in lower:
        return JobError("the database file does not exist")
    if "is a directory" in lower:
        return JobError("the database is a folder, not a file")
    if "lock" in lower:
        return _in_use()
    if "read-only" in lower or "permission denied" in lower:
        return EngineError("the database or its folder cannot be written; use release.into, or mend its permissions")
    return EngineError(f"the database could not read or write a file: {_without_kind(text)}")


def _disk_is_full(text: str) -> bool:
    """Whatever the kind of error: a COMMIT that cannot be written is a TransactionException."""
    return any(words in text.lower() for words in ("no space left", "disk full", "disk quota exceeded"))


def _in_use() -> EngineError:
    return EngineError("the database is in use by another connection or process; close it there, or work on a copy")


def _without_kind(text: str) -> str:
    return text.split(": ", 1)[-1]
