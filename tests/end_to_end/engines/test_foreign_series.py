"""A job's series are released alike on every engine: persons, classes, what was measured of them, and every value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sqldeid import anonymize, plan, verify
from sqldeid.errors import VerificationError
from sqldeid.job import Job
from sqldeid.series import prepare, release, transfer
from tests.support.foreign import Foreign, bag, foreign, in_duckdb
from tests.support.foreign_series import BASE, CHOICES, WHO, charted, periodic, stays, told, wanted
from tests.support.sources import IDENTIFYING, qi

__all__ = ["foreign"]


@pytest.fixture(scope="module")
def source(foreign: Foreign) -> Foreign:
    """The tables on the engine; keys sort there by a language, and clocks show moments."""
    for name, rows in (("charted", charted()), ("periodic", periodic()), ("stays", stays())):
        foreign.load(name, rows)
    if foreign.name == "postgres":
        for table in ("charted", "periodic", "stays"):
            foreign.run(f'ALTER TABLE {table} ALTER COLUMN "st""ay; --" TYPE TEXT COLLATE "und-x-icu"')
        foreign.run('ALTER TABLE charted ALTER COLUMN item TYPE TEXT COLLATE "und-x-icu"')
        foreign.run("ALTER TABLE charted ALTER COLUMN at TYPE TIMESTAMPTZ USING at AT TIME ZONE 'Europe/Paris'")
    return foreign


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_duckdb(
        tmp_path_factory.mktemp("series") / "s.duckdb", {"charted": charted(), "periodic": periodic(), "stays": stays()}
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Portions of a few persons, so that there are many."""
    monkeypatch.setattr(transfer, "AT_ONCE", 100)
    monkeypatch.setattr(prepare, "AT_ONCE", 200)
    yield


@pytest.mark.sampled(1)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.usefixtures("small")
def test_the_release_is_that_of_duckdb(source: Foreign, local: Path, choice: str) -> None:
    job = wanted(choice, **CHOICES[choice])
    there, here = (anonymize(job, d).releases["vitals"] for d in (source.database, local))
    assert here.released > 10
    with duckdb.connect(str(local)) as connection:
        rows = connection.execute(f'FROM "{choice}".vitals').fetchall()
    assert bag(source.read(f'"{choice}".vitals')) == bag(rows)
    assert repr(told(there)) == repr(told(here))
    assert there.tau == pytest.approx(here.tau, abs=1e-9)
    assert verify(job, source.database)["vitals"].to_dict() == verify(job, local)["vitals"].to_dict()
    assert [p.to_dict() for p in plan(job, source.database)] == [p.to_dict() for p in plan(job, local)]


def test_moments_are_as_far_apart_as_their_times_in_utc(tmp_path: Path) -> None:
    """Also where the clocks of the session's zone are put forward between them."""
    file = in_duckdb(tmp_path / "m.duckdb", {"charted": charted()})
    with duckdb.connect(str(file)) as c:
        c.execute("""UPDATE charted SET "at" = "at" - INTERVAL '125 years' + INTERVAL '29 days 1 hour'""")
        c.execute("""CREATE TABLE moments AS SELECT * REPLACE ("at" AT TIME ZONE 'UTC' AS "at") FROM charted""")
        c.execute("SET TimeZone = 'Europe/Paris'")
        shown = c.execute(
            """SELECT DISTINCT date_part('timezone', "at") FROM moments WHERE "at" IS NOT NULL"""
        ).fetchall()
        assert len(shown) == 2
        found = [
            c.execute(f"FROM {source}.vitals").fetchall()
            for source in ("charted", "moments")
            if anonymize(wanted(source, source=source, time="at", time_unit=None), c).releases["vitals"].released > 10
        ]
    assert len(found) == 2 and bag(found[0]) == bag(found[1])


@pytest.mark.deep
def test_a_table_beside_the_series_is_compared_alike(source: Foreign, local: Path) -> None:
    """Both are released in one transaction, and joined by length as whoever holds both would."""
    columns = {WHO: IDENTIFYING, "hours": qi()}
    table = {"source": "stays", "person": WHO, "privacy": {"k": 3, "suppression_limit": 0.5}, "columns": columns}
    job = Job.parse({"release": {"schema": "both"}, "tables": {"persons": table}, "series": {"vitals": dict(BASE)}})
    there, here = (anonymize(job, d) for d in (source.database, local))
    assert there.joinable == here.joinable
    assert here.joinable[0]["columns"] == ("hours",)
    assert there.warnings == here.warnings
    assert [w.to_dict() for w in verify(job, source.database).joinable] == list(there.joinable)


def test_what_goes_over_the_wire_is_counted(source: Foreign) -> None:
    """The shortened series come out once and the release goes back once, beside figures of persons and of classes."""
    found = anonymize(wanted("counted"), source.database).releases["vitals"]
    written = len(source.read("counted.vitals"))
    series = found.released * len(found.variables)
    assert 2 * written < found.moved["rows"] < 2 * written + 8 * series + 100
    assert found.moved["bytes"] > 16 * found.moved["rows"]


@pytest.mark.deep
def test_a_changed_release_is_not_what_the_source_gives(source: Foreign) -> None:
    job = wanted("told")
    anonymize(job, source.database)
    source.run("CREATE TABLE told.kept AS SELECT * FROM told.vitals")
    for statement in (
        "UPDATE told.vitals SET value = value + 1 WHERE person_number = 1",
        "DELETE FROM told.vitals WHERE person_number = 1 AND step = 0",
        "UPDATE told.vitals SET person_number = 1000 WHERE person_number = 1",
        "INSERT INTO told.vitals SELECT 1000, step, variable, NULL FROM told.vitals WHERE person_number = 2",
    ):
        source.run(statement)
        with pytest.raises(VerificationError, match="failed its re-check"):
            verify(job, source.database)
        source.run("DELETE FROM told.vitals", "INSERT INTO told.vitals SELECT * FROM told.kept")
    assert verify(job, source.database)["vitals"].to_dict()["released"] > 0


def test_nothing_is_left_behind_after_a_failure(source: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is re-checked before it is published: a block lost on its way back is seen."""
    before = source.catalogue()
    rows_of = release.rows_of
    monkeypatch.setattr(release, "rows_of", lambda *parts: rows_of(*parts).slice(1))
    with pytest.raises(VerificationError, match="series are not of the length of their class"):
        anonymize(wanted("never"), source.database)
    assert source.catalogue() == before
