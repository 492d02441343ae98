"""Two runs at once in one Postgres publish nothing that two runs in turn are refused: one has the schema alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

import sqldeid
from sqldeid.engine import postgres_begin
from sqldeid.engine.postgres import PostgresEngine
from sqldeid.errors import EngineError, Interrupted, JobError
from sqldeid.run import Listener
from tests.support.changing import TABLE
from tests.support.foreign import InPostgres, in_postgres

ROWS = "SELECT n AS id, 20 + n % 3 AS age, CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END AS ward"
BUSY = r"^release\.schema: another run of sqldeid is publishing into the schema release, .* run again when it is done$"


def job(name: str, where: str = "id < 12", schema: str = "release") -> sqldeid.Job:
    return sqldeid.Job.parse(
        {"release": {"schema": schema}, "tables": {name: {"source": "people", **TABLE, "where": where}}}
    )


@pytest.fixture
def server(postgres_cluster: str) -> Iterator[InPostgres]:
    with in_postgres(postgres_cluster) as found:
        found.run(f"CREATE TABLE people AS {ROWS} FROM generate_series(1, 20) AS r(n)")
        yield found


def once(work: Callable[[], object]) -> Listener:
    """Does something while a run searches."""
    left = [work]

    def step(release: str, now: str) -> None:
        if now == "searching the lattice" and left:
            left.pop()()

    return Listener(step=step)


def locks(server: InPostgres) -> int:
    with server.connect() as c:
        [(found,)] = c.execute("SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory'").fetchall()
    return int(found)


def released(server: InPostgres, schema: str = "release") -> set[str]:
    return {name for found, name, *_ in server.catalogue() if found == schema and name}


def test_a_cohort_of_one_person_more_is_refused_at_once_as_in_turn(server: InPostgres) -> None:
    """Of another name: each run would look at the schema before the other published."""
    tried: list[str] = []

    def second() -> None:
        with pytest.raises(EngineError, match=BUSY):
            sqldeid.anonymize(job("q", "id < 13"), server.database)
        sqldeid.anonymize(job("q", "id < 13", "elsewhere"), server.database)
        tried.append("q")

    sqldeid.anonymize(job("r"), server.database, listener=once(second))
    assert tried and released(server) == {"r"} and released(server, "elsewhere") == {"q"} and locks(server) == 0
    with pytest.raises(JobError, match=r"tables\.r: the release that is there is not added to"):
        sqldeid.anonymize(job("q", "id < 13"), server.database)


def first_other(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], times: int = 1) -> list[str]:
    """Does something in the moment between a run's snapshot and its claim; what the run claimed, each time."""
    read, left, claimed = PostgresEngine.read, [work] * times, list[str]()

    def late(self: PostgresEngine, template: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        if template == "engine/claim_place":
            claimed.append(str(parameters["place"]))
            if left:
                read(self, "engine/read_session")
                left.pop()()
        return read(self, template, **parameters)

    monkeypatch.setattr(PostgresEngine, "read", late)
    return claimed


def test_a_snapshot_is_not_older_than_the_claim(server: InPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of another run lies between the two, so that the schema is free when it is claimed."""
    claimed = first_other(monkeypatch, lambda: sqldeid.anonymize(job("r"), server.database))
    with pytest.raises(JobError, match=r"tables\.r: the release that is there is not added to"):
        sqldeid.anonymize(job("q", "id < 13"), server.database)
    assert released(server) == {"r"} and len(claimed) == 3  # the run between claims once, the other one again


def test_a_transaction_that_began_before_is_seen_too(server: InPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.connect() as other:
        other.execute("BEGIN")
        other.execute("INSERT INTO people VALUES (0, 20, 'a')")
        claimed = first_other(monkeypatch, lambda: other.execute("COMMIT"))
        sqldeid.anonymize(job("r"), server.database)
    assert len(claimed) == 2


def test_a_server_that_commits_all_the_time(server: InPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_begin, "MOST", 3)
    first_other(monkeypatch, lambda: server.run("INSERT INTO people VALUES (0, 20, 'a')"), times=3)
    with pytest.raises(EngineError, match="the server commits so much"):
        sqldeid.anonymize(job("r"), server.database)
    assert locks(server) == 0 and not released(server)


def test_nothing_is_left_in_a_users_connection(server: InPostgres) -> None:
    """Nor after a run that fails, nor after one that is stopped; a role needs no right to claim."""
    server.run("CREATE ROLE publisher LOGIN", "GRANT SELECT ON people TO publisher")
    server.run("CREATE SCHEMA release", "GRANT USAGE, CREATE ON SCHEMA release TO publisher")

    def stop() -> None:
        assert locks(server) == 1
        raise KeyboardInterrupt

    try:
        with psycopg.connect(server.address.replace("user=sqldeid", "user=publisher")) as c:
            with pytest.raises(JobError):
                sqldeid.anonymize(job("r", "nothing < 12"), c)
            assert locks(server) == 0
            with pytest.raises(Interrupted):
                sqldeid.anonymize(job("r"), c, listener=once(stop))
            assert locks(server) == 0
            sqldeid.anonymize(job("r"), c)
            assert locks(server) == 0 and not c.autocommit
    finally:
        server.run("DROP OWNED BY publisher", "DROP ROLE publisher")
    assert released(server) == set()
