"""A Postgres server with people in it, that may be stopped, and a user of it who has a password."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support import postgres
from tests.support.cli import Ran
from tests.support.failing import anonymizing, until
from tests.support.foreign import bag
from tests.support.spark import free_port

JOB = """
[release]
schema = "%(schema)s"
as = "%(as_)s"
[tables.r]
source = %(source)s
person = "id"
columns.age = { role = "quasi-identifying", hierarchy = { bands = [5, 10] } }
columns.name = { role = "insensitive" }
privacy = { k = 3, suppression_limit = 0.3 }
"""

PEOPLE = """CREATE TABLE people AS
    SELECT i::bigint AS id, (20 + (i * 7) % 30)::int AS age, CASE WHEN i % 2 = 0 THEN 'canary7f3a' ELSE 'x' END AS name
    FROM generate_series(1, 200) AS g(i)"""


@dataclass
class Hospital:
    """A server with people in it, and a user who has a password."""

    server: postgres.Server

    @property
    def url(self) -> str:
        return f"postgresql://worker:hidden-word@127.0.0.1:{self.server.port}/postgres"

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.server.address, autocommit=True) as connection:
            yield connection

    def run(self, *statements: str) -> None:
        with self.connect() as c:
            for statement in statements:
                c.execute(statement.encode())

    def read(self, query: str) -> list[tuple[Any, ...]]:
        with self.connect() as c:
            return c.execute(query.encode()).fetchall()

    def everything(self) -> list[str]:
        """The catalogue with its notes and rights, and the rows of the source."""
        listed = self.read(
            "SELECT n.nspname, c.relname, c.relkind, c.relacl, c.oid, obj_description(c.oid, 'pg_class') "
            "FROM pg_namespace AS n LEFT JOIN pg_class AS c ON c.relnamespace = n.oid "
            "WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
        )
        return bag(listed) + bag(self.read("SELECT * FROM people"))


@contextmanager
def hospitals() -> Iterator[Hospital]:
    """Such a server, made for the tests of a module."""
    programs = postgres.binaries()
    if programs is None:
        pytest.skip(postgres.MISSING)
    with postgres.server(programs, free_port()) as server:
        found = Hospital(server)
        found.run("CREATE ROLE worker LOGIN PASSWORD 'hidden-word'", PEOPLE, "GRANT SELECT ON people TO worker")
        found.run("GRANT CREATE, TEMPORARY ON DATABASE postgres TO worker")
        rules = server.data / "pg_hba.conf"
        rules.write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        reload(found)
        yield found


@pytest.fixture(scope="module")
def hospital() -> Iterator[Hospital]:
    with hospitals() as found:
        yield found


@pytest.fixture
def command(
    hospital: Hospital, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    monkeypatch.chdir(tmp_path)
    for name in ("PGPASSWORD", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)
    anonymize = anonymizing(capsys, JOB)
    yield lambda *more, url=hospital.url, source='"people"', **asked: anonymize(url, *more, source=source, **asked)
    hospital.run("DROP SCHEMA IF EXISTS out CASCADE")


def reload(hospital: Hospital) -> None:
    """Have the server read its files again, and wait until it has."""
    [[before]] = hospital.read("SELECT pg_conf_load_time()")
    hospital.run("SELECT pg_reload_conf()")
    until(lambda: hospital.read("SELECT pg_conf_load_time()") != [(before,)])


@contextmanager
def holding(hospital: Hospital, lock: str) -> Iterator[None]:
    """Hold a lock meanwhile."""
    with hospital.connect() as c:
        c.execute(f"BEGIN; {lock}".encode())
        yield
