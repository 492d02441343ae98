"""What Spark needs and has not, and what it does not do yet, is said before anything runs: no JVM is started here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sqldeid import EngineError, JobError, Options, anonymize
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.spark import SparkEngine
from sqldeid.engine.spark_session import FORMAT, open_session, settings_for, stop_session
from sqldeid.engine.spark_types import column_of
from sqldeid.errors import SqldeidError, UnshownError
from sqldeid.job import Job
from sqldeid.sql import parse_expression
from sqldeid.sql.dialects import write
from sqldeid.sql.unlike import refuse_unlike
from tests.support.cli import run as cli
from tests.support.events import kind_t, laplace
from tests.support.places import ROOT

TOKEN = "hidden-word"
TABLE = {
    "rows_are_persons": True,
    "source": "people",
    "columns": {"sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}},
    "privacy": {"k": 5, "suppression_limit": 0.0},
}


@pytest.fixture
def port() -> Iterator[int]:
    """A port where a server hangs up on whoever calls."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=hang_up, daemon=True).start()
        yield server.getsockname()[1]


def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_server_that_is_down_is_told_without_its_token() -> None:
    url = f"sc://127.0.0.1:{closed_port()}/;token={TOKEN};use_ssl=true"
    with pytest.raises(EngineError, match="no Spark Connect server answers; check host, port") as error:
        anonymize(Job.parse({"tables": {"r": TABLE}}), url)
    assert TOKEN not in str(error.value) and error.value.__cause__ is None


def test_a_server_that_speaks_otherwise_is_told_soon(port: int) -> None:
    with pytest.raises(EngineError, match="it does not speak Spark Connect") as error:
        open_session(f"sc://127.0.0.1:{port}/;token={TOKEN}")
    assert TOKEN not in str(error.value)


@pytest.mark.parametrize("url", ["sc://", "sc://:99999", "sc://a:b:c"])
def test_a_url_that_cannot_be_read(url: str) -> None:
    with pytest.raises((EngineError, JobError), match=r"sc://|no Spark Connect server"):
        open_session(url)


def test_without_the_extra_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(EngineError, match=r"pip install 'sqldeid\[spark\]'"):
        open_session("sc://127.0.0.1:1")


def test_without_java_the_message_says_how_to_get_it(tmp_path: Path) -> None:
    """In a process of its own: where a session is open, as in other tests, no Java is sought."""
    program = f"from {open_session.__module__} import open_session; open_session('spark')"
    bare = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=bare, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode and "EngineError" in done.stderr and "Java 17 or later is needed" in done.stderr


def test_the_command_line_tells_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.toml").write_text(
        '[tables.r]\nsource = "people"\nrows_are_persons = true\n'
        'columns.sex = { role = "quasi-identifying", hierarchy = { suppress = true } }\n'
        "privacy = { k = 5, suppression_limit = 0.0 }\n"
    )
    url = f"sc://127.0.0.1:{closed_port()}/;token={TOKEN}"
    for command in ("anonymize", "verify", "assess"):
        told = tmp_path / "told.json"
        done = cli(capsys, command, url, "--job", tmp_path / "job.toml", "--json", told)
        assert done.code == 1 and TOKEN not in done.out + done.err + told.read_text()
        assert json.loads(told.read_text())["error"]["kind"] == "engine"


class Down:
    """A session whose server is gone."""

    asked = 0

    def sql(self, text: str) -> None:
        self.asked += 1
        raise ConnectionError(f"[Errno 111] Connection refused: {text} {TOKEN}")

    def stop(self) -> None:
        raise ConnectionError


def test_a_server_that_goes_away_is_asked_no_more() -> None:
    session = Down()
    engine = SparkEngine(session, DuckDBEngine(duckdb.connect(), "memory", "main", own=True), "sc://host", own=True)
    for name in ("a", "b"):
        engine.workbench(name)
    with pytest.raises(EngineError, match="the Spark server went away") as error:
        engine.query("SELECT 'canary7f3a'")
    assert TOKEN not in str(error.value) and "canary7f3a" not in str(error.value)
    assert engine.close() is None and session.asked == 1


REFUSED = {
    "frozen": {"release": {"as": "view"}, "tables": {"r": {**TABLE, "view": "computed", "frozen": True}}},
    "computed": {"release": {"as": "view"}, "tables": {"r": {**TABLE, "view": "computed"}}},
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_spark_does_not_do_is_refused_before_it_is_called(what: str) -> None:
    with pytest.raises(JobError, match=r"not on Spark: .*DuckDB"):
        anonymize(Job.parse(REFUSED[what]), f"sc://127.0.0.1:{closed_port()}")


def test_options_that_spark_does_not_have_are_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    options = Options(ledger="l", key_file=tmp_path / "key")
    drawn = {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.4, "epsilon": 2.0, "delta": 0.39}}
    persons = {key: value for key, value in TABLE.items() if key != "rows_are_persons"} | {"person": "id"}
    sampled = Job.parse({"tables": {"r": {**persons, "search": drawn}}})
    (tmp_path / "wards").write_text("w0\n")
    spent = {key: value for key, value in kind_t(privacy=laplace(tmp_path / "wards")).items() if key != "gap_hours"}
    events = Job.parse({"events": {"e": spent}})
    for job, what in ((sampled, "epsilon-safe"), (events, "events")):
        with pytest.raises(JobError, match=f"not on Spark: --ledger with {what}; DuckDB can"):
            anonymize(job, "sc://127.0.0.1:1", options=options)


@pytest.mark.parametrize(
    ("type_", "spelt", "kind"),
    [
        ("decimal(10,2)", "DECIMAL(10, 2)", "number"),
        ("varchar(20)", "VARCHAR", "text"),
        ("string", "VARCHAR", "text"),
        ("string collate UTF8_LCASE", "STRING COLLATE UTF8_LCASE", "other"),
        ("timestamp", "TIMESTAMP WITH TIME ZONE", "text"),
        ("timestamp_ntz", "TIMESTAMP", "timestamp"),
        ("array<int>", "ARRAY<INT>", "other"),
        ("binary", "BLOB", "other"),
    ],
)
def test_types_are_spelt_as_duckdb_spells_them(type_: str, spelt: str, kind: str) -> None:
    column = column_of("c", type_)
    assert (column.type, column.kind) == (spelt, kind)


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(age / 2 AS INTEGER) = 1",
        "TRUNC(age) = 1",
        "FLOOR(age) = 1",
        "age // 2 = 1",
        "LOG(age) > 1",
        r"name LIKE 'a\%'",
        "EXTRACT(DOW FROM born) = 1",
        "DAYOFWEEK(born) = 1",
        "born + INTERVAL 1 MONTH > DATE '2020-01-31'",
        "5 | 2 & 4 << 1 = 8",
        "LEFT(name, -1) = 'a'",
        "SUBSTR(name, 0, 2) = 'a'",
        "SIGN(age) = 1",
        "EXP(age) > 1",
        "AGE(born, born) IS NULL",
    ],
)
def test_sql_that_spark_reads_otherwise_is_refused(condition: str) -> None:
    with pytest.raises(JobError, match="is not the same on Spark as in DuckDB"):
        refuse_unlike(parse_expression(condition, key="where"), "Spark", key="where")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("age / 2 > 12.2", "(CAST(age AS DOUBLE) / 2 > 12.2)"),
        ("CAST(FLOOR(age / 10) AS BIGINT) = 3", "(CAST(FLOOR(CAST(age AS DOUBLE) / 10) AS BIGINT) = 3)"),
        ("DATE_DIFF('day', came, went) > 3", "(DATEDIFF(DAY, CAST(came AS DATE), CAST(went AS DATE)) > 3)"),
        ("EXTRACT(ISODOW FROM born) = 1", "(CAST(EXTRACT(DAYOFWEEK_ISO FROM born) AS BIGINT) = 1)"),
        ("(age | 2) & 3 = 1", "((age | 2) & 3 = 1)"),
    ],
)
def test_sql_that_spark_reads_as_duckdb_does(condition: str, text: str) -> None:
    tree = parse_expression(condition, key="where")
    refuse_unlike(tree, "Spark", key="where")
    assert write(tree, "spark") == text


@pytest.mark.parametrize(("given", "wanted"), [("csv", "parquet"), ("JSON", "parquet"), ("delta", None), ("", None)])
def test_no_release_is_written_in_a_format_that_loses_null(given: str, wanted: str | None) -> None:
    assert settings_for(given).get(FORMAT) == wanted


@pytest.mark.parametrize(
    ("condition", "kind", "told"),
    [
        ("REMAINDER_BY_ZERO", JobError, "divided by zero"),
        ("BINARY_ARITHMETIC_OVERFLOW", JobError, "out of range"),
        ("USER_RAISED_EXCEPTION", JobError, "an error of its own"),
        ("SCALAR_SUBQUERY_TOO_MANY_ROWS", UnshownError, "not shown"),
    ],
)
def test_what_a_jobs_sql_meets_is_told_without_its_value(condition: str, kind: type[SqldeidError], told: str) -> None:
    from pyspark.errors import PySparkException

    from sqldeid.engine.spark_errors import translate  # needs pyspark, too

    found = translate(PySparkException(f"[{condition}] {TOKEN}", errorClass=condition, messageParameters={}))
    assert type(found) is kind
    assert told in found.message and TOKEN not in found.message


class Classic:
    """A classic session as PySpark 4 has it: asked for its client, it raises what is no AttributeError."""

    stopped = 0

    @property
    def client(self) -> object:
        raise RuntimeError("[ONLY_SUPPORTED_WITH_SPARK_CONNECT]")

    def stop(self) -> None:
        self.stopped += 1


@pytest.mark.parametrize("gone", [False, True])
def test_a_classic_session_is_stopped(gone):
    session = Classic()
    stop_session(session, gone=gone)
    assert session.stopped == 1
