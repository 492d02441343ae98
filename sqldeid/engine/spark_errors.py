"""Spark's errors as ours: what to do, and never a data value, a statement or a token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException, PySparkException

from sqldeid.errors import (
    NO_COLUMN,
    OUT_OF_RANGE,
    RAISED,
    EngineError,
    Interrupted,
    JobError,
    SqldeidError,
    UnshownError,
)

try:
    from py4j.protocol import Py4JError
except ImportError:  # the package of the Connect client alone has no gateway
    Py4JError = ConnectionError
try:
    from grpc import RpcError
except ImportError:  # without the extra for Connect
    RpcError = ConnectionError

_INTERRUPTED = "interrupted; nothing was published"
_ZERO = "a number is divided by zero in the job's SQL or source view; write NULLIF(divisor, 0)"
_CONVERSION = OUT_OF_RANGE
_TAKEN = "a table of the release's name exists by now; another run wrote it"
_NAMES = "this Spark's catalogue takes letters, digits and _ alone in names of tables and schemas; rename the release"


class Missing(JobError):
    """A file or folder is not there."""


class NoTable(EngineError):
    """A table or view that was there is not."""


class Gone(EngineError):
    """Nobody answers any more: nothing further is tried."""


_GONE = Gone("the Spark server went away, or ended the session, while the job ran: run again when it is back")
_CANCELLED = EngineError("a statement was cancelled on the server by somebody else: run again")
_LOST = EngineError("Spark lost its executors, more often than it tries again: see there what ends them, and run again")
_LOST_ROWS = EngineError("Spark lost an executor, and what this run kept there cannot be made again: run it again")

_BY_CONDITION: dict[str, SqldeidError] = {
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND": _LOST_ROWS,
    "DIVIDE_BY_ZERO": JobError(_ZERO),
    "REMAINDER_BY_ZERO": JobError(_ZERO),
    "INTERVAL_DIVIDED_BY_ZERO": JobError(_ZERO),
    "CAST_INVALID_INPUT": JobError(_CONVERSION),
    "CAST_OVERFLOW": JobError(_CONVERSION),
    "ARITHMETIC_OVERFLOW": JobError(_CONVERSION),
    "BINARY_ARITHMETIC_OVERFLOW": JobError(_CONVERSION),
    "INTERVAL_ARITHMETIC_OVERFLOW": JobError(_CONVERSION),
    "DATETIME_OVERFLOW": JobError(_CONVERSION),
    "DATETIME_FIELD_OUT_OF_BOUNDS": JobError(_CONVERSION),
    "NUMERIC_VALUE_OUT_OF_RANGE": JobError(_CONVERSION),
    "CANNOT_PARSE_TIMESTAMP": JobError(_CONVERSION),
    "USER_RAISED_EXCEPTION": JobError(RAISED),
    "TABLE_OR_VIEW_NOT_FOUND": NoTable("a table or view is no longer there; somebody dropped or renamed it"),
    "SCHEMA_NOT_FOUND": JobError("a schema that the job names is not there"),
    "PATH_NOT_FOUND": Missing("a file or folder that the job reads is not there, or no longer"),
    "FAILED_READ_FILE": EngineError("files of the source are no longer there or cannot be read; run again"),
    "TABLE_OR_VIEW_ALREADY_EXISTS": EngineError(_TAKEN),
    "LOCATION_ALREADY_EXISTS": EngineError(_TAKEN),
    "INVALID_SCHEMA_OR_RELATION_NAME": JobError(_NAMES),
    "OPERATION_CANCELED": _CANCELLED,
    "SPARK_JOB_CANCELLED": _CANCELLED,
    "INVALID_HANDLE": _GONE,
    "RETRIES_EXCEEDED": _GONE,
    "UNRESOLVED_COLUMN": JobError(f"a column that the job's SQL names is not there. {NO_COLUMN}"),
}
"""By Spark's error condition, or its first part."""


_BY_WORDS: tuple[tuple[str, SqldeidError], ...] = (
    (r"outofmemoryerror|java heap space|out of memory", EngineError("Spark ran out of memory; give it more")),
    (r"no space left on device", EngineError("a disk of Spark is full; free some space there")),
    (r"executorlostfailure|executor lost|exited caused by one of the running", _LOST),
    (r"sparkcontext was shut down|master removed our application", _GONE),
    (r"cancelled|canceled", _CANCELLED),
    (r"filenotfoundexception|file does not exist", EngineError("files of the source are no longer there; run again")),
    (r"unauthenticated|permission_denied", EngineError("the server refuses the token: see the URL's")),
    (r"unavailable|connection refused|socket closed|retriesexceeded", _GONE),
)
"""By words of the error's text, which is read, never shown. It may quote the job: that nobody answers is taken
from errors that have no condition."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise ours for Spark's."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(_INTERRUPTED) from None
    except (PySparkException, RpcError, Py4JError, ConnectionError) as error:
        raise translate(error) from None


def translate(error: Exception) -> SqldeidError:
    """Our error for one of Spark's."""
    condition = condition_of(error)
    for name in (condition, condition.partition(".")[0]):
        if name in _BY_CONDITION:
            return _naming(_copy(_BY_CONDITION[name]), error)
    if isinstance(error, AnalysisException | ParseException):
        return JobError(f"Spark cannot run this SQL of the job ({condition or 'no condition'})")
    text = f"{type(error).__name__} {error}".casefold()
    for words, found in _BY_WORDS:
        if re.search(words, text) and not (found is _GONE and condition):
            return _copy(found)
    if isinstance(error, Py4JError | RpcError | ConnectionError):
        return _copy(_GONE)
    shown = condition or type(error).__name__
    return UnshownError(f"Spark failed with {shown} (its text may hold data and is not shown)")


def condition_of(error: Exception) -> str:
    """Spark's name of what went wrong, such as TABLE_OR_VIEW_NOT_FOUND; empty where it has none."""
    if not isinstance(error, PySparkException):
        return ""
    found = error.getCondition()
    if found is None or found.startswith("_LEGACY"):  # a failure of a task carries its own condition in its text
        inner = re.search(r"\[([A-Z][A-Z_]+(?:\.[A-Z_]+)?)\]", str(error))
        return inner[1] if inner else ""
    return str(found)


def _copy(error: SqldeidError) -> SqldeidError:
    return type(error)(error.message)


def _naming(found: SqldeidError, error: Exception) -> SqldeidError:
    """The error with the table that is gone; a table's name is no data value."""
    parameters = error.getMessageParameters() if isinstance(error, PySparkException) else None
    name = (parameters or {}).get("relationName")
    return NoTable(f"{found.message} ({name.replace('`', '')})") if isinstance(found, NoTable) and name else found
