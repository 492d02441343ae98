"""Tell by a URL or the class of a connection which engine serves a database, without importing a driver.

engine      a URL                                   an open connection
duckdb      a path                                  duckdb.DuckDBPyConnection
postgres    postgresql:// or postgres://            psycopg.Connection
spark       sc:// or spark                          pyspark.sql.SparkSession, classic or Connect
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

from sqldeid.engine.offers import NAMES
from sqldeid.errors import EngineError, JobError

if TYPE_CHECKING:
    from sqldeid.engine.duckdb import DuckDBEngine
    from sqldeid.engine.remote import Remote

_SCHEMES = {"postgresql": "postgres", "postgres": "postgres", "sc": "spark"}
_ENDS = re.compile("[/?#]")
_ADDRESS = re.compile(r"@|\b(password|token|user|host)\s*=|^(postgres|postgresql|sc):?/", re.IGNORECASE)
_HARMLESS = ("host", "hostaddr", "port", "dbname", "user", "sslmode", "sslrootcert", "service")
"""Parameters of a URL that say where a server is and who asks, and hold no secret."""
_MODULES = {"duckdb": "duckdb", "_duckdb": "duckdb", "psycopg": "postgres", "pyspark": "spark"}


def dialect_of(database: object) -> str:
    """The engine of what the user names; a path, or anything unknown, is DuckDB's to judge."""
    if isinstance(database, str):
        return "spark" if database == "spark" else _SCHEMES.get(database.partition("://")[0].casefold(), "duckdb")
    for base in type(database).__mro__:
        if found := _MODULES.get(base.__module__.partition(".")[0]):
            return found
    return "duckdb"


def is_foreign(database: object) -> bool:
    """Whether the source is not in DuckDB."""
    return dialect_of(database) != "duckdb"


def shown(database: object) -> str:
    """What a database is called in results and messages: a URL's host and database, never its credentials."""
    if isinstance(database, os.PathLike):
        database = os.fsdecode(database)
    if not isinstance(database, str) or "://" not in database:
        return str(database) if isinstance(database, str) else "connection"
    if not is_foreign(database):
        return database
    scheme, _, rest = database.partition("://")
    credentials = _ENDS.search(rest)
    if credentials is not None and "@" in rest[credentials.start() :]:
        return f"{scheme} (address not shown: in a password write / ? # @ as %2F %3F %23 %40)"
    try:
        parts = urlsplit(database)
        _ = parts.port
        asked = parse_qs(parts.query)
        hosts = parts.netloc.rpartition("@")[2] or ",".join(asked.get("host", []))
        place = f"{hosts}/{unquote(parts.path.lstrip('/'))}".partition(";")[0].rstrip("/")
        named = "" if place else f"/?service={asked['service'][0]}" if "service" in asked else ""
        return f"{parts.scheme}://{place}{named}"
    except ValueError:
        return scheme


def again(database: str) -> str:
    """What names a database once more, on a command line that is printed: its URL without password and token."""
    label = shown(database)
    if dialect_of(database) != "postgres" or "(" in label or "://" not in label:
        return label
    parts = urlsplit(database)
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    asked = [(name, value) for name, value in parse_qsl(parts.query) if name in _HARMLESS and "=" not in value]
    hosts = parts.netloc.rpartition("@")[2]
    query = urlencode(asked, safe="/:,", quote_via=quote)
    return f"{parts.scheme}://{f'{user}@' if user else ''}{hosts}{parts.path}{'?' if query else ''}{query}"


def may_hold_secret(path: str) -> bool:
    """Whether what was given for a path looks like a server's address, which messages must not repeat."""
    return _ADDRESS.search(path) is not None


def open_foreign(database: object, bench: DuckDBEngine) -> Remote:
    """The engine of a database that is not DuckDB's, with its workbench; it has not begun.

    Raises
    ------
    JobError
        If this version has no such engine.
    EngineError
        If its driver is not installed, or the server does not let us in.
    """
    dialect = dialect_of(database)
    try:
        module = import_module(f"sqldeid.engine.{dialect}")
    except ImportError as error:
        missing = error.name or dialect
        if missing == f"sqldeid.engine.{dialect}":
            raise JobError(f"{NAMES[dialect]} is not in this version of sqldeid; give a DuckDB file") from None
        if missing.startswith("sqldeid"):
            raise
        raise EngineError(
            f"{NAMES[dialect]} needs a driver that is not installed here ({missing.partition('.')[0]}); "
            f"pip install 'sqldeid[{dialect}]'"
        ) from None
    return cast("Remote", cast(Any, module).open_source(database, bench))
