"""A release whose note a later version wrote in another form: nothing is read from it, and nothing replaces it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sqldeid import Job, Options, anonymize, assess, verify
from sqldeid.demo.sequences import transfer_rows
from sqldeid.errors import JobError, VerificationError
from tests.support.events import kind_t
from tests.support.foreign import InPostgres, in_postgres
from tests.support.foreign_series import BASE, charted
from tests.support.later import MARKS, SAID, a_later_version
from tests.support.sources import PLACES, contents, database, everything, job, listed, people, qi, release

REPLACE = Options(replace=True, without_ledger=True)
ONLY = Options(only=("r",), replace=True, without_ledger=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return database(tmp_path / "source.duckdb")


def state(folder: Path, target: Path) -> object:
    """What is at the target; a database that is opened for writing has other bytes afterwards."""
    return (listed(folder), contents(target) if target.name == "source.duckdb" else everything(target))


def refused(asked: Job, source: Any, name: str = "tables.s") -> None:
    """Whatever reads the note, or would replace the release or publish beside it, is refused."""
    told = rf"{name}: the release that is there was {SAID}"
    for read in (verify, assess) if name.startswith("tables") else (verify,):
        with pytest.raises(VerificationError, match=told) as seen:
            read(asked, source, **({"release": True} if read is assess else {}))  # type: ignore[operator]
        assert (seen.value.code, seen.value.key) == (4, name)
    for options in (REPLACE, ONLY):
        with pytest.raises(JobError, match=told) as written:
            anonymize(asked, source, options=options)
        assert (written.value.code, written.value.key) == (2, name)


@pytest.mark.parametrize("place", PLACES)
def test_it_is_refused_wherever_it_stands(place: str, source: Path, tmp_path: Path) -> None:
    asked = job(PLACES[place], tmp_path, r=people(), s=people(k=6))
    anonymize(asked, source)
    with a_later_version():
        anonymize(asked, source, options=Options(only=("s",), replace=True, without_ledger=True))
    target = tmp_path / PLACES[place].get("into", "source.duckdb")
    before = state(tmp_path, target)
    refused(asked, source)
    assert state(tmp_path, target) == before
    assert verify(asked, source, options=Options(only=("r",)))["r"].k >= 5, "the other one can be read"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mark", MARKS, ids=repr)
def test_what_only_looks_like_the_first_form_is_none(mark: object, source: Path, tmp_path: Path) -> None:
    asked = job({"into": "out.duckdb"}, tmp_path, r=people(), s=people(k=6))
    anonymize(asked, source)
    with a_later_version(mark):
        anonymize(asked, source, options=Options(only=("s",), replace=True, without_ledger=True))
    refused(asked, source)


def test_the_first_form_may_be_said_and_no_other(source: Path, tmp_path: Path) -> None:
    asked = job({"into": "out.duckdb"}, tmp_path, r=people())
    with a_later_version(1):
        anonymize(asked, source)
    assert verify(asked, source)["r"].k >= 5
    with a_later_version(2):
        assert anonymize(asked, source, options=REPLACE).releases["r"].released
    with pytest.raises(VerificationError, match=SAID):
        verify(asked, source)


def test_what_it_says_of_a_ledger_is_not_read(source: Path, tmp_path: Path) -> None:
    """Nobody is told to name a ledger, and what the same release is in another schema is not known either."""
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    with a_later_version():
        held = Options(ledger=tmp_path / "ledger.duckdb", key_file=tmp_path / "key")
        anonymize(job({"schema": "first"}, tmp_path, r=people()), source, options=held)
    before = contents(source)
    for schema in ("first", "second"):
        with pytest.raises(JobError, match=rf"tables\.r: the release that is there was {SAID}"):
            anonymize(job({"schema": schema}, tmp_path, r=people()), source, options=REPLACE)
    assert contents(source) == before


KEYED = {"id": {"role": "identifying", "pseudonym": True}}
COLUMNS = {"age": qi({"bands": [5, 10]}), "sex": qi()}
KINDS: dict[str, dict[str, Any]] = {
    "tables.mondrian": {
        **release({"age": qi({"median": "range"})}, source="people", person="id", search={"method": "mondrian"}),
        "privacy": {"k": 3},
    },
    "tables.local": release(COLUMNS, source="people", person="id", k=3, search={"method": "local"}),
    "tables.linked": release({"sex": qi(), **KEYED}, source="people", person="id", k=3, limit=0.3, link="r"),
    "tables.child": {
        **{"source": "visits", "person": "id", "parent": "r", "items": "code", "known": 1, "privacy": {"k": 2}},
        "columns": {"code": qi()},
    },
    "series.vitals": BASE,
    "events.moved": kind_t(source="moved"),
}


@pytest.mark.parametrize("name", KINDS)
def test_it_is_refused_of_every_kind(name: str, source: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(source)) as connection:
        for table, rows in {"charted": charted(), "moved": transfer_rows(120, 1)}.items():
            connection.register("given", rows)
            connection.execute(f"CREATE TABLE {table} AS FROM given")
        connection.execute("CREATE TABLE visits AS SELECT id, 'c' || (id % 3) AS code FROM people")
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    keyed = Options(key_file=tmp_path / "key", replace=True, without_ledger=True)
    section, own = name.split(".")
    first = release({**COLUMNS, **KEYED}, source="people", person="id", k=3, limit=0.3)
    parts: dict[str, Any] = {"tables": {"r": first}}
    parts.setdefault(section, {})[own] = KINDS[name]
    asked = Job.parse({"release": {"into": "out.duckdb"}, **parts}, folder=tmp_path)
    with a_later_version():
        anonymize(asked, source, options=keyed)
    only = replace(keyed, only=("r", own) if "link" in KINDS[name] or "parent" in KINDS[name] else (own,))
    before = state(tmp_path, tmp_path / "out.duckdb")
    with pytest.raises(VerificationError, match=rf"the release that is there was {SAID}"):
        verify(asked, source, options=only)
    with pytest.raises(JobError, match=rf"the release that is there was {SAID}"):
        anonymize(asked, source, options=only)
    assert state(tmp_path, tmp_path / "out.duckdb") == before


@pytest.fixture
def server(postgres_cluster: str) -> Iterator[InPostgres]:
    with in_postgres(postgres_cluster) as there:
        every = range(200)
        columns = {"id": every, "age": [20 + i % 30 for i in every], "sex": ["fm"[i % 2] for i in every]}
        there.load("people", pa.table(columns))
        yield there


@pytest.mark.parametrize("place", [{}, {"as": "view"}, {"into": "out.duckdb"}, {"into": "out", "as": "parquet"}])
def test_so_it_is_on_postgres(place: dict[str, Any], server: InPostgres, tmp_path: Path) -> None:
    part = release(COLUMNS, source="people", k=3, limit=0.3, person="id")
    asked = job(place, tmp_path, r=part, s=part)
    anonymize(asked, server.database)
    with a_later_version():
        anonymize(asked, server.database, options=Options(only=("s",), replace=True, without_ledger=True))
    before = (server.catalogue(), everything(tmp_path))
    refused(asked, server.database)
    assert (server.catalogue(), everything(tmp_path)) == before
