"""Releases of a server's tables into files here: the file that DuckDB writes, verified as written; all or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqldeid import EngineError, Interrupted, JobError, Listener, Options, VerificationError, anonymize, assess, verify
from sqldeid.demo.sequences import transfer_rows
from sqldeid.job import Job
from sqldeid.publish import brought
from sqldeid.sql import render
from tests.support.events import kind_t
from tests.support.failing import rendering
from tests.support.foreign import Both, Foreign, InPostgres, foreign, in_duckdb
from tests.support.foreign_events import SEEDED
from tests.support.foreign_series import BASE, charted
from tests.support.foreign_tables import RELEASES, both, told
from tests.support.parquet import content, listing
from tests.support.sources import INSENSITIVE, job, listed, qi, release

__all__ = ["both", "foreign"]

PARQUET, FILE, VIEW = {"as": "parquet", "into": "out"}, {"into": "out"}, {"as": "view", "into": "out"}
REPLACE = Options(replace=True, without_ledger=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "place"),
    [
        *((name, PARQUET) for name in ("k", "types", "types as text", "l entropy, blank")),
        ("only quasi-identifiers", FILE),
        ("query", VIEW),
    ],
)
def test_a_file_is_the_one_that_duckdb_writes(
    name: str, place: Mapping[str, str], both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brought, "PART_BYTES", 999)  # many parts
    monkeypatch.setattr(brought, "AT_ONCE", 7)
    before = both.foreign.catalogue()
    asked = [job(place, tmp_path / where, r=RELEASES[name]) for where in ("there", "here")]
    for where in ("there", "here"):
        (tmp_path / where).mkdir()
    there, here = anonymize(asked[0], both.foreign.database), anonymize(asked[1], both.file)
    assert told(there.releases["r"]) == told(here.releases["r"])
    assert [w.replace("/there/", "/here/") for w in there.releases["r"].written] == list(here.releases["r"].written)
    assert there.releases["r"].moved["rows"] >= 2 * there.releases["r"].released, "rows do travel, and are counted"
    assert content(tmp_path / "there" / "out") == content(tmp_path / "here" / "out")
    assert told(verify(asked[0], both.foreign.database)["r"]) == told(verify(asked[1], both.file)["r"])
    assert verify(asked[0], both.file)["r"].released == there.releases["r"].released, "a file knows no engine"
    assert told(assess(asked[0], both.foreign.database, release=True)) == told(
        assess(asked[1], both.file, release=True)
    )
    assert both.foreign.catalogue() == before
    assert set(listing(tmp_path / "there")) == set(listing(tmp_path / "here"))


@pytest.mark.deep
def test_series_and_events_go_into_one_folder(foreign: Foreign, tmp_path: Path) -> None:
    tables = {"charted": charted(), "t": transfer_rows(120, 1)}
    for name, rows in tables.items():
        foreign.load(name, rows)
    database = in_duckdb(tmp_path / "source.duckdb", tables)
    parts = {"series": {"vitals": BASE}, "events": {"x": kind_t(**{"source": "t"} | SEEDED)}}
    for where, source in (("there", foreign.database), ("here", database)):
        (tmp_path / where).mkdir()
        wanted = Job.parse({"release": PARQUET, **parts}, folder=tmp_path / where)
        anonymize(wanted, source)
        assert set(verify(wanted, source)) == {"vitals", "x"}
    there, here = ([content(tmp_path / where / "out", name) for name in ("vitals", "x")] for where in ("there", "here"))
    assert [found[:2] for found in there] == [found[:2] for found in here] and all(found[1] for found in there)


TYPES = """CREATE TABLE kinds AS SELECT i % 3 AS class,
    CAST('00000000-0000-0000-0000-00000000000' || i % 10 AS UUID) AS uuid,
    TIMESTAMPTZ '1890-07-01 12:00:00.123456+02' + i * INTERVAL '1 month' AS zoned, TIME '23:59:59.5' AS clock,
    CAST(i / 7.0 AS REAL) AS small, CAST(CASE i % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity'
    ELSE 1e-300 * i || '' END AS FLOAT8) AS large, CAST('9' AS NUMERIC(38, 5)) / 7 * i AS loose,
    CAST(i * 1.25 AS NUMERIC(30, 10)) AS exact,
    CAST(CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN NULL ELSE E'"; \\\\N,\\n''é😀\\t' END AS VARCHAR(30)) AS text,
    CAST('ab' AS CHAR(5)) AS padded, CAST(i AS INT2) AS short, i % 2 = 0 AS flag, CAST('{"a": 1}' AS JSONB) AS json,
    CAST('a' AS mood) AS mood FROM generate_series(1, 60) AS g(i)"""
HELD = ("uuid", "zoned", "clock", "small", "large", "exact", "text", "padded", "short", "flag", "mood")


def kinds(place: Mapping[str, str], folder: Path, *names: str) -> Job:
    return job(place, folder, r=release({"class": qi(), **dict.fromkeys(names, INSENSITIVE)}, source="kinds", k=5))


def test_every_type_that_a_file_holds_and_none_other(foreign: Foreign, tmp_path: Path) -> None:
    """Values are read back as they were, in the server's own text; what a file would change is refused by name."""
    assert isinstance(foreign, InPostgres)
    foreign.run("CREATE TYPE mood AS ENUM ('a', 'b')", TYPES)
    anonymize(kinds(PARQUET, tmp_path, *HELD), foreign.database)
    assert verify(kinds(PARQUET, tmp_path, *HELD), foreign.database)["r"].released == 60
    with duckdb.connect() as c:
        described = c.execute(f"DESCRIBE FROM '{tmp_path}/out/r.parquet'").fetchall()
        found = {text for (text,) in c.execute(f"SELECT text FROM '{tmp_path}/out/r.parquet'").fetchall()}
    assert [row[1] for row in described[1:]] == [
        *("UUID", "TIMESTAMP WITH TIME ZONE", "TIME", "FLOAT", "DOUBLE", "DECIMAL(30,10)"),
        *("VARCHAR", "VARCHAR", "SMALLINT", "BOOLEAN", "VARCHAR"),
    ]
    texts = {text for (text,) in foreign.read("(SELECT text FROM kinds) AS k")}
    assert found == texts and {"", None} < texts
    before = listing(tmp_path)
    for name in ("loose", "json"):
        with pytest.raises(JobError, match=rf"tables\.r\.columns\.{name}: a file cannot hold the type"):
            anonymize(kinds(PARQUET, tmp_path, name), foreign.database, options=REPLACE)
    foreign.run(
        "CREATE TABLE edges AS SELECT i % 2 AS class, CAST(0.00123 AS NUMERIC(3, 5)) AS narrow, "
        "CAST('NaN' AS NUMERIC(4, 1)) AS nan, DATE '12000-01-01' + i AS far FROM generate_series(1, 60) AS g(i)"
    )
    for name, said in (("narrow", "a file cannot hold the type"), ("nan", "holds NaN"), ("far", "holds a date")):
        wanted = job(PARQUET, tmp_path, r=release({"class": qi(), name: INSENSITIVE}, source="edges", k=5))
        with pytest.raises(JobError, match=rf"tables\.r\.columns\.{name}: {said}"):
            anonymize(wanted, foreign.database, options=REPLACE)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("other", [qi(), INSENSITIVE], ids=["coded", "not coded"])
def test_blanks_that_fill_a_column(other: dict[str, Any], foreign: Foreign, tmp_path: Path) -> None:
    """CHAR(n) is compared without its blanks in the server; a file would tell them apart."""
    if not isinstance(foreign, InPostgres):
        pytest.skip("not applicable: types of Postgres")
    foreign.run(
        "DROP TABLE IF EXISTS filled",
        "CREATE TABLE filled AS SELECT i AS id, CAST('a' || i % 2 AS CHAR(5)) AS a, "
        "CAST('b' || i % 2 AS CHAR(5)) AS b FROM generate_series(1, 60) AS g(i)",
    )
    asked = job(PARQUET, tmp_path, r=release({"a": qi(), "b": other}, source="filled", k=5, limit=0.0))
    anonymize(asked, foreign.database)
    assert verify(asked, foreign.database)["r"].released == 60
    [_, rows, _] = content(tmp_path / "out")
    assert {row[0] for row in rows} == {"a0", "a1"}


@pytest.mark.deep
def test_what_lies_there_is_kept_or_replaced_as_with_duckdb(both: Both, tmp_path: Path) -> None:
    for place in (PARQUET, FILE):
        folder = tmp_path / place.get("as", "file")
        folder.mkdir()
        first = job(place, folder, r=RELEASES["k"], s=RELEASES["only quasi-identifiers"])
        anonymize(first, both.foreign.database)
        kept, before = content(folder / "out", "s"), listing(folder)
        with pytest.raises(JobError, match="exists already; allow it to be replaced with --replace"):
            anonymize(first, both.foreign.database)
        assert listing(folder) == before
        second = job(place, folder, r={**RELEASES["k"], "privacy": {"k": 9, "suppression_limit": 0.4}}, s=RELEASES["k"])
        anonymize(second, both.foreign.database, options=Options(replace=True, without_ledger=True, only=("r",)))
        assert content(folder / "out", "s")[:2] == kept[:2]
        assert verify(second, both.foreign.database, options=Options(only=("r",)))["r"].k >= 9
    (tmp_path / "parquet" / "out" / "mine.txt").write_text("mine")
    with pytest.raises(JobError, match="files that sqldeid did not make"):
        anonymize(job(PARQUET, tmp_path / "parquet", r=RELEASES["k"]), both.foreign.database, options=REPLACE)


@pytest.mark.parametrize("place", [PARQUET, FILE], ids=["parquet", "file"])
def test_a_second_run_into_the_files_stops_and_what_changed_there_stays(
    place: Mapping[str, str], both: Both, tmp_path: Path
) -> None:
    """Of two runs into one place one stops, whatever they read; what another program put there is not lost."""
    folder, came = tmp_path / "written", []
    folder.mkdir()
    wanted = job(place, folder, r=RELEASES["k"])

    def meanwhile(_: str, step: str) -> None:
        if step == "publishing" and not came:
            came.append(step)
            for database in (both.foreign.database, both.file):
                with pytest.raises(EngineError, match="another run of sqldeid is writing to"):
                    anonymize(wanted, database, options=REPLACE)
            (folder / "out").mkdir()

    with pytest.raises(JobError, match="exists by now; somebody else wrote it"):
        anonymize(wanted, both.foreign.database, options=REPLACE, listener=Listener(step=meanwhile))
    assert came and listed(folder) == ["out"]


@pytest.mark.parametrize("place", [PARQUET, FILE], ids=["parquet", "file"])
@pytest.mark.parametrize("what", ["writing the release", "verifying what was written", "publishing"])
def test_nothing_is_left_of_a_run_that_fails(what: str, place: Mapping[str, str], both: Both, tmp_path: Path) -> None:
    before = both.foreign.catalogue()

    def step(name: str, begins: str) -> None:
        if begins == what:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        anonymize(job(place, tmp_path, r=RELEASES["k"]), both.foreign.database, listener=Listener(step=step))
    assert both.foreign.catalogue() == before and not list(tmp_path.iterdir())


def test_a_failure_among_the_parts_leaves_a_users_connection_as_it_was(
    both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of many parts cannot be had: COPY is under way in the server then."""
    assert isinstance(both.foreign, InPostgres)
    monkeypatch.setattr(brought, "PART_BYTES", 1)
    inserted: list[str] = []

    def fails(name: str, /, *dialect: str, **parameters: object) -> str:
        if name == "publish/bring_rows" and not parameters["first"]:
            inserted.append(name)
            raise EngineError("no room")
        return render(name, *dialect, **parameters)

    rendering(monkeypatch, fails)
    with both.foreign.connect() as c:
        with pytest.raises(EngineError, match="no room"):
            anonymize(job(PARQUET, tmp_path, r=RELEASES["k"]), c)
        assert c.execute("SELECT COUNT(*) FROM people").fetchone() == (300,) and c.autocommit
    assert inserted and not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", [PARQUET, FILE], ids=["parquet", "file"])
def test_what_the_file_holds_is_verified_not_what_was_brought(
    place: Mapping[str, str], both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row lost on the way, or changed later, is found: the file is read again, and held to the source."""
    wanted = job(place, tmp_path, r=RELEASES["k"])
    bring = brought.Brought._bring

    def loses(self: brought.Brought, *given: Any) -> Any:
        bench = self.engine.bench
        rows = bench.connection.sql(f"FROM {bring(self, *given).sql('duckdb')}").to_arrow_table()
        return bench.put("fewer", rows.slice(1))

    monkeypatch.setattr(brought.Brought, "_bring", loses)
    with pytest.raises(VerificationError, match="failed its re-check"):
        anonymize(wanted, both.foreign.database)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(brought.Brought, "_bring", bring)
    anonymize(wanted, both.foreign.database)
    assert verify(wanted, both.foreign.database)["r"].released
    target = tmp_path / "out"
    with duckdb.connect(":memory:" if target.is_dir() else str(target)) as c:
        if target.is_file():
            c.execute("UPDATE release.r SET illness = 'other' WHERE rowid = 3")
        else:
            file = f"'{target}/r.parquet'"
            [(note,)] = c.execute(f"SELECT DECODE(value) FROM PARQUET_KV_METADATA({file})").fetchall()
            c.execute(f"CREATE TABLE r AS FROM {file}")
            c.execute("UPDATE r SET illness = 'other' WHERE rowid = 3")
            c.execute(f"COPY r TO {file} (KV_METADATA {{sqldeid: $1}})", [note])
    with pytest.raises(VerificationError, match="failed its re-check"):
        verify(wanted, both.foreign.database)
