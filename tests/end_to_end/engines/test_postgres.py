"""Postgres' own: connections, rights, names, and whatever can go wrong with a server; nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import pq
from psycopg.types.string import ByteaLoader

from sqldeid import Options, anonymize, assess, verify
from sqldeid.engine import choosing
from sqldeid.errors import EngineError, JobError, SqldeidError, VerificationError
from sqldeid.job import Job
from sqldeid.run import Listener
from tests.support.cli import JOB
from tests.support.cli import run as command_line
from tests.support.failing import until
from tests.support.foreign import InPostgres, bag, in_postgres
from tests.support.sources import INSENSITIVE, SENSITIVE, job, qi, release

COLUMNS = {"sex": qi(), "age": qi({"bands": [5, 10]}), "ward": INSENSITIVE}


def wanted(target: dict[str, Any] | None = None, **more: Any) -> Job:
    return job(target, r=release(COLUMNS, source=more.pop("source", "people"), k=3, limit=0.3, person="id", **more))


@pytest.fixture
def server(postgres_cluster: str) -> Iterator[InPostgres]:
    """A database of its own with people in it."""
    every = range(200)
    with in_postgres(postgres_cluster) as database:
        database.load(
            "people",
            pa.table(
                {
                    "id": pa.array(every, pa.int64()),
                    "sex": ["f" if i % 2 else "m" for i in every],
                    "age": pa.array([20 + (i * 7) % 30 for i in every], pa.int32()),
                    "ward": pa.array([i % 5 for i in every], pa.int32()),
                }
            ),
        )
        yield database


def nothing_changes(server: InPostgres, work: Callable[[], object], kind: type[SqldeidError]) -> SqldeidError:
    """What `work` raises; the catalogue and the source are as before."""
    before, rows = server.catalogue(), bag(server.read("people"))
    with pytest.raises(kind) as raised:
        work()
    assert "hidden-word" not in str(raised.value)
    assert server.catalogue() == before
    assert bag(server.read("people")) == rows
    return raised.value


def test_an_open_connection_is_left_as_it_was(server: InPostgres) -> None:
    with psycopg.connect(server.address, row_factory=psycopg.rows.dict_row) as c:
        c.execute("SET lock_timeout = '7s'; SET TimeZone = 'Asia/Tokyo'")
        c.commit()
        found = anonymize(wanted(), c)
        assert found.to_dict()["source"] == {"database": "connection", "engine": "postgres"}
        assert (c.autocommit, c.info.transaction_status) == (False, pq.TransactionStatus.IDLE)
        settings = c.execute("SELECT current_setting('lock_timeout') AS l, current_setting('TimeZone') AS z").fetchone()
        assert settings == {"l": "7s", "z": "Asia/Tokyo"}
        assert c.execute("SELECT COUNT(*) AS n FROM pg_class WHERE relname LIKE 'sqldeid%'").fetchone() == {"n": 0}
        c.rollback()
        assert verify(wanted(), c)["r"].k == found.releases["r"].k


def test_statistics_of_a_release_are_as_full_as_the_sessions_own(server: InPostgres) -> None:
    """Our temporary tables are analyzed by a small sample; who queries the release must not pay for that."""
    every = range(600)
    people = {"id": pa.array(every, pa.int64()), "sex": ["f" if i % 2 else "m" for i in every], "age": [30] * 600}
    server.load("wards", pa.table(people | {"ward": pa.array([i % 60 for i in every], pa.int32())}))
    anonymize(wanted({"as": "table", "schema": "out"}, source="wards"), server.database)
    listed = "SELECT CARDINALITY(most_common_freqs) AS n FROM pg_stats WHERE schemaname = 'out' AND attname = 'ward'"
    with psycopg.connect(server.address) as c:
        assert c.execute(listed).fetchone() == (60,)


@pytest.mark.parametrize("kind", ["bool", "int8", "text"])
def test_what_a_user_makes_of_values_is_the_users(server: InPostgres, kind: str) -> None:
    """A loader of the connection's own ended the run: `f` is true, and a type's number was not found as text."""
    with server.connect() as c:
        c.adapters.register_loader(kind, ByteaLoader)
        found = anonymize(wanted(), c)
        assert found.releases["r"].k == verify(wanted(), c)["r"].k
        assert c.execute(f"SELECT CAST('1' AS {kind})".encode()).fetchone() != (1,)


def test_a_database_that_checks_no_encoding(postgres_cluster: str, tmp_path: Path) -> None:
    """SQL_ASCII is what initdb takes in the locale C; psycopg gives text of it as bytes, on which every run ended."""
    with in_postgres(postgres_cluster, "ENCODING 'SQL_ASCII' TEMPLATE template0") as server:
        made = "SELECT i AS id, i % 2 || 'ü' AS sex, i % 5 AS ward FROM generate_series(1, 99) AS i"
        server.run(f"CREATE TABLE people AS {made}")
        columns = {"sex": qi(), "ward": INSENSITIVE}
        asked = job(r=release(columns, source="people", k=3, limit=0.3, person="id"))
        assert anonymize(asked, server.database).releases["r"].classes == 2
        with server.connect() as c:
            assert verify(asked, c)["r"].classes == 2
            assert c.info.encoding == "ascii"
        server.run("UPDATE people SET sex = convert_from('\\x68fc'::bytea, 'SQL_ASCII') WHERE id < 40")
        out = job({"into": str(tmp_path / "out.duckdb")}, r=release(columns, source="people", k=3, person="id"))
        found = nothing_changes(server, lambda: anonymize(out, server.database), JobError)
        assert not any(tmp_path.iterdir())
        assert "a text of the source cannot be read as UTF-8 (not shown)" in found.message


def test_a_connection_serves_one_run_at_a_time(server: InPostgres) -> None:
    """The second one was told to commit what the first one had begun."""
    refusals: list[str] = []

    def nested(release: str, step: str) -> None:
        for run in (anonymize, verify):
            with pytest.raises(JobError) as raised:
                run(wanted({"schema": "other"}), c)
            refusals.append(raised.value.message)

    with server.connect() as c:
        assert anonymize(wanted(), c, listener=Listener(step=nested)).releases["r"].released
        assert {text.partition(";")[0] for text in refusals} == {
            "another run of sqldeid uses this connection, which has one transaction"
        }
        assert anonymize(wanted({"schema": "other"}), c).releases["r"].released


def test_a_pipeline_is_refused(server: InPostgres) -> None:
    with server.connect() as c, c.pipeline(), pytest.raises(JobError, match="pipeline mode"):
        anonymize(wanted(), c)


def test_a_busy_or_closed_connection_is_refused(server: InPostgres) -> None:
    with psycopg.connect(server.address) as c:
        c.execute("SELECT 1")
        with pytest.raises(JobError, match="open transaction"):
            anonymize(wanted(), c)
    with pytest.raises(JobError, match="closed"):
        anonymize(wanted(), c)


def test_replacing_keeps_grants_and_whoever_reads_meanwhile(server: InPostgres) -> None:
    for kind in ("table", "view"):
        target = {"as": kind, "schema": f"of_{kind}"}
        role = f"reader_{server.dbname}_{kind}"
        anonymize(wanted(target), server.database)
        server.run(
            f"CREATE ROLE {role}",
            f"GRANT USAGE ON SCHEMA of_{kind} TO {role}",
            f"GRANT SELECT ON of_{kind}.r TO {role}",
            f"GRANT SELECT (age), UPDATE (ward) ON of_{kind}.r TO PUBLIC",
        )
        with pytest.raises(JobError, match="--replace"):
            anonymize(wanted(target), server.database)
        seen: list[int] = []

        def look(release: str, step: str, kind: str = kind, seen: list[int] = seen) -> None:
            seen.append(len(server.read(f"of_{kind}.r")))

        anonymize(
            wanted(target),
            server.database,
            options=Options(replace=True, without_ledger=True),
            listener=Listener(step=look),
        )
        assert len(seen) > 3 and min(seen) > 0
        with server.connect() as c:
            c.execute(f"SET ROLE {role}".encode())
            assert c.execute(f"SELECT COUNT(*) FROM of_{kind}.r".encode()).fetchone() != (0,)
            if kind == "view":
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    c.execute("SELECT * FROM of_view.r__snapshot")
            rights = c.execute(
                "SELECT privilege_type, column_name FROM information_schema.column_privileges "
                "WHERE table_name = 'r' AND table_schema = %s AND grantee = 'PUBLIC'",
                [f"of_{kind}"],
            ).fetchall()
        assert set(rights) == {("SELECT", "age"), ("UPDATE", "ward")}
        server.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_the_order_of_rows_says_nothing_beyond_their_content(server: InPostgres) -> None:
    seen = []
    for order in ("id", "-id", "md5(id::text)"):
        server.run("DROP TABLE IF EXISTS shuffled", f"CREATE TABLE shuffled AS SELECT * FROM people ORDER BY {order}")
        anonymize(wanted(source="shuffled"), server.database, options=Options(replace=True, without_ledger=True))
        with server.connect() as c:
            seen.append(c.execute("SELECT sex, age, ward FROM release.r ORDER BY ctid").fetchall())
    assert seen[0] == seen[1] == seen[2]


def test_a_view_is_a_barrier(server: InPostgres) -> None:
    anonymize(wanted({"as": "view"}), server.database)
    with server.connect() as c:
        row = c.execute("SELECT reloptions FROM pg_class WHERE relname = 'r' AND relkind = 'v'").fetchone()
    assert row == (["security_barrier=true"],)


def test_what_sqldeid_did_not_make_is_never_replaced(server: InPostgres) -> None:
    server.run("CREATE SCHEMA release", "CREATE TABLE release.r (a INTEGER)")
    found = nothing_changes(
        server,
        lambda: anonymize(wanted(), server.database, options=Options(replace=True, without_ledger=True)),
        JobError,
    )
    assert "was not made by sqldeid" in found.message


def test_a_release_that_others_read_is_not_dropped_under_them(server: InPostgres) -> None:
    anonymize(wanted(), server.database)
    server.run("CREATE VIEW theirs AS SELECT * FROM release.r")
    options = Options(replace=True, without_ledger=True)
    found = nothing_changes(server, lambda: anonymize(wanted(), server.database, options=options), EngineError)
    assert "depend on the release" in found.message


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"target": {"as": "view"}, "view": "computed", "frozen": True}, "computed"),
    ],
    ids=str,
)
def test_what_postgres_cannot_do_is_refused_first(part: dict[str, Any], told: str) -> None:
    """No server is needed to say so."""
    options = {name: value for name, value in part.items() if name != "target"}
    parsed = wanted(part.get("target"), **options)
    with pytest.raises(JobError, match=f"not on Postgres: .*{told}.*; DuckDB .*can"):
        anonymize(parsed, "postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "condition",
    [
        "ROUND(age / 3) > 2",
        "DATE_DIFF('month', DATE '2020-01-31', DATE '2020-01-01') = 0",
        "TRY_CAST(sex AS INTEGER) > 1",
        "DATE_TRUNC('month', DATE '2020-01-31') > DATE '2020-01-01'",
        "EXTRACT(EPOCH FROM DATE '2020-01-31') > 1.5",
        "age // 7 = 3",
        "SIGN(age) = 1",
        "QUARTER(DATE '2020-01-31') = 1",
        "HOUR(TIMESTAMP '2020-01-31 05:00:00') = 5",
        "CONTAINS(sex, 'f')",
    ],
)
def test_sql_that_postgres_reads_otherwise(server: InPostgres, condition: str) -> None:
    with pytest.raises(JobError, match="is not the same on Postgres as in DuckDB"):
        anonymize(wanted(where=condition), server.database)


def test_sql_that_postgres_does_not_have(server: InPostgres) -> None:
    with pytest.raises(
        JobError, match=r"tables\.r\.where: function century\(date\) does not exist .*as Postgres reads it"
    ):
        anonymize(wanted(where="CENTURY(DATE '2020-01-31') > age"), server.database)
    with pytest.raises(JobError, match="Postgres"):
        anonymize(wanted(source={"query": "SELECT * EXCLUDE (ward), 1 AS ward FROM people"}), server.database)


@pytest.mark.parametrize("kind", ["tsquery", "regtype"])
def test_a_value_that_a_view_casts_is_not_told(server: InPostgres, kind: str) -> None:
    """Postgres quotes it in an error of the states that errors of statements have."""
    server.run(f"CREATE VIEW cast_there AS SELECT *, CAST('hidden-word ' || ward AS {kind})::TEXT AS asked FROM people")
    asked = job(r=release(COLUMNS | {"asked": INSENSITIVE}, source="cast_there", k=3, limit=0.3, person="id"))
    found = nothing_changes(server, lambda: anonymize(asked, server.database), JobError)
    assert found.key.startswith("tables.r") and "not shown" in found.message


def test_options_that_postgres_does_not_have(tmp_path: Path) -> None:
    """Refused before a server is asked: there is none."""
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    drawn = {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.4, "epsilon": 2.0, "delta": 0.39}}
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    with pytest.raises(JobError, match="not on Postgres: --ledger with epsilon-safe"):
        anonymize(wanted(search=drawn), nowhere, options=Options(ledger=tmp_path / "ledger", key_file=tmp_path / "key"))


def test_names_that_postgres_would_cut(server: InPostgres) -> None:
    long = {"schema": "ä" * 40}
    found = nothing_changes(server, lambda: anonymize(wanted(long), server.database), JobError)
    assert "63 bytes" in found.message


def test_another_server_altogether() -> None:
    with pytest.raises(JobError, match="mysql: is not an engine") as raised:
        anonymize(wanted(), "mysql://sqldeid:hidden-word@host/none")
    assert "hidden-word" not in str(raised.value)


TYPED = """CREATE TABLE typed AS
    SELECT i AS id, (ARRAY['low', 'high'])[1 + i % 2]::grade AS grade, (i % 3)::small AS small,
           ('x' || i % 2)::char(5) AS code,
           '2020-01-01 12:00+00'::timestamptz + i % 2 * interval '1 day' AS at, (i % 2)::numeric(4, 1) AS rate,
           ('12:00'::time + i % 2 * interval '1 hour') AS hour, md5((i % 2)::text)::uuid AS uid,
           json_build_object('a', i % 2) AS doc, ARRAY[i % 2, NULL] AS list, (i % 2)::numeric AS bare,
           ('10.0.0.' || i % 2)::inet AS address, 'NaN'::float8 AS nan, i % 2 * interval '1 month' AS span
    FROM generate_series(1, 60) AS g(i)"""


def test_types_of_postgres(server: InPostgres) -> None:
    """An enumeration leaves as text, for its type lists every value; what has no order or no equality leaves, too."""
    server.run("CREATE TYPE grade AS ENUM ('low', 'high', 'never seen')", "CREATE DOMAIN small AS smallint", TYPED)
    leaving = ("doc", "list", "bare", "address", "nan", "span")
    columns = {c: qi() for c in ("grade", "small", "code", "at", "rate", "hour", "uid")}
    for text in (False, True):
        typed = release(columns | dict.fromkeys(leaving, INSENSITIVE), source="typed", k=10, person="id", text=text)
        target = {"schema": f"typed_{text}"}
        found = anonymize(job(target, r=typed), server.database).releases["r"]
        assert set(found.node.values()) == {0}
        assert verify(job(target, r=typed), server.database)["r"].released == 60
        with server.connect() as c:
            rows = c.execute(
                "SELECT column_name, udt_name FROM information_schema.columns WHERE table_schema = %s",
                [target["schema"]],
            ).fetchall()
        types = dict(rows)
        assert types["grade"] in ("text", "varchar")
        assert (types["doc"], types["list"], types["uid"]) == ("json", "_int4", "text" if text else "uuid")
    for name, kind in (("bare", "NUMERIC"), ("doc", "JSON"), ("list", r"INTEGER\[\]"), ("address", "INET")):
        with pytest.raises(JobError, match=f"type {kind} cannot be quasi-identifying"):
            anonymize(job({}, r=release({name: qi()}, source="typed")), server.database)


def test_types_that_are_made_of_others_are_refused(server: InPostgres) -> None:
    """A field's ENUM lists values that no row holds; whoever is given a release reads them."""
    server.run(
        "CREATE TYPE feeling AS ENUM ('u', 'v', 'never seen')",
        "CREATE TYPE comp AS (a feeling, b integer)",
        "CREATE TYPE feelings AS RANGE (SUBTYPE = feeling)",
        "CREATE TABLE made AS SELECT i AS id, i % 3 AS age, ROW('u', 1)::comp AS one, "
        "ARRAY[ROW('u', 1)::comp] AS many, feelings('u', 'v') AS range, int4range(1, 3) AS plain "
        "FROM generate_series(1, 60) AS g(i)",
    )
    known = {"age": qi()}
    for name in ("one", "many", "range"):
        with pytest.raises(JobError, match=rf"{name}: its type composite \S+ is made of others"):
            anonymize(job({}, r=release({**known, name: INSENSITIVE}, source="made", person="id")), server.database)
        as_text = {"query": f"SELECT id, age, CAST({name} AS text) AS {name} FROM made"}
        told = job({"schema": f"made_{name}"}, r=release({**known, name: INSENSITIVE}, source=as_text, person="id"))
        assert anonymize(told, server.database).releases["r"].released == 60
    plain = job({"schema": "made_plain"}, r=release({**known, "plain": INSENSITIVE}, source="made", person="id"))
    assert anonymize(plain, server.database).releases["r"].released == 60


@pytest.mark.parametrize("kind", ["table", "view"])
def test_domains_leave_as_what_they_are_made_from(server: InPostgres, kind: str) -> None:
    """A domain's rules and default may list values that no row shows; whoever is given a release reads them."""
    server.run(
        "CREATE DOMAIN inner_ward AS varchar(9) CHECK (VALUE IN ('a', 'b', 'never seen'))",
        "CREATE DOMAIN ward AS inner_ward COLLATE \"C\" DEFAULT 'not seen either'",
        "CREATE DOMAIN wards AS inner_ward[]",
        "CREATE DOMAIN price AS numeric(6, 2) NOT NULL",
        "CREATE TABLE domains AS SELECT i AS id, (ARRAY['a', 'b'])[1 + i % 2]::ward AS ward, (i % 3)::price AS price, "
        "ARRAY['a', 'b']::wards AS wards FROM generate_series(1, 60) AS g(i)",
    )
    columns = {"ward": qi(), "price": SENSITIVE, "wards": INSENSITIVE}
    target = {"schema": f"no_domain_{kind}", "as": kind}
    asked = job(target, r=release(columns, source="domains", k=10, person="id"))
    anonymize(asked, server.database)
    assert verify(asked, server.database)["r"].released == 60
    with server.connect() as c:
        types = dict(
            c.execute(
                "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a "
                "WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0",
                [f"{target['schema']}.r"],
            ).fetchall()
        )
    assert types == {"ward": "character varying(9)", "price": "numeric(6,2)", "wards": "character varying(9)[]"}
    if kind == "table":
        server.run(f"ALTER TABLE {target['schema']}.r ALTER COLUMN ward TYPE ward")
        with pytest.raises(VerificationError, match=r"the column ward of .* has a domain that no run wrote"):
            verify(asked, server.database)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("role", ["quasi-identifying", "sensitive"])
@pytest.mark.parametrize("value", ["DATE 'infinity'", "DATE '12000-01-01'", "TIMESTAMP '0044-03-15 BC'"])
def test_a_date_that_does_not_travel_is_told_by_its_column(server: InPostgres, value: str, role: str) -> None:
    server.run(f"CREATE TABLE odd AS SELECT id, sex, age, CASE WHEN id = 7 THEN {value} END AS x FROM people")
    columns = {"sex": qi(), "age": INSENSITIVE, "x": qi() if role == "quasi-identifying" else {"role": role}}
    asked = release(columns, source="odd", k=3, limit=0.3)
    asked["privacy"] |= {"l_diversity": [{"column": "x", "l": 2}]} if role == "sensitive" else {}
    with pytest.raises(JobError, match=r"tables\.r\.columns\.x: holds a date or time .* the years 1 to 9999") as found:
        anonymize(job({}, r=asked), server.database)
    assert found.value.key == "tables.r.columns.x"


def test_no_server(tmp_path: Path) -> None:
    for url in ("postgresql://sqldeid:hidden-word@127.0.0.1:1/none", f"postgresql:///none?host={tmp_path}"):
        with pytest.raises(EngineError, match="no server answers") as raised:
            anonymize(wanted(), url)
        assert "hidden-word" not in str(raised.value)
    with pytest.raises(JobError, match="the URL cannot be read") as unread:
        anonymize(wanted(), "postgresql://sqldeid:hidden-word@host/none?no_such_option=1")
    assert "hidden-word" not in str(unread.value)


def loaded(server: InPostgres) -> datetime:
    """When the server read its configuration, as a new session of it knows."""
    [(at,)] = server.read("(SELECT pg_conf_load_time()) AS s")
    assert isinstance(at, datetime)
    return at


def test_wrong_password_and_database(server: InPostgres, postgres_cluster: str) -> None:
    folder = Path(dict(part.split("=") for part in postgres_cluster.split())["host"])
    rules = folder / "data" / "pg_hba.conf"
    before, since = rules.read_text(), loaded(server)
    locked = f"locked_{server.dbname}"
    server.run(f"CREATE ROLE {locked} LOGIN PASSWORD 'the%20right'")
    try:
        rules.write_text(f"local all {locked} scram-sha-256\n{before}")
        server.run("SELECT pg_reload_conf()")
        until(lambda: loaded(server) > since)
        with pytest.raises(EngineError, match="refuses the user or the password") as raised:
            anonymize(wanted(), f"postgresql://{locked}:hidden-word@/{server.dbname}?host={folder}")
        assert "hidden-word" not in str(raised.value) and locked not in str(raised.value)
        with pytest.raises(EngineError, match="does not allow it: permission denied"):
            anonymize(wanted(), f"postgresql://{locked}:the%2520right@/{server.dbname}?host={folder}")
    finally:
        rules.write_text(before)
        server.run("SELECT pg_reload_conf()", f"DROP ROLE {locked}")
    with pytest.raises(EngineError, match="no such database"):
        anonymize(wanted(), server.database.replace(server.dbname, "nowhere"))


def test_the_driver_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for module in [m for m in sys.modules if m.startswith("sqldeid.engine.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(EngineError, match=r"pip install 'sqldeid\[postgres\]'"):
        anonymize(wanted(), "postgresql://host/db")


@pytest.mark.parametrize("at", ["folding the source", "searching the lattice", "verifying what was written"])
def test_the_session_is_ended_midway(server: InPostgres, at: str) -> None:
    def end(release: str, step: str) -> None:
        if step == at:
            server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sqldeid'")

    listener = Listener(step=end)
    found = nothing_changes(server, lambda: anonymize(wanted(), server.database, listener=listener), EngineError)
    assert "went away" in found.message


def test_a_table_that_is_read_cannot_be_dropped_meanwhile(server: InPostgres) -> None:
    tried: list[str] = []

    def drop(release: str, step: str) -> None:
        if step == "folding the source":
            with pytest.raises(psycopg.errors.LockNotAvailable):
                server.run("SET lock_timeout = '50ms'", "DROP TABLE people")
            tried.append(step)

    assert anonymize(wanted(), server.database, listener=Listener(step=drop)).releases["r"].released
    assert tried


def test_a_table_that_others_hold(server: InPostgres) -> None:
    with server.connect() as c:
        c.execute("BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
        url = f"{server.database}&options=-c%20lock_timeout%3D100ms"
        with pytest.raises(EngineError, match="stayed locked"):
            anonymize(wanted(), url)


SLOW = "CREATE VIEW slow AS SELECT * FROM people WHERE pg_sleep(CASE WHEN id = 100 THEN 300 ELSE 0 END) IS NOT NULL"


def _while_it_runs(server: InPostgres, statement: str) -> threading.Thread:
    """Do something to the run's session once it is in its slow statement."""

    def done() -> bool:
        with server.connect() as c:
            found = c.execute(
                f"SELECT {statement} FROM pg_stat_activity "
                "WHERE application_name = 'sqldeid' AND state = 'active' AND wait_event = 'PgSleep'".encode()
            ).fetchall()
        return bool(found)

    thread = threading.Thread(target=until, args=(done,))
    thread.start()
    return thread


def test_a_statement_is_cancelled(server: InPostgres) -> None:
    server.run(SLOW)
    thread = _while_it_runs(server, "pg_cancel_backend(pid)")
    slow = wanted(source={"query": "SELECT * FROM slow"})
    found = nothing_changes(server, lambda: anonymize(slow, server.database), EngineError)
    thread.join()
    assert "cancelled" in found.message


def test_a_view_that_writes_is_stopped(server: InPostgres) -> None:
    server.run(
        "CREATE FUNCTION spy(i BIGINT) RETURNS BIGINT LANGUAGE plpgsql VOLATILE AS "
        "$$ BEGIN INSERT INTO public.people SELECT * FROM public.people LIMIT 1; RETURN i; END $$",
        "CREATE VIEW writes AS SELECT spy(id) AS id, sex, age, ward FROM people",
    )
    found = nothing_changes(server, lambda: anonymize(wanted(source="writes"), server.database), EngineError)
    assert "no view may write" in found.message


def test_ctrl_c(server: InPostgres, tmp_path: Path) -> None:
    server.run(SLOW)
    (tmp_path / "job.toml").write_text(
        """[tables.r]\nsource = { query = "SELECT * FROM slow" }\nperson = "id"\n[tables.r.columns.sex]\n"""
        """role = "quasi-identifying"\nhierarchy = { suppress = true }\n[tables.r.privacy]\nk = 3\n"""
    )
    before = server.catalogue()
    run = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from sqldeid.cli import main; main()",
            "anonymize",
            server.database,
            "--job",
            str(tmp_path / "job.toml"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    _while_it_runs(server, "1").join()
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=300)[1]
    assert run.returncode == 130, said
    assert "nothing was published" in said and "Traceback" not in said and "hidden-word" not in said
    assert server.catalogue() == before


def test_verify_says_what_was_tampered_with(server: InPostgres) -> None:
    anonymize(wanted(), server.database)
    server.run("UPDATE release.r SET sex = 'x' WHERE ctid IN (SELECT ctid FROM release.r LIMIT 1)")
    with pytest.raises(VerificationError):
        verify(wanted(), server.database)
    server.run("DROP TABLE release.r")
    with pytest.raises(VerificationError, match="is not there"):
        verify(wanted(), server.database)


def test_names_by_case(server: InPostgres) -> None:
    server.run('CREATE TABLE "People" AS SELECT * FROM people')
    assert assess(wanted(source="People"), server.database)["r"].class_sizes
    with pytest.raises(JobError, match="but for case"):
        assess(wanted(source="PEOPLE"), server.database)
    with pytest.raises(JobError, match="no table or view nobody"):
        assess(wanted(source="nobody"), server.database)


def test_a_temporary_table_of_the_session_is_what_its_name_means(server: InPostgres) -> None:
    """As to every statement of the session: not the table of the same name that others see."""
    with server.connect() as c:
        c.execute("CREATE TEMPORARY TABLE people AS SELECT id, 'f' AS sex, age, ward FROM people")
        for source in ("people", {"query": "SELECT * FROM people"}):
            anonymize(wanted(source=source), c, options=Options(replace=True, without_ledger=True))
            assert {row[0] for row in c.execute("SELECT DISTINCT sex FROM release.r").fetchall()} == {"f"}


HIDDEN = "postgresql (address not shown: in a password write / ? # @ as %2F %3F %23 %40)"


@pytest.mark.parametrize("given", ["host=h password=pass", "postgres:/u:pass@h/x", "sc:/h;token=pass", "x/u:pass@h"])
@pytest.mark.parametrize("command", [("anonymize", "{}", "--job", "job.toml"), ("demo", "adult", "{}/x")])
def test_what_may_hold_a_password_is_not_repeated(
    given: str,
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    ran = command_line(capsys, *(part.format(given) for part in command))
    assert ran.code == 2 and "not shown" in ran.err
    assert "pass@" not in ran.out + ran.err and "=pass" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("postgresql://user:pass@host:5432/db?sslmode=require", "postgresql://host:5432/db"),
        ("postgresql://user:p%40ss@[::1]/db", "postgresql://[::1]/db"),
        ("postgres:///db?host=/tmp&user=u&password=pass", "postgres:///tmp/db"),
        ("postgresql://u:pass@a@host/db", "postgresql://host/db"),
        ("postgresql://[broken:pass", "postgresql"),
        ("postgresql://u:pass#a@host/db", HIDDEN),
        ("postgresql://u:pass/a@host/db", HIDDEN),
        ("postgresql://host/db?user=u&password=pass@a", HIDDEN),
        ("postgresql://u:pass", "postgresql"),
        ("postgresql:///?service=ward", "postgresql:///?service=ward"),
        ("postgresql://u:pass@/?service=ward&password=pass", "postgresql:///?service=ward"),
        ("postgresql:///x?service=ward", "postgresql:///x"),
        ("postgresql://", "postgresql://"),
        ("sc://host:15002;token=pass", "sc"),
        ("sc://host:15002/;token=pass", "sc://host:15002"),
    ],
)
def test_what_a_url_shows(url: str, label: str) -> None:
    assert choosing.shown(url) == label
