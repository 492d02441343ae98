"""What Postgres does not give, a session, a right, a lock or an answer to COMMIT: who, what and the mend are named."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from sqldeid import EngineError, Job, anonymize
from sqldeid.engine import postgres_end
from sqldeid.engine.postgres_errors import refused
from tests.support.cli import Ran
from tests.support.failing import refusal, until
from tests.support.hospital import JOB, Hospital, command, hospital, reload

__all__ = ["command", "hospital"]

pytestmark = pytest.mark.xdist_group("postgres-denied")


@pytest.fixture
def role(hospital: Hospital) -> Iterator[str]:
    """One that may connect, and nothing else; its name is one that SQL would read as a word."""
    hospital.run(
        "CREATE ROLE \"select\" LOGIN PASSWORD 'hidden-word'", "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC"
    )
    yield "select"
    hospital.run(
        'REASSIGN OWNED BY "select" TO sqldeid',
        'DROP OWNED BY "select"',
        'DROP ROLE "select"',
        "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC",
    )


def url_of(hospital: Hospital, role: str, database: str = "postgres") -> str:
    return f"postgresql://{role}:hidden-word@127.0.0.1:{hospital.server.port}/{database}"


@pytest.mark.parametrize(
    ("alter", "database", "told"),
    [
        ("CONNECTION LIMIT 0", "postgres", "as many sessions as it may (CONNECTION LIMIT of its role)"),
        ("NOLOGIN", "postgres", "may not log in: ALTER ROLE … LOGIN"),
        ("LOGIN", "shut", "GRANT CONNECT ON DATABASE … TO the user"),
        ("LOGIN", "narrow", "the server takes no more connections"),
        ("LOGIN", "password", "no such database"),
    ],
)
def test_a_session_that_is_not_given(
    alter: str, database: str, told: str, hospital: Hospital, role: str, command: Callable[..., Ran]
) -> None:
    """None of them is a wrong password, and no name of a user or database is taken for the server's words."""
    hospital.run(
        f'ALTER ROLE "{role}" {alter}',
        "CREATE DATABASE shut",
        "REVOKE CONNECT ON DATABASE shut FROM PUBLIC",
        "CREATE DATABASE narrow CONNECTION LIMIT 0",
    )
    try:
        said = refusal(command(url=url_of(hospital, role, database)))["message"]
        assert told in said and "password" not in said.replace("/password:", ":") and role not in said
    finally:
        hospital.run("DROP DATABASE shut", "DROP DATABASE narrow")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'FATAL:  password authentication failed for user "ssl"\nFATAL:  no pg_hba.conf entry for host',
            "the password",
        ),
        ('FATAL:  no pg_hba.conf entry for host "::1", user "timeout", database "role "', "pg_hba.conf lets"),
        ('FATAL:  role "too many" does not exist', "refuses the user"),
        ('connection is bad: definition of service "password authentication failed" not found', "service is not found"),
        ('FATAL:  database "role is not permitted to log in" does not exist', "no such database"),
        (
            "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
            "no more connections",
        ),
        ("FATAL:  la autentificación falló", "try the same with psql"),
    ],
)
def test_names_are_not_read_as_the_servers_words(said: str, told: str) -> None:
    assert told in refused(psycopg.OperationalError(said), "postgresql://host/db").message


def test_rows_that_a_policy_hides_are_told(hospital: Hospital, command: Callable[..., Ran]) -> None:
    """The worker sees half; whoever sees all rows is told nothing. What `told` reads is not known."""
    hospital.run(
        "CREATE TABLE guarded AS SELECT * FROM people",
        "CREATE POLICY half ON guarded FOR SELECT TO worker USING (id % 2 = 0)",
        "CREATE FUNCTION give() RETURNS SETOF guarded LANGUAGE sql STABLE RETURN (SELECT g FROM guarded AS g LIMIT 1)",
        "CREATE VIEW told AS SELECT * FROM guarded UNION ALL SELECT * FROM give() WHERE id < 0",
        "GRANT SELECT ON guarded, told TO worker",
    )
    try:
        for source in ("guarded", '{query = "SELECT * FROM guarded AS g"}', "told"):
            asked = {"source": source if "{" in source else f'"{source}"'}
            before = command("--replace", "--without-ledger", **asked)
            assert before.code == 0 and "row-level security" not in before.out + before.err
            hospital.run("ALTER TABLE guarded ENABLE ROW LEVEL SECURITY")
            done = command("--replace", "--without-ledger", **asked)
            assert done.code == 0, done
            said = " ".join((done.out + done.err).split())
            assert "r: row-level security applies to public.guarded for this role" in said
            hospital.run("ALTER TABLE guarded DISABLE ROW LEVEL SECURITY")
    finally:
        hospital.run("DROP TABLE guarded CASCADE")


def test_each_right_that_is_missing_is_named_with_what_gives_it(
    hospital: Hospital, role: str, command: Callable[..., Ran]
) -> None:
    """Whoever does what the messages say, one after the other, has a release in the end; nothing more was given."""
    hospital.run('CREATE SCHEMA "where"', 'CREATE TABLE "where"."Peo ple" AS SELECT * FROM people')
    asked = {"url": url_of(hospital, role), "source": '\'"where"."Peo ple"\''}
    given = []
    try:
        while (done := command(**asked)).code:
            said = refusal(done)["message"]
            assert "the role select needs this right: GRANT " in said and "no table" not in said
            given.append(re.search(r"GRANT .*", said)[0])
            assert len(given) < 9
            hospital.run(given[-1])
        assert given == [
            'GRANT CREATE ON DATABASE "postgres" TO "select"',
            'GRANT USAGE ON SCHEMA "where" TO "select"',
            'GRANT SELECT ON "where"."Peo ple" TO "select"',
            'GRANT TEMPORARY ON DATABASE "postgres" TO "select"',
        ]
        hospital.run("ALTER TABLE out.r OWNER TO sqldeid", "ALTER SCHEMA out OWNER TO sqldeid")
        said = refusal(command("--replace", **asked))["message"]
        assert said.endswith('GRANT USAGE, CREATE ON SCHEMA "out" TO "select"')
        hospital.run(re.search(r"GRANT .*", said)[0])
        said = refusal(command("--replace", **asked))["message"]
        assert "out.r is to be replaced and belongs to the role sqldeid" in said
        assert said.endswith('ALTER TABLE "out"."r" OWNER TO "select"')  # a role that owns more is not handed over
        hospital.run(re.search(r"ALTER .*", said)[0])
        assert command("--replace", **asked).code == 0
    finally:
        hospital.run('DROP SCHEMA "where" CASCADE', "DROP SCHEMA IF EXISTS out CASCADE")


def test_a_table_that_is_named_without_its_hidden_schema(
    hospital: Hospital, role: str, command: Callable[..., Ran]
) -> None:
    hospital.run("CREATE SCHEMA hidden", "CREATE TABLE hidden.patients AS SELECT * FROM people")
    hospital.run(f'GRANT CREATE, TEMPORARY ON DATABASE postgres TO "{role}"')
    try:
        said = refusal(command(url=url_of(hospital, role), source='"patients"'))["message"]
        assert said.endswith('GRANT USAGE ON SCHEMA "hidden" TO "select", and name the table as hidden.patients')
        done = command(url=url_of(hospital, role), source='"nobody"')
        assert done.code == 2 and "there is no table or view nobody" in done.err
    finally:
        hospital.run("DROP SCHEMA hidden CASCADE")


def test_a_view_whose_owner_may_not_read(hospital: Hospital, role: str, command: Callable[..., Ran]) -> None:
    """The right is the owner's to have: the message does not send it to the user alone."""
    hospital.run(
        "CREATE ROLE keeper", "CREATE TABLE kept AS SELECT * FROM people", "CREATE VIEW seen AS SELECT * FROM kept",
        "ALTER VIEW seen OWNER TO keeper", "GRANT SELECT ON seen TO worker",
    )  # fmt: skip
    try:
        said = refusal(command(source='"seen"'))["message"]
        assert (
            "permission denied for table kept; the role worker, or the owner of the view that reads it, needs" in said
        )
    finally:
        hospital.run("DROP VIEW seen", "DROP TABLE kept", "DROP ROLE keeper")


def test_a_lock_is_told_with_its_table_and_who_has_it(hospital: Hospital, command: Callable[..., Ran]) -> None:
    impatient = f"{hospital.url}?options=-c%20lock_timeout%3D50ms"
    with hospital.connect() as other, hospital.connect() as bystander:
        bystander.execute("BEGIN; LOCK TABLE people IN ACCESS SHARE MODE")
        bystander.execute("ROLLBACK; BEGIN; CREATE TABLE beside (i INT)")
        other.execute("BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
        said = refusal(command(url=impatient))["message"]
        assert f"public.people: stayed locked by session {other.info.backend_pid} (pid) for longer" in said
        own = pytest.raises(
            EngineError, match=r"public\.people \(or a table that a view reads\): stayed locked by another"
        )
        with psycopg.connect(impatient) as theirs, own:  # no second connection is made with a user's password
            anonymize(Job.load("job.toml"), theirs)
    assert command().code == 0
    hospital.run("CREATE VIEW seen AS SELECT * FROM people", "GRANT SELECT ON seen TO worker")
    try:
        with hospital.connect() as other:
            other.execute("BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
            said = refusal(command("--replace", url=impatient, source='"seen"'))["message"]
            assert "public.seen (or a table that a view reads): stayed locked by another session" in said
    finally:
        hospital.run("DROP VIEW seen")
    with hospital.connect() as reader:
        reader.execute("BEGIN; LOCK TABLE out.r IN ACCESS SHARE MODE")
        said = refusal(command("--replace", url=impatient))["message"]
        assert f"out.r: stayed locked by session {reader.info.backend_pid} (pid) for longer" in said


@pytest.fixture
def waiting_for_a_standby(hospital: Hospital) -> Iterator[None]:
    """No COMMIT of `worker` is answered, since no standby is there; the administrator does not wait."""
    hospital.run(
        "ALTER ROLE sqldeid SET synchronous_commit = local", "ALTER SYSTEM SET synchronous_standby_names = 'none'"
    )
    reload(hospital)
    yield
    hospital.run("ALTER SYSTEM RESET synchronous_standby_names")
    reload(hospital)


WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'worker'"
SHORT = "from sqldeid.engine import postgres_end; postgres_end.{} = 0.2; from sqldeid.cli import main; main()"


def committing(hospital: Hospital, short: str) -> subprocess.Popen[str]:
    """A run whose COMMIT waits; one of the times that it may take is short."""
    Path("job.toml").write_text(JOB % {"source": '"people"', "as_": "table", "schema": "out"})
    program = [sys.executable, "-c", SHORT.format(short), "anonymize", hospital.url, "--job", "job.toml"]
    return subprocess.Popen([*program, "--json", "told.json"], stderr=subprocess.PIPE, text=True)


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("waiting_for_a_standby", "command")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, None])
def test_a_commit_that_waits_for_a_standby_ends(sent: signal.Signals | None, hospital: Hospital) -> None:
    """By a signal, or when its time is over: it is done at the server by then, and the run says so."""
    ran = committing(hospital, "STOPPED_SECONDS" if sent else "ANSWER_SECONDS")
    if sent:
        until(lambda: hospital.read(WAITING))
        ran.send_signal(sent)
    said = ran.communicate(timeout=300)[1]
    assert ran.returncode == 0, said
    assert hospital.read("SELECT count(*) > 100 FROM out.r") == [(True,)]
    assert hospital.read(WAITING) == []
    assert "error" not in json.loads(Path("told.json").read_text())


@pytest.mark.usefixtures("waiting_for_a_standby")
def test_a_server_that_does_not_answer_to_commit_is_left(
    hospital: Hospital, command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows then whether the release is there: the message says where to look."""
    monkeypatch.setattr(postgres_end, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(postgres_end, "CANCELLED_SECONDS", 0.2)
    stopped: list[int] = []

    def stop() -> None:
        until(lambda: hospital.read(WAITING))
        [[pid]] = hospital.read(WAITING)
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)

    wait = postgres_end._wait

    def after_stop(ended: threading.Event, seconds: float, short: float | None = None) -> bool:
        if not stopped:
            stop()
        return wait(ended, seconds, short)

    monkeypatch.setattr(postgres_end, "_wait", after_stop)
    try:
        said = refusal(command())["message"]
        assert "does not answer to the end of the transaction" in said and "see with verify whether it is there" in said
        assert "nothing was published" not in said
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    until(lambda: not hospital.read(WAITING))
    assert command("--replace").code in (0, 1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_ending_fails_where_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw is no end that was reached."""
    failed = postgres_end.to_the_end(cast(Any, None), lambda: (_ for _ in ()).throw(ZeroDivisionError))
    assert isinstance(failed, EngineError)
    known = EngineError("known")

    def fails() -> None:
        raise known

    assert postgres_end.to_the_end(cast(Any, None), fails) is known
    assert postgres_end.to_the_end(cast(Any, None), lambda: None) is None
