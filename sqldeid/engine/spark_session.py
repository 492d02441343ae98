"""Sessions of Spark: one that is open, one of a Connect server, or one of our own on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqldeid.engine.choosing import shown
from sqldeid.errors import EngineError, JobError

CONNECT_SECONDS = 10
CONNECT_PORT = 15002
_KNOCKS, _TRIES, _WAIT_MILLISECONDS = 3, 10, 4000
"""How often a call is repeated, at first and later, and the longest wait between: a second and half a minute in all.
The client's own 15 are ten minutes."""
EXTRA = "pip install 'sqldeid[spark]'"

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.legacy.createHiveTableByDefault": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.legacy.integralDivide.returnBigint": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
}
"""Settings of a session under which our statements mean what they say; a user's own come back at the end. Without the
fifth a text such as ${env:HOME} would be replaced within a statement."""
UNLESS_SET = {
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.keepCommandOutputSchema": "false",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
}
"""More of them, which a session has unless it was made to behave as an older Spark: numbers such as 3600e0 are no
decimals, lists of schemas and tables have the columns that are read."""

FORMAT = "spark.sql.sources.default"
_LOSSY = ("csv", "json", "text", "xml")
"""Formats of tables that do not tell NULL from an empty text."""

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Of a session of our own on this machine: nothing listens but on loopback, and no page shows statements."""


def settings_for(written_as: str) -> dict[str, str]:
    """The settings of a run in a session whose tables are written in this format: in Parquet instead of a lossy one."""
    return SETTINGS | ({FORMAT: "parquet"} if written_as.casefold() in _LOSSY else {})


def open_session(database: object) -> tuple[Any, str, bool]:
    """The session for a URL, ``spark`` or an open session; what it is called; whether it is ours to stop.

    Raises
    ------
    EngineError
        If PySpark or Java is missing, or no server answers.
    JobError
        If the session is stopped, or what is given is none.
    """
    try:
        import pyspark.sql
    except ImportError:
        raise EngineError(f"Spark needs a package that is not installed: {EXTRA}") from None
    if isinstance(database, str):
        if database == "spark":
            return _own_session(pyspark.sql.SparkSession)
        return _connect(database), shown(database), True
    if _is_stopped(database):
        raise JobError("the Spark session is stopped; open one, and give it while it is open")
    return database, "Spark session", False


def _is_stopped(session: Any) -> bool:
    if not hasattr(session, "createDataFrame"):
        raise JobError("give a pyspark.sql.SparkSession")
    if hasattr(session, "is_stopped"):  # Connect
        return bool(session.is_stopped)
    return session.sparkContext._jsc is None


def _connect(url: str) -> Any:
    """A session of its own on a Connect server; a quick knock first, for the client would try for ten minutes."""
    label = shown(url)
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or CONNECT_PORT
    except ValueError:
        host, port = None, 0
    if not host:
        raise JobError(f"{label}: the URL cannot be read; write sc://host:{CONNECT_PORT}")
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError:
        raise EngineError(f"{label}: no Spark Connect server answers; check host, port, and whether it runs") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas, which nobody uses here
            session = _remote_session(url)
    except ImportError:
        raise EngineError(f"Spark Connect needs packages that are not installed: {EXTRA}") from None
    except Exception as error:  # noqa: BLE001 - gRPC, TLS and PySpark each raise their own; none may show the token
        refused = "UNAUTHENTICATED" in str(error)
        reason = "the server refuses the token" if refused else "it does not speak Spark Connect"
        raise EngineError(f"{label}: {reason}; check the URL's token and use_ssl") from None
    return session


def _remote_session(url: str) -> Any:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession(url)
    session.client.set_retry_policies([DefaultPolicy(max_retries=_KNOCKS)])
    _ = session.version  # the first word with the server
    session.client.set_retry_policies([DefaultPolicy(max_retries=_TRIES, max_backoff=_WAIT_MILLISECONDS)])
    return session


def stop_session(session: Any, *, gone: bool) -> None:
    """Stop a session of our own; where nobody answers any more it is not knocked again."""
    if gone:  # a thread of the client's still tries, and would warn beside our message
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if gone:
            _knock_no_more(session)
        session.stop()


def _knock_no_more(session: Any) -> None:
    """Have a session of Spark Connect try once; a classic one raises where it is asked for its client."""
    with suppress(Exception):
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session.client.set_retry_policies([DefaultPolicy(max_retries=0)])


def _own_session(sessions: Any) -> tuple[Any, str, bool]:
    """The active session of this process (``spark-submit``), else a new one with the settings of the environment."""
    active = sessions.getActiveSession()
    if active is not None:
        return active, "spark", False
    refuse_missing_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sessions.builder.appName("sqldeid").enableHiveSupport()  # else its catalogue would end with it
    if "SPARK_ENV_LOADED" not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ:  # not under spark-submit
        for name, value in LOCAL.items():
            builder = builder.config(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = builder.getOrCreate()
    except Exception as error:  # noqa: BLE001 - whatever keeps a JVM from starting; its text holds paths and settings
        kind = type(error).__name__
        raise EngineError(f"spark: no session could be started ({kind}); try pyspark by itself") from None
    session.sparkContext.setLogLevel("OFF")  # a failed task's text holds values
    return session, "spark", "PYSPARK_GATEWAY_PORT" not in os.environ


def refuse_missing_java() -> None:
    """Refuse to start a session of our own where there is no Java.

    Raises
    ------
    EngineError
        If there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    if "PYSPARK_GATEWAY_PORT" not in os.environ and shutil.which(java) is None:
        raise EngineError(
            "spark: Java 17 or later is needed and was not found in JAVA_HOME or on PATH "
            "(Debian: apt-get install openjdk-17-jre-headless); a server by sc://host:15002 needs none here"
        )


@contextmanager
def silent() -> Iterator[None]:
    """Keep PySpark from writing statements and errors to standard error, and from warning of a pandas nobody uses."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger, disabled in zip(loggers, before, strict=True):
                logger.disabled = disabled
