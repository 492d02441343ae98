"""Tables of Postgres and Spark held to earlier releases: nights of changes, and whoever compares all of them."""

from __future__ import annotations

from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.errors import EngineError, JobError, VerificationError
from sqldeid.publish.postgres import InPostgres as InPostgresStaging
from tests.support.foreign import foreign, in_duckdb
from tests.support.nights import Hospital, Released, lone_rows, smallest_difference, smallest_trace
from tests.support.on_spark import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["foreign"]
K, KEY = 4, "".join(f"{i:02x}" for i in range(7, 39))
NUMBERS = count(1)


def job(name: str, *, local: bool = True, target: dict[str, Any] | None = None, folder: Path | str = "") -> sqldeid.Job:
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "illness": {"role": "sensitive"},
        "mark": {"role": "insensitive"},
    }
    table = {
        "source": name,
        "person": "id",
        "text": True,
        "columns": columns,
        "privacy": {"k": K, "suppression_limit": 0.1, "l_diversity": {"column": "illness", "l": 2}},
        **({"recoding": True, "roll_up": {"age": 2}, "search": {"method": "local"}} if local else {}),
    }
    return sqldeid.Job.parse({"release": target or {"schema": f"s_{name}"}, "tables": {"people": table}}, folder=folder)


def options(folder: Path) -> sqldeid.Options:
    (folder / "key").write_text(KEY)
    return sqldeid.Options(replace=True, ledger=folder / "ledger.duckdb", key_file=folder / "key")


def shown(rows: list[dict[str, Any]]) -> Released:
    return {row["mark"]: ((row["age"], row["sex"]), row["illness"]) for row in rows}


def in_postgres(there: Any, table: str) -> list[dict[str, Any]]:
    with there.connect() as c:
        read = c.execute(f"SELECT * FROM {table}".encode())
        return [dict(zip((d.name for d in read.description), row, strict=True)) for row in read.fetchall()]


def hold(released: list[Released]) -> None:
    assert smallest_difference(released) >= K and smallest_trace(released) >= K and lone_rows(released) == 0


@pytest.mark.deep
@pytest.mark.parametrize("local", [True, False])
def test_nights_in_postgres_single_nobody_out(local: bool, foreign: Any, tmp_path: Path) -> None:
    """The first night is DuckDB's; whoever compares all nights finds nobody, or at least k persons."""
    name = f"night_{next(NUMBERS)}"
    (tmp_path / "there").mkdir()
    how, ours = options(tmp_path / "there"), options(tmp_path)
    released: list[Released] = []
    asked = job(name, local=local)
    for number, rows in enumerate(Hospital(seed=3).nights(4)):
        table = pa.Table.from_pandas(rows, preserve_index=False)
        foreign.run(f"DROP TABLE IF EXISTS {name}")
        foreign.load(name, table)
        found = sqldeid.anonymize(asked, foreign.database, options=how).releases["people"]
        if not number:  # later whom the ledger holds back beside those who left is drawn
            file = in_duckdb(tmp_path / f"night_{number}.duckdb", {name: table})
            into = job(name, local=local, target={"into": "out.duckdb"}, folder=tmp_path)
            wanted = sqldeid.anonymize(into, file, options=ours).releases["people"]
            assert _told(found) == _told(wanted)
        checked = sqldeid.verify(asked, foreign.database, options=how)["people"]
        assert (checked.rows, checked.released) == (len(rows), found.released)
        released.append(shown(in_postgres(foreign, f"s_{name}.people")))
        assert len(released[-1]) == found.released
    hold(released)
    with pytest.raises(VerificationError, match="name it with --ledger"):
        sqldeid.verify(asked, foreign.database)
    with pytest.raises(JobError, match="was held to a ledger; name it with --ledger"):
        sqldeid.anonymize(asked, foreign.database, options=sqldeid.Options(replace=True, without_ledger=True))
    with pytest.raises(JobError, match="persons of a source on postgres, and this one is on duckdb"):
        sqldeid.anonymize(
            job(name, target={"into": "other.duckdb"}, folder=tmp_path), _of_duckdb(tmp_path, name, table), options=how
        )
    foreign.run(f"DELETE FROM s_{name}.people WHERE mark = (SELECT MIN(mark) FROM s_{name}.people)")
    with pytest.raises(VerificationError):
        sqldeid.verify(asked, foreign.database, options=how)


def _told(found: Any) -> tuple[object, ...]:
    return found.released, found.suppressed, found.classes, found.ledger["held_back"], round(found.loss["loss"], 12)


def _of_duckdb(folder: Path, name: str, rows: pa.Table) -> Path:
    return in_duckdb(folder / "same.duckdb", {name: rows})


@pytest.mark.deep
def test_a_release_of_postgres_in_a_file_here_is_held_too(foreign: Any, tmp_path: Path) -> None:
    name, how, released = f"night_{next(NUMBERS)}", options(tmp_path), []
    asked = job(name, target={"into": "out.duckdb"}, folder=tmp_path)
    for rows in Hospital(seed=3).nights(3):
        foreign.run(f"DROP TABLE IF EXISTS {name}")
        foreign.load(name, pa.Table.from_pandas(rows, preserve_index=False))
        sqldeid.anonymize(asked, foreign.database, options=how)
        sqldeid.verify(asked, foreign.database, options=how)
        with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as c:
            released.append(shown(c.sql("SELECT * FROM release.people").to_arrow_table().to_pylist()))
    hold(released)
    with pytest.raises(JobError, match="was held to a ledger; name it with --ledger"):
        sqldeid.anonymize(asked, foreign.database, options=sqldeid.Options(replace=True, without_ledger=True))


def test_where_a_server_fails_to_publish_the_release_counts_as_published(
    foreign: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it took in what it did not confirm nobody knows: the ledger must not know less than was published."""
    name, how = f"night_{next(NUMBERS)}", options(tmp_path)
    first, second = (pa.Table.from_pandas(rows, preserve_index=False) for rows in Hospital(seed=3).nights(2))
    foreign.load(name, first)
    sqldeid.anonymize(job(name), foreign.database, options=how)
    foreign.run(f"DROP TABLE {name}")
    foreign.load(name, second)
    with monkeypatch.context() as patched:
        patched.setattr(InPostgresStaging, "publish", _fail)
        with pytest.raises(EngineError, match="connection was lost"):
            sqldeid.anonymize(job(name), foreign.database, options=how)
    with duckdb.connect(str(tmp_path / "ledger.duckdb"), read_only=True) as c:
        assert c.execute("SELECT COUNT(*) FROM releases").fetchone() == (2,)
    found = sqldeid.anonymize(job(name), foreign.database, options=how).releases["people"]
    assert any("its releases count as published" in w for w in found.warnings)
    sqldeid.verify(job(name), foreign.database, options=how)


def _fail(_: object) -> tuple[str, ...]:
    raise EngineError("the connection was lost while it was committing")


@pytest.mark.parametrize(
    ("column", "type_", "said"),
    [
        ("mark", "NUMERIC", "columns.mark: is of type NUMERIC, whose values the ledger cannot tell apart on Postgres"),
        (
            "id",
            "TIMESTAMPTZ",
            "person: is of type TIMESTAMP WITH TIME ZONE, which the ledger cannot",
        ),
    ],
)
def test_what_a_server_spells_in_more_than_one_way_is_refused(
    column: str, type_: str, said: str, foreign: Any, tmp_path: Path
) -> None:
    name = f"night_{next(NUMBERS)}"
    foreign.load(name, pa.Table.from_pandas(next(iter(Hospital(seed=3).nights(1))), preserve_index=False))
    using = "to_timestamp(id::bigint)" if type_ == "TIMESTAMPTZ" else f"{column}::numeric"
    foreign.run(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {type_} USING {using}")
    with pytest.raises(JobError, match=said):
        sqldeid.anonymize(job(name), foreign.database, options=options(tmp_path))


@pytest.mark.xdist_group("spark")
def test_nights_on_spark_single_nobody_out(spark: SparkSession, tmp_path: Path) -> None:
    """With a moment beside the class, which Spark spells without its zone."""
    name, how, released = f"night_{next(NUMBERS)}", options(tmp_path), []
    content = job(name).model_dump(mode="json", by_alias=True, exclude_unset=True)
    content["tables"]["people"]["columns"]["seen"] = {"role": "insensitive"}
    asked = sqldeid.Job.parse(content)
    try:
        for rows in Hospital(seed=3).nights(3):
            table = pa.Table.from_pandas(rows, preserve_index=False)
            seen = pa.array([1_600_000_000_000_000 + 1_500_000 * int(i) for i in rows.id], pa.timestamp("us", tz="UTC"))
            spark.sql(f"DROP TABLE IF EXISTS {name}")
            load(spark, name, table.append_column("seen", seen))
            found = sqldeid.anonymize(asked, spark, options=how).releases["people"]
            assert found.released == found.rows - found.suppressed - found.ledger["held_back"]
            sqldeid.verify(asked, spark, options=how)
            spark.sql(f"REFRESH TABLE s_{name}.people")
            released.append(shown(spark.sql(f"SELECT * FROM s_{name}.people").toArrow().to_pylist()))
        hold(released)
        kept = [len(set(a) & set(b)) / len(a) for a, b in pairwise(released)]
        assert min(kept) > 0.8
    finally:
        for table in (f"s_{name}.people", f"s_{name}.people_layers", f"s_{name}.people_rolled_up", name):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


def only_classes(name: str) -> sqldeid.Job:
    """Every column that leaves is quasi-identifying: the release is written from its classes, and no row is read."""
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [20]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
    }
    table = {"source": name, "person": "id", "text": True, "columns": columns, "privacy": {"k": K}}
    return sqldeid.Job.parse({"release": {"schema": f"s_{name}"}, "tables": {"people": table}})


def two_loads() -> tuple[pa.Table, pa.Table]:
    """Ten of each class, then two more of one: fewer than k arrive, and are held back."""
    rows = [{"id": i, "age": 30 + 40 * (i % 2), "sex": "fm"[i // 2 % 2]} for i in range(40)]
    more = [{"id": 100 + i, "age": 30, "sex": "f"} for i in range(2)]
    return pa.Table.from_pylist(rows), pa.Table.from_pylist([*rows, *more])


@pytest.mark.deep
def test_part_of_a_class_is_held_back_in_postgres(foreign: Any, tmp_path: Path) -> None:
    name, how = f"night_{next(NUMBERS)}", options(tmp_path)
    asked = only_classes(name)
    for rows, held in zip(two_loads(), (0, 2), strict=True):
        foreign.run(f"DROP TABLE IF EXISTS {name}")
        foreign.load(name, rows)
        found = sqldeid.anonymize(asked, foreign.database, options=how).releases["people"]
        assert (found.released, found.ledger["held_back"]) == (40, held)
        assert len(in_postgres(foreign, f"s_{name}.people")) == 40
        assert sqldeid.verify(asked, foreign.database, options=how)["people"].released == 40


@pytest.mark.xdist_group("spark")
def test_part_of_a_class_is_held_back_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    name, how = f"night_{next(NUMBERS)}", options(tmp_path)
    asked = only_classes(name)
    try:
        for rows, held in zip(two_loads(), (0, 2), strict=True):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
            load(spark, name, rows)
            found = sqldeid.anonymize(asked, spark, options=how).releases["people"]
            assert (found.released, found.ledger["held_back"]) == (40, held)
            assert sqldeid.verify(asked, spark, options=how)["people"].released == 40
    finally:
        for table in (f"s_{name}.people", name):
            spark.sql(f"DROP TABLE IF EXISTS {table}")
