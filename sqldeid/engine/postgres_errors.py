"""Postgres' errors as ours: what to do, and never a data value or a credential."""

from __future__ import annotations

import re
from collections.abc import Sequence

import psycopg
from psycopg import errors

from sqldeid.errors import NO_COLUMN, OUT_OF_RANGE, RAISED, EngineError, JobError, SqldeidError, UnshownError
from sqldeid.sql import identifier

_TAKEN = (
    "a table or schema of the release's name exists by now: another run made it; see with verify what is there, or run "
    "again with --replace"
)

_TIMED = (
    "the server ended the session by a time-out of its own (transaction_timeout or "
    "idle_in_transaction_session_timeout): allow the user more time, and run again; nothing was published"
)

_NOT_UTF8 = (
    "a text of the source cannot be read as UTF-8 (not shown): a database with the encoding SQL_ASCII checks none, and "
    "another one may have characters that Unicode lacks; mend the text, or leave the row out"
)
_BY_STATE: dict[str, SqldeidError] = {
    "22021": JobError(_NOT_UTF8),
    "22P05": JobError(_NOT_UTF8),
    "22012": JobError("a number is divided by zero in the job's SQL or source view; write NULLIF(divisor, 0)"),
    "25006": EngineError(
        "the server or a view of the source does not allow what a run does: temporary tables need a primary server and "
        "a session that is not read-only (default_transaction_read_only), and no view may write while it is read"
    ),
    "2BP01": EngineError("other views or tables depend on the release that is to be replaced; drop them first"),
    "42P01": EngineError("a table of the source is no longer there; somebody dropped or renamed it"),
    "42P06": EngineError("the release's schema was made by somebody else meanwhile; run again"),
    "42P07": EngineError(_TAKEN),
    "23505": EngineError(_TAKEN),
    "40001": EngineError("somebody else changed what the run was to change; run again"),
    "40P01": EngineError("the run and another session waited for each other, and the server ended ours; run again"),
    "53100": EngineError("the server's disk is full; free some space there, and run again"),
    "53200": EngineError("the server ran out of memory; give it more"),
    "53300": EngineError("the server takes no more connections; run again later"),
    "53400": EngineError("the server allows the user no more space for temporary tables; raise its temp_file_limit"),
    "55P03": EngineError("a table stayed locked by another session for longer than lock_timeout; run again later"),
    "57014": EngineError(
        "a statement was cancelled at the server, by somebody or by its statement_timeout: run again, with more time "
        "where it was the time-out (?options=-c%20statement_timeout%3D1h in the URL); nothing was published"
    ),
    "25P03": EngineError(_TIMED),
    "25P04": EngineError(_TIMED),
}
_GONE = EngineError(
    "the server went away or ended the session while the job ran: run again when it is back; nothing was published"
)


def translate(error: psycopg.Error, role: str = "") -> SqldeidError:
    """Our error for one of Postgres'. Texts that can hold data values are replaced.

    Parameters
    ----------
    role
        As whom the session runs, for a right that is missing; empty where that is not known yet.
    """
    state = error.sqlstate or ""
    if state in _BY_STATE:
        found = _BY_STATE[state]
        return type(found)(found.message)
    if state.startswith(("08", "57P")) or (not state and isinstance(error, psycopg.OperationalError)):
        return type(_GONE)(_GONE.message)
    first = _said(error)
    if isinstance(error, errors.InsufficientPrivilege):
        return EngineError(f"the server does not allow it: {first}; {_given(first, role)}")
    if isinstance(error, errors.UndefinedColumn):
        return JobError(f"{first} (in the job's SQL, as Postgres reads it). {NO_COLUMN}")
    if state.startswith("42"):
        return JobError(f"{first} (in the job's SQL, as Postgres reads it)")
    if state.startswith("22"):
        return JobError(OUT_OF_RANGE)
    if state.startswith("P0") or (not state.startswith("XX") and (error.diag.context or "").startswith("PL/")):
        return JobError(RAISED)  # by RAISE, with a state of any kind
    if state.startswith("0A"):
        return JobError(f"Postgres cannot do this: {first}")
    return UnshownError(f"the database failed with {type(error).__name__} (its text may hold data and is not shown)")


def _said(error: psycopg.Error) -> str:
    """Postgres' own words where they are about a statement, or a right; else the error's name.

    A view's function, or a cast to tsquery or regtype, quotes values of rows in errors of the same states. Those have
    no place in the statement, and a right that is missing is told without the context of a function.
    """
    told, right = error.diag, isinstance(error, errors.InsufficientPrivilege)
    of_statement = told.statement_position is not None or right
    if of_statement and told.context is None and told.message_primary:
        return told.message_primary.strip()
    return f"{type(error).__name__}, whose text may hold data and is not shown"


_GRANTS = {
    r"permission denied for (?:table|view|materialized view|foreign table|relation) (.+)": "SELECT ON {}",
    r"permission denied for schema (.+)": "USAGE (to publish there also CREATE) ON SCHEMA {}",
    r'permission denied to create temporary tables in database "(.+)"': "TEMPORARY ON DATABASE {}",
    r"permission denied for database (.+)": "CREATE ON DATABASE {}",
    r"permission denied for sequence (.+)": "SELECT ON SEQUENCE {}",
}
"""By what Postgres says: the right that is missing. A server that speaks another language is quoted alone."""


def _given(said: str, role: str) -> str:
    """Who needs a right, and the statement that gives it where Postgres' words say which."""
    who = f"the role {role}" if role else "the user"
    if said.startswith("must be owner"):
        return f"{who} must own it: ALTER TABLE … OWNER TO {quoted(role) if role else 'the user'}"
    for pattern, right in _GRANTS.items():
        if (found := re.fullmatch(pattern, said)) is not None:
            also = ", or the owner of the view that reads it," if right.startswith("SELECT") else ""
            return f"{who}{also} needs this right: {granting(right.format(quoted(found[1])), role)}"
    return f"{who} needs this right"


def granting(right: str, role: str) -> str:
    """The statement that gives a role a right; whoever owns the object can run it."""
    return f"GRANT {right} TO {quoted(role) if role else 'the user'}"


def quoted(*names: str) -> str:
    """A name as SQL of Postgres writes it, for a statement that a message shows."""
    return ".".join(identifier(name).sql(dialect="postgres") for name in names)


def locked(tables: Sequence[str], holders: Sequence[int]) -> EngineError:
    """What to say of a lock that did not come: on which tables, as far as known, and which sessions have it."""
    also = "" if holders else " (or a table that a view reads)"
    what = f"{', '.join(tables)}{also}: stayed locked" if tables else "a table stayed locked"
    who = f"session {', '.join(map(str, holders))} (pid)" if holders else "another session"
    ends = (
        f"run again when it is done, or have it ended (SELECT pg_terminate_backend({holders[0]}))"
        if holders
        else "run again later; SELECT relation::regclass, pid, mode FROM pg_locks tells which session has it"
    )
    return EngineError(f"{what} by {who} for longer than lock_timeout; {ends}")


def refused(error: psycopg.Error, label: str) -> EngineError:
    """Why a connection was not made; the driver's text names user and host, and is read, never shown.

    A server that speaks another language than English is not understood. Names are left out of what is read.
    """
    text = re.sub(r'"[^"]*"', '""', str(error).lower())
    for words, reason in _REFUSED.items():
        if any(word in text for word in words):
            return EngineError(f"{label}: {reason}")
    return EngineError(f"{label}: the server does not let us in; try the same with psql")


_LOGIN = (
    "the server refuses the user or the password; give them by a service and ~/.pgpass, as PGUSER and PGPASSWORD, or"
    " in the URL"
)
_REFUSED = {
    ("too many connections for role",): (
        "the user has as many sessions as it may (CONNECTION LIMIT of its role): end one and run again, or have "
        "the limit raised"
    ),
    ("too many", "remaining connection slots"): "the server takes no more connections; run again later",
    ("not permitted to log in",): "the user's role may not log in: ALTER ROLE … LOGIN, or connect as another user",
    ("connect privilege", "permission denied for database"): (
        "the user may not connect to this database: GRANT CONNECT ON DATABASE … TO the user"
    ),
    ("password authentication failed", "no password supplied"): _LOGIN,
    ("pg_hba.conf",): (
        "no line of the server's pg_hba.conf lets this user in from here, or none without TLS (sslmode=require); ask "
        "who runs it"
    ),
    ("role ", "authentication failed"): _LOGIN,
    ("definition of service", "service file"): (
        "the service is not found; write it into ~/.pg_service.conf, or name the file that has it by PGSERVICEFILE"
    ),
    ("ssl", "certificate"): "the connection cannot be made secure as sslmode asks; see sslmode and sslrootcert",
    ("does not exist",): "the server has no such database",
    ("starting up", "shutting down", "recovery"): "the server is starting or stopping; try again",
    (
        *("connection refused", "timeout", "timed out", "could not translate", "no such file", "name or service"),
        *("network is unreachable", "no route", "resolve", "closed the connection", "failed to connect"),
    ): "no server answers there; check host and port, and whether it runs",
}
