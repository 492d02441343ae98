"""What can go wrong with Postgres, from the command line: one clear line, exit code 1, nothing published, no secret."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sqldeid
from sqldeid.engine.postgres import PostgresEngine
from sqldeid.errors import EngineError
from sqldeid.publish import postgres as publishing
from sqldeid.publish.postgres import InPostgres
from tests.support.cli import Ran
from tests.support.failing import SECRETS, before_method, before_statement, refusal, until
from tests.support.foreign import bag
from tests.support.hospital import Hospital, command, holding, hospital, reload

__all__ = ["command", "hospital"]


@dataclass
class Failing:
    """Runs that must fail with code 1, one line, the same in `--json`, and nothing changed."""

    hospital: Hospital
    command: Callable[..., Ran]

    def __call__(self, *arguments: object, **more: str) -> str:
        before = self.hospital.everything()
        done = self.command(*arguments, **more)
        return self.judge(done, before)

    def judge(self, done: Ran, before: list[str]) -> str:
        self.hospital.server.start() if not (self.hospital.server.data / "postmaster.pid").exists() else None
        error = refusal(done)
        assert error["kind"] == "engine"
        assert self.hospital.everything() == before
        return str(error["message"])


@pytest.fixture
def failing(hospital: Hospital, command: Callable[..., Ran]) -> Failing:
    return Failing(hospital, command)


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Have something happen once, just before a statement of a template, or before a release is published."""

    def plan(what: str, action: Callable[[], object]) -> None:
        if what in ("publish", "commit"):
            before_method(monkeypatch, InPostgres if what == "publish" else PostgresEngine, what, action)
        else:
            before_statement(monkeypatch, what, action)

    return plan


END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sqldeid'"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("at", ["tables/fold/fold_classes", "publish"])
def test_the_server_stops_midway(at: str, hospital: Hospital, failing: Failing, before: Any) -> None:
    before(at, hospital.server.stop)
    assert "went away or ended the session" in failing()


def test_the_session_is_ended_while_it_publishes(hospital: Hospital, failing: Failing, before: Any) -> None:
    before("publish", lambda: hospital.run(END))
    assert "run again when it is back; nothing was published" in failing(as_="view")


def test_the_session_is_ended_just_before_it_commits(hospital: Hospital, failing: Failing, before: Any) -> None:
    """Whether a commit that got no answer was done, nobody knows here."""
    before("commit", lambda: hospital.run(END))
    said = failing()
    assert "see with verify whether it is there" in said and "nothing was published" not in said


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://worker:hidden-word@127.0.0.1:1/postgres", "no server answers there"),
        ("postgresql://worker:not-hidden-word@127.0.0.1:{port}/postgres", "refuses the user or the password"),
        ("postgresql://worker@127.0.0.1:{port}/postgres", "a service and ~/.pgpass, as PGUSER and PGPASSWORD"),
        ("postgresql://worker@127.0.0.1:{port}/postgres?password=not-hidden-word", "refuses the user or the password"),
        ("postgresql://nobody:hidden-word@127.0.0.1:{port}/postgres", "refuses the user or the password"),
        ("postgresql://worker:hidden-word@127.0.0.1:{port}/none", "no such database"),
        ("postgresql://worker:hidden-word@127.0.0.1:{port}/postgres?sslmode=require", "not be made secure as sslmode"),
    ],
)
def test_a_server_that_does_not_let_us_in(url: str, told: str, hospital: Hospital, failing: Failing) -> None:
    said = failing(url=url.format(port=hospital.server.port))
    assert told in said and "worker" not in said and "postgresql://127.0.0.1:" in said


def test_a_password_of_the_environment(
    hospital: Hospital, command: Any, failing: Failing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql://worker@127.0.0.1:{hospital.server.port}/postgres"
    monkeypatch.setenv("PGPASSWORD", "not-hidden-word")
    assert "refuses the user or the password" in failing(url=url)
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert "sslmode" in failing(url=url)
    monkeypatch.delenv("PGSSLMODE")
    (tmp_path / "pass").write_text("127.0.0.1:*:*:worker:hidden-word\n")
    (tmp_path / "pass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    done = command("--report", "report.html", url=url)
    assert done.code == 0, done.err
    noted = hospital.read("SELECT obj_description('out.r'::regclass, 'pg_class')")
    report = (tmp_path / "report.html").read_text()
    assert not [word for word in SECRETS if word in report + str(noted)]


def test_a_server_with_tls(hospital: Hospital, command: Any, failing: Failing, before: Any) -> None:
    data = hospital.server.data
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = ["-subj", "/CN=127.0.0.1", "-keyout", str(data / "server.key"), "-out", str(data / "server.crt")]
    subprocess.run(["openssl", *made, *files], check=True, capture_output=True)
    owner = data.stat()
    for name in ("server.key", "server.crt"):
        os.chown(data / name, owner.st_uid, owner.st_gid)
        (data / name).chmod(0o600)
    hospital.run("ALTER SYSTEM SET ssl = on")
    reload(hospital)
    asked = (
        "SELECT s.ssl FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid) WHERE application_name = 'sqldeid'"
    )
    seen: list[Any] = []
    before("tables/fold/fold_classes", lambda: seen.append(hospital.read(asked)))
    try:
        assert command(url=f"{hospital.url}?sslmode=require").code == 0
        assert seen == [[(True,)]]
        said = failing("--replace", url=f"{hospital.url}?sslmode=verify-full&sslrootcert={data.parent}/none.crt")
        assert "see sslmode and sslrootcert" in said
    finally:
        hospital.run("ALTER SYSTEM RESET ssl")
        reload(hospital)


def test_a_table_that_is_dropped(hospital: Hospital, command: Any, failing: Failing, before: Any) -> None:
    """Before the run, with code 2, since the job is wrong; between the catalogue and the first look at it, with 1."""
    hospital.run("CREATE TABLE going AS SELECT * FROM people", "GRANT SELECT ON going TO worker")
    columns = PostgresEngine.columns

    def drops(self: PostgresEngine, relation: Any, *, key: str = "") -> Any:
        hospital.run("DROP TABLE IF EXISTS going")
        return columns(self, relation, key=key)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PostgresEngine, "columns", drops)
        there = hospital.everything()
        done = command(source='"going"')
    said = failing.judge(done, [line for line in there if "'going'" not in line])
    assert "no longer there; somebody dropped or renamed it" in said
    missing = command(source='"going"')
    assert missing.code == 2 and "there is no table or view going in the database; it has public.people" in missing.err


def test_tables_that_others_hold(hospital: Hospital, command: Any, failing: Failing) -> None:
    impatient = f"{hospital.url}?options=-c%20lock_timeout%3D50ms"
    with holding(hospital, "LOCK TABLE people IN ACCESS EXCLUSIVE MODE"), hospital.connect() as c:
        done = command(url=impatient)
        assert c.execute("SELECT to_regnamespace('out')").fetchone() == (None,)
    assert done.code == 1 and "public.people: stayed locked by session " in done.err
    assert command().code == 0
    with holding(hospital, "LOCK TABLE out.r IN ACCESS SHARE MODE"):
        assert "out.r: stayed locked by session " in failing("--replace", url=impatient)


def test_a_release_that_others_read_is_waited_for_and_the_waiting_cancelled(
    hospital: Hospital, command: Any, failing: Failing
) -> None:
    assert command().code == 0
    waiting = "FROM pg_stat_activity WHERE application_name = 'sqldeid' AND wait_event_type = 'Lock'"

    def cancel() -> None:
        until(lambda: hospital.read(f"SELECT 1 {waiting}"))
        hospital.run(f"SELECT pg_cancel_backend(pid) {waiting}")

    with holding(hospital, "LOCK TABLE out.r IN ACCESS SHARE MODE"):
        thread = threading.Thread(target=cancel)
        thread.start()
        assert "cancelled at the server" in failing("--replace")
        thread.join()


def test_a_statement_that_takes_too_long(hospital: Hospital, failing: Failing) -> None:
    hospital.run("CREATE VIEW slow AS SELECT * FROM people WHERE id < 200 OR pg_sleep(60) IS NOT NULL")
    hospital.run("GRANT SELECT ON slow TO worker")
    url = f"{hospital.url}?options=-c%20statement_timeout%3D500ms"
    assert "by its statement_timeout: run again, with more time" in failing(source='"slow"', url=url)
    hospital.run("DROP VIEW slow")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("53100", "disk is full"),
        ("53200", "ran out of memory"),
        ("53400", "temp_file_limit"),
        ("40001", "run again"),
        ("40P01", "run again"),
        ("57014", "cancelled at the server"),
        ("25P04", "time-out of its own"),
        ("57P01", "went away"),
        ("XX001", "its text may hold data and is not shown"),
        ("42501", "InsufficientPrivilege, whose text may hold data and is not shown"),
    ],
)
def test_what_the_server_says_is_translated(state: str, told: str, hospital: Hospital, failing: Failing) -> None:
    """A view whose function fails so, with a value of the source in its text."""
    raising(hospital, state)
    assert told in failing(source='"failed"')


def raising(hospital: Hospital, state: str) -> None:
    hospital.run(
        "CREATE OR REPLACE FUNCTION fails(t TEXT) RETURNS TEXT LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '%', t USING ERRCODE = '{state}', DETAIL = t, HINT = t; END $$",
        "CREATE OR REPLACE VIEW failed AS SELECT id, age, fails(name) AS name FROM people",
        "GRANT SELECT ON failed TO worker",
    )


@pytest.mark.parametrize("state", ["P0001", "23514", "MY001"])
def test_an_error_that_a_view_raises_is_its_own(state: str, hospital: Hospital, command: Callable[..., Ran]) -> None:
    """Of any state: no run mends it, so it is no failure of the database."""
    raising(hospital, state)
    before = hospital.everything()
    done = command(source='"failed"')
    assert done.code == 2 and "stopped with an error of its own" in done.err
    names = [name for (name,) in hospital.read("SELECT DISTINCT name FROM people")]
    assert hospital.everything() == before and not any(name and name in done.err for name in names)


@pytest.mark.parametrize(
    "source", ['"people"', '{ query = "SELECT id, age, name FROM people" }'], ids=["table", "query"]
)
def test_rows_that_change_midway_do_not_matter(source: str, hospital: Hospital, command: Any, before: Any) -> None:
    """The release is that of the snapshot, whatever is inserted, deleted or changed while it is made."""
    assert command(source=source).code == 0
    wanted = bag(hospital.read("SELECT * FROM out.r"))
    hospital.run("CREATE TABLE kept AS SELECT * FROM people")
    change = ("DELETE FROM people WHERE id < 20", "UPDATE people SET age = 20, name = 'new' WHERE id < 60")
    before("tables/fold/fold_classes", lambda: hospital.run(*change))
    before("tables/write/stage_rows", lambda: hospital.run("INSERT INTO people SELECT id + 1000, 99, name FROM kept"))
    before("tables/verify/group_source", lambda: hospital.run("DELETE FROM people"))
    try:
        done = command("--replace", source=source)
        assert done.code == 0, done.err
        assert bag(hospital.read("SELECT * FROM out.r")) == wanted
    finally:
        hospital.run("TRUNCATE people", "INSERT INTO people SELECT * FROM kept", "DROP TABLE kept")


def test_of_two_runs_that_began_together_one_says_so(hospital: Hospital, command: Any, before: Any) -> None:
    """The other one begins when this one has the schema, and looks at what is there."""
    job = sqldeid.Job.parse(
        {
            "release": {"schema": "out"},
            "tables": {
                "r": {
                    "source": "people",
                    "person": "id",
                    "columns": {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [10]}}},
                    "privacy": {"k": 4},
                }
            },
        }
    )
    options = sqldeid.Options(replace=True, without_ledger=True)

    told: list[EngineError] = []

    def other() -> None:
        with pytest.raises(EngineError, match="another run of sqldeid is publishing into the schema out") as refused:
            sqldeid.anonymize(job, hospital.url, options=options)
        told.append(refused.value)

    for replace in ((), ("--replace",)):
        with pytest.MonkeyPatch.context() as patched:
            before_method(patched, publishing, "open_staging", other)
            done = command(*replace)
        there = [
            row[0] for row in hospital.read("SELECT relname FROM pg_class WHERE relnamespace = 'out'::regnamespace")
        ]
        assert there == ["r"]
        assert done.code == 0 and sqldeid.verify(sqldeid.Job.load("job.toml"), hospital.url)["r"].k >= 3
    assert len(told) == 2
    assert sqldeid.anonymize(job, hospital.url, options=options).releases["r"].k >= 4  # nothing is left behind


@pytest.mark.parametrize("as_", ["table", "view"])
def test_nothing_is_written_but_what_is_published(as_: str, hospital: Hospital, command: Any) -> None:
    """A view and a policy whose function writes wherever it may: while the release is staged it may not, either."""
    hospital.run(
        "CREATE TABLE diary (t TEXT)",
        "GRANT INSERT ON diary TO PUBLIC",
        "CREATE FUNCTION spies(i BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN "
        "IF current_setting('transaction_read_only') = 'off' THEN INSERT INTO public.diary VALUES ('read'); END IF; "
        "RETURN i; END $$",
        "CREATE VIEW spied AS SELECT spies(id) AS id, age, name FROM people",
        "CREATE TABLE watched AS SELECT * FROM people",
        "ALTER TABLE watched ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON watched USING (spies(id) > 0)",
        "GRANT SELECT ON spied, watched TO worker",
    )
    try:
        for source in ("spied", "watched"):
            done = command("--replace", source=f'"{source}"', as_=as_)
            assert done.code == 0, done.err
            assert hospital.read("SELECT * FROM diary") == []
            assert len(hospital.read("SELECT * FROM out.r")) == 200
    finally:
        hospital.run("DROP VIEW spied", "DROP TABLE watched, diary", "DROP FUNCTION spies")


def test_functions_operators_and_tables_that_shadow_the_systems(hospital: Hospital, command: Any) -> None:
    """Whatever a schema on the search path calls like the system's own is not used, and its table is not read."""
    assert command().code == 0
    wanted = bag(hospital.read("SELECT * FROM out.r"))
    bad = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'used'; END $$"
    hospital.run(
        "CREATE SCHEMA bad",
        "GRANT USAGE ON SCHEMA bad TO PUBLIC",
        *(f"CREATE FUNCTION bad.{f} RETURNS {t} {bad}" for f, t in SHADOWS),
        "CREATE OPERATOR bad.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = bad.equal)",
        "CREATE OPERATOR bad.>= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = bad.equal)",
        "CREATE TABLE bad.pg_class (relname TEXT)",
        "CREATE TABLE bad.pg_namespace (nspname TEXT)",
        "ALTER ROLE worker SET search_path = bad, public, pg_catalog",
    )
    try:
        done = command("--replace")
        assert done.code == 0, done.err
        assert bag(hospital.read("SELECT * FROM out.r")) == wanted
    finally:
        hospital.run("ALTER ROLE worker RESET search_path", "DROP SCHEMA bad CASCADE")


SHADOWS = (
    ("sum(bigint)", "bigint"),
    ("max(integer)", "integer"),
    ("coalesced(integer)", "integer"),
    ("md5(text)", "text"),
    ("hashtext(text)", "integer"),
    ("set_config(text, text, boolean)", "text"),
    ("current_setting(text)", "text"),
    ("equal(integer, integer)", "boolean"),
    ("equal(bigint, integer)", "boolean"),
)


def test_names_of_tables_schemas_and_roles_are_no_sql(hospital: Hospital) -> None:
    """Source, schema, release, and who had a right on what is replaced."""
    source, schema, release, role = ("pe\"ople'; --", 'o"ut; DROP TABLE people; --', "r'; --", 'ro"le; --')
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in (source, schema, release, role)}
    hospital.run(f"CREATE TABLE {quoted[source]} AS SELECT * FROM people", f"CREATE ROLE {quoted[role]}")
    age = {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [10]}}}
    part = {"source": quoted[source], "person": "id", "columns": age, "privacy": {"k": 3}}
    job = sqldeid.Job.parse({"release": {"schema": schema, "as": "view"}, "tables": {release: part}})
    people = bag(hospital.read("SELECT * FROM people"))
    try:
        with hospital.connect() as c:
            sqldeid.anonymize(job, c)
            c.execute(f"GRANT SELECT ON {quoted[schema]}.{quoted[release]} TO {quoted[role]}".encode())
            sqldeid.anonymize(job, c, options=sqldeid.Options(replace=True, without_ledger=True))
            assert sqldeid.verify(job, c)[release].released == 200
            right = "SELECT has_table_privilege(%s, %s, 'SELECT')"
            assert c.execute(right, [role, f"{quoted[schema]}.{quoted[release]}"]).fetchone() == (True,)
        assert bag(hospital.read("SELECT * FROM people")) == people
    finally:
        hospital.run(
            f"DROP SCHEMA {quoted[schema]} CASCADE", f"DROP TABLE {quoted[source]}", f"DROP ROLE {quoted[role]}"
        )


def test_ctrl_c_just_after_the_commit_does_not_say_that_nothing_was_published(
    hospital: Hospital, command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = PostgresEngine.commit

    def interrupted(engine: PostgresEngine) -> None:
        commit(engine)
        raise KeyboardInterrupt

    monkeypatch.setattr(PostgresEngine, "commit", interrupted)
    error = command()
    assert error.code == 130
    assert error.json["error"]["message"] == "interrupted; the releases were published"
    assert hospital.read("SELECT COUNT(*) > 100 FROM out.r") == [(True,)]


def test_ctrl_c_just_before_the_commit_leaves_nothing(
    hospital: Hospital, command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: PostgresEngine) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PostgresEngine, "commit", interrupted)
    error = command()
    assert error.json["error"]["message"] == "interrupted; nothing was published"
    assert hospital.read("SELECT to_regclass('out.r')") == [(None,)]
