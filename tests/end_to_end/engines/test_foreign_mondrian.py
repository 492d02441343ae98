"""Mondrian of tables in Postgres and on Spark: the release of DuckDB, row by row, and what changed is refused there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from sqldeid import JobError, VerificationError, anonymize, assess, plan, verify
from sqldeid.errors import NoSolutionError
from sqldeid.job import Job
from tests.support.foreign import InPostgres, bag, in_duckdb, in_postgres
from tests.support.foreign_tables import told
from tests.support.on_spark import load
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job
from tests.support.spark import PORT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGE, ILL = "select", 'we"ird; DROP TABLE x; --'
ROWS = 240


def people() -> pa.Table:
    """Numbers of every kind, dates and times, with NULLs, NaN, infinity, both zeros, ties; texts that are hostile."""
    every = range(ROWS)
    heights = [
        [None, float("inf"), float("nan"), -0.0, 0.0][i % 19] if i % 19 < 5 else (i * 53 % 97) / 7 for i in every
    ]
    return pa.table(
        {
            "id": pa.array(every, pa.int64()),
            AGE: pa.array([None if i % 11 == 0 else (i * 37) % 80 for i in every], pa.int32()),
            "height": pa.array(heights, pa.float64()),
            "money": pa.array(
                [None if i % 31 == 0 else Decimal(i * 29 % 200) / 4 for i in every], pa.decimal128(10, 2)
            ),
            "born": pa.array([None if i % 41 == 0 else date(1890, 1, 1) + timedelta(i * 911 % 40000) for i in every]),
            "seen": pa.array([datetime(2020, 1, 1) + timedelta(hours=i * 7 % 50, microseconds=i % 3) for i in every]),
            ILL: [["", "😀", "it's", None, "a\nb"][(i * i + i // 9) % 5] for i in every],
            "days": pa.array([None if i % 13 == 0 else (i * 13) % 6 for i in every], pa.int64()),
            "note": [f"note {i}" for i in every],
        }
    )


def median(show: str = "range", grid: object = None) -> dict[str, object]:
    return {"role": "quasi-identifying", "hierarchy": {"median": show, **({} if grid is None else {"grid": grid})}}


def asked(columns: dict[str, Any], privacy: dict[str, Any], **more: Any) -> dict[str, Any]:
    search = {"method": "mondrian", **more.pop("search", {})}
    return {"source": "people", "person": "id", "columns": columns, "privacy": privacy, "search": search, **more}


WHOLE = {
    "id": IDENTIFYING,
    AGE: median(),
    "height": median("mean", 0.05),
    "born": median(),
    ILL: SENSITIVE,
    "note": INSENSITIVE,
}
TIMES = {"seen": median("range", "hour"), "money": median(), "days": SENSITIVE, "born": median()}
QUERY = {"query": f'SELECT p.*, p."{AGE}" / 7 AS share FROM people AS p WHERE p.id % 3 < 2'}
DIVERSE = {
    "k": 4,
    "l_diversity": {"column": ILL, "l": 3},
    "t_closeness": {"column": "days", "t": 0.4, "distance": "equal"},
}
RELEASES = {
    "k": asked(WHOLE, {"k": 5}),
    "criteria": asked({**WHOLE, "days": SENSITIVE}, DIVERSE, search={"heuristic": "diversity"}),
    "times": asked(TIMES, {"k": 3, "l_diversity": {"column": "days", "l": 2, "kind": "entropy"}}, where="money > 1"),
    "query": asked(
        {"share": median("mean", 0.1), "money": median(), "height": median("range", 0.5)}, {"k": 6}, source=QUERY
    ),
}


@dataclass
class Here:
    """The same table in a DuckDB file."""

    file: Path

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.file)) as c:
            return c.execute(f"FROM {table}").fetchall()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    return Here(in_duckdb(tmp_path_factory.mktemp("parted") / "people.duckdb", {"people": people()}))


def released(name: str, table: dict[str, Any], kind: str = "table", prefix: str = "of") -> Job:
    return job({"schema": f"{prefix}_{name}", "as": kind}, "", **{name: table})


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Any:
    with in_postgres(request.getfixturevalue("postgres_cluster")) as database:
        database.load("people", people())
        yield database


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", RELEASES)
def test_a_release_in_postgres_is_that_of_duckdb(name: str, server: InPostgres, here: Here) -> None:
    wanted = released(name, RELEASES[name])
    [planned] = plan(wanted, server.database)
    before = server.catalogue()
    there, ours = (anonymize(wanted, d).releases[name] for d in (server.database, here.file))
    assert planned.name == name and there.classes > 5
    assert told(there) == told(ours)
    assert set(there.to_dict()) == set(ours.to_dict())
    assert bag(server.read(f"of_{name}.{name}")) == bag(here.rows(f"of_{name}.{name}"))
    assert told(verify(wanted, server.database)[name]) == told(verify(wanted, here.file)[name])
    for looked in (False, True):
        assert told(assess(wanted, server.database, release=looked)) == told(assess(wanted, here.file, release=looked))
    assert {e[:2] for e in server.catalogue() - before} == {(f"of_{name}", ""), (f"of_{name}", name)}


TAMPERED = {
    "UPDATE {} SET days = 1 - days WHERE days IN (0, 1)": "other columns do not hold",
    "DELETE FROM {} WHERE ctid = (SELECT MIN(ctid) FROM {})": "are not what the source gives",
    "UPDATE {} SET seen = '*' WHERE ctid = (SELECT MIN(ctid) FROM {})": "its smallest class|classes are not what",
    "ALTER TABLE {} RENAME COLUMN days TO nights": "its columns are not",
}


@pytest.mark.deep
def test_what_was_changed_in_postgres_is_refused(server: InPostgres) -> None:
    wanted = released("times", RELEASES["times"], prefix="told")
    anonymize(wanted, server.database)
    server.run("CREATE TABLE kept AS SELECT * FROM told_times.times")
    for statement, message in TAMPERED.items():
        server.run(statement.replace("{}", "told_times.times"))
        with pytest.raises(VerificationError, match=message) as raised:
            verify(wanted, server.database)
        assert raised.value.code == 4
        if "RENAME" not in statement:
            server.run("TRUNCATE told_times.times", "INSERT INTO told_times.times SELECT * FROM kept")
    server.run("ALTER TABLE told_times.times RENAME COLUMN nights TO days", "DROP TABLE kept")
    verify(wanted, server.database)


@pytest.mark.deep
def test_a_view_a_file_and_what_goes_over_the_wire(server: InPostgres, here: Here, tmp_path: Path) -> None:
    """Numbers of combinations, their classes and labels: fewer than there are rows, and no text of a row."""
    few = asked({"days": median(), "note": INSENSITIVE}, {"k": 20})
    view = released("few", few, "view", "seen")
    there, ours = (anonymize(view, d) for d in (server.database, here.file))
    assert bag(server.read("seen_few.few")) == bag(here.rows("seen_few.few"))
    assert told(verify(view, server.database)["few"]) == told(verify(view, here.file)["few"])
    assert 7 + 7 < there.releases["few"].moved["rows"] < 60
    assert (ours.releases["few"].moved["rows"] > 0) and "hidden-word" not in str(there.to_dict())
    files = job({"into": str(tmp_path / "there.duckdb")}, k=RELEASES["k"])
    anonymize(files, server.database)
    verify(files, server.database)
    anonymize(job({"schema": "as_file"}, k=RELEASES["k"]), here.file)
    with duckdb.connect(str(tmp_path / "there.duckdb")) as c:
        assert bag(c.execute("FROM release.k").fetchall()) == bag(here.rows("as_file.k"))


@pytest.mark.deep
def test_bad_input_is_refused_in_postgres(server: InPostgres) -> None:
    server.run(
        "CREATE TABLE odd AS SELECT id, days, CASE WHEN id = 1 THEN DATE 'infinity' WHEN id = 2 THEN DATE '-infinity' "
        "WHEN id = 3 THEN DATE '0044-03-15 BC' ELSE born END AS born, CAST('{}' AS JSON) AS doc FROM people"
    )
    before = server.catalogue()
    told_of: list[tuple[dict[str, Any], str]] = [
        ({"columns": {"doc": median()}}, "a column of type JSON has no medians"),
        ({"privacy": {"k": 2, "l_diversity": {"column": "doc", "l": 2}}}, "no criterion compares values of type JSON"),
        ({"privacy": {"k": ROWS + 1}}, f"odd has {ROWS} rows"),
        ({"person": "days"}, "give one row per person"),
    ]
    columns = {"born": median(), "doc": SENSITIVE}
    for changes, message in told_of:
        wanted = released("odd", {**asked(columns, {"k": 4}, source="odd"), **changes})
        with pytest.raises(JobError, match=message):
            anonymize(wanted, server.database)
    wanted = released(
        "odd", asked({"born": median(), "days": SENSITIVE}, {"k": 4, "l_diversity": {"column": "days", "l": 8}})
    )
    with pytest.raises(NoSolutionError, match="as a single class achieves 7; no release meets it"):
        anonymize(wanted, server.database)
    assert server.catalogue() == before
    wanted = released("odd", asked(columns, {"k": 4}, source="odd"))
    found = anonymize(wanted, server.database).releases["odd"]
    assert found.classes > 5 and verify(wanted, server.database)["odd"].released == ROWS


@pytest.mark.xdist_group("spark")
def test_on_spark_it_is_that_of_duckdb_and_what_changed_is_refused(spark: SparkSession, here: Here) -> None:
    """From the session as tables, from the Connect server as views."""
    load(spark, "people", people())
    url = f"sc://127.0.0.1:{spark.conf.get(PORT)}"

    def read(table: str) -> list[tuple[Any, ...]]:
        spark.sql(f"REFRESH TABLE {table}")
        rows = spark.sql(f"SELECT * FROM {table}").toArrow()
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    changed = "CASE WHEN note = 'note 3' THEN 'note 4' WHEN note = 'note 4' THEN 'note 3' ELSE note END AS note"
    try:
        for kind, database, name in (("table", spark, "criteria"), ("view", url, "query")):
            wanted, table = released(name, RELEASES[name], kind, "spark"), f"spark_{name}.{name}"
            there, ours = (anonymize(wanted, d).releases[name] for d in (database, here.file))
            assert told(there) == told(ours) and there.classes > 5
            assert bag(read(table)) == bag(here.rows(table))
        wanted = released("criteria", RELEASES["criteria"], prefix="spark")
        assert told(verify(wanted, url)["criteria"]) == told(verify(wanted, here.file)["criteria"])
        assert told(assess(wanted, url, release=True)) == told(assess(wanted, here.file, release=True))
        spark.sql("CREATE TABLE kept AS SELECT * FROM spark_criteria.criteria")
        spark.sql(
            f"INSERT OVERWRITE TABLE spark_criteria.criteria SELECT * EXCEPT (note, days), {changed}, days FROM kept"
        )
        with pytest.raises(VerificationError, match="the other columns do not hold what the source gives"):
            verify(wanted, spark)
        spark.sql("INSERT INTO people SELECT * FROM people WHERE id = 7")
        with pytest.raises(JobError, match="give one row per person"):
            verify(wanted, spark)
    finally:
        for name in ("people", "kept"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.xdist_group("spark")
def test_a_source_that_changes_on_spark_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody takes another's place once the classes are formed: what is written is not what the source gives then."""
    from sqldeid.tables.mondrian import release as partition

    load(spark, "moving", people().slice(0, 60))
    stage, wanted = (
        partition._stage,
        released("moving", asked({"days": median(), "note": INSENSITIVE}, {"k": 5}, source="moving")),
    )

    def staged(*given: Any) -> Any:
        written = stage(*given)
        spark.createDataFrame(people().slice(1, 60)).createOrReplaceTempView("moved")
        spark.sql("INSERT OVERWRITE TABLE moving SELECT * FROM moved")
        spark.sql("DROP VIEW moved")
        return written

    monkeypatch.setattr(partition, "_stage", staged)
    try:
        with pytest.raises(VerificationError, match="run again while nobody writes to it"):
            anonymize(wanted, spark)
        there = {row["namespace"] for row in spark.sql("SHOW SCHEMAS").toArrow().to_pylist()}
        assert "of_moving" not in there
    finally:
        spark.sql("DROP TABLE moving")
