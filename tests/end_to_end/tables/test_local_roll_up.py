"""Rows of local recoding at common levels: what the release says there and nothing more, recounted in pandas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from sqldeid import anonymize, plan, verify
from sqldeid.errors import JobError, VerificationError
from sqldeid.hierarchy import open_source
from sqldeid.tables.local.rollup import said_at
from sqldeid.tables.plan.columns import QuasiIdentifier
from tests.support.local_tables import COLUMNS, LABELS, local_job, people, released, shown, source
from tests.support.sources import qi

ROLL_UP = {"age": 1, "zip": "last 2 masked"}
LEVEL = {"age": 1, "zip": 2}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return source(tmp_path / "source.duckdb")


def test_a_label_says_its_ancestor_and_a_coarser_one_nothing(there: Path, tmp_path: Path) -> None:
    job = local_job(tmp_path, roll_up=ROLL_UP, recoding=True)
    found = anonymize(job, there).releases["people"]
    assert [w.rpartition(".")[2] for w in found.written] == ["people", "people_layers", "people_rolled_up"]
    rows, rolled = released(tmp_path), released(tmp_path, "release.people_rolled_up")
    assert list(rows.columns) == list(rolled.columns) and len(rows) == len(rolled)
    rows, rolled = rows.set_index("code"), rolled.set_index("code")
    whole = people(there).set_index("code")
    node = {layer.number: layer.node for layer in found.layers}
    said = 0
    for code, row in rows.iterrows():
        for name, level in LEVEL.items():
            own = node[row.recoding][name]
            wanted = LABELS[name][level](whole.loc[code][name]) if own <= level else "NULL"
            assert shown(rolled.loc[code][name]) == wanted, "a layer that a label is of says at which level it is"
            said += wanted != "NULL"
        assert shown(row.sex) == shown(rolled.loc[code].sex) and row.recoding == rolled.loc[code].recoding
    assert said
    assert verify(job, there)["people"].k == found.k


def test_it_goes_with_the_release(there: Path, tmp_path: Path) -> None:
    """A replaced release takes the table with it, and verify refuses one that was changed or is missing."""
    job = local_job(tmp_path, roll_up=ROLL_UP)
    anonymize(job, there)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        c.execute("UPDATE release.people_rolled_up SET zip = NULL WHERE code = 'code 1'")
    with pytest.raises(VerificationError, match="2 rows are not what the release says there"):
        verify(job, there)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        c.execute("ALTER TABLE release.people_rolled_up DROP COLUMN zip")
    with pytest.raises(VerificationError, match="people_rolled_up has other columns"):
        verify(job, there)


@pytest.mark.parametrize("kind", ["view", "parquet"])
def test_it_is_published_as_the_release_is(kind: str, there: Path, tmp_path: Path) -> None:
    target = {"as": kind, "into": "out" if kind == "parquet" else "out.duckdb"}
    job = local_job(tmp_path, target, roll_up={"age": 3, "zip": 0})
    anonymize(job, there)
    name = f"'{tmp_path}/out/people_rolled_up.parquet'" if kind == "parquet" else "o.release.people_rolled_up"
    with duckdb.connect() as c:
        if kind == "view":
            c.execute(f"ATTACH '{tmp_path}/out.duckdb' AS o (READ_ONLY)")
        rolled = c.execute(f"SELECT * FROM {name}").df()
    assert set(rolled.age) == {"*"}
    assert {z for z in rolled.zip if not pd.isna(z)} <= set(people(there).zip)
    assert verify(job, there)["people"].rows == len(people(there))


def test_a_column_with_its_own_type_is_rolled_up_by_value(tmp_path: Path) -> None:
    born = "DATE '2020-01-01' + CAST(200 * (i % 3) AS INTEGER)"
    text = f"CREATE TABLE people AS SELECT i AS id, i % 3 AS ward, {born} AS born FROM RANGE(60) AS r(i)"
    there = source(tmp_path / "source.duckdb", text=text)
    columns = {"ward": qi({"bands": [2]}), "born": qi({"dates": ["year"]})}
    job = local_job(tmp_path, columns=columns, roll_up={"ward": 1, "born": 1})
    found = anonymize(job, there).releases["people"]
    assert found.columns["ward"].type != "VARCHAR", "all wards are released as they are"
    rows = released(tmp_path, "release.people_rolled_up")
    assert set(rows.ward) == {"[0, 2)", "[2, 4)"} and set(map(str, rows.born)) == {"2020", "2021"}
    assert verify(job, there)["people"].k == found.k


def test_a_reader_of_the_file_alone_is_told_that_labels_overlap(there: Path, tmp_path: Path) -> None:
    anonymize(local_job(tmp_path, roll_up=ROLL_UP), there)
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as c:
        rows = c.execute("SELECT table_name, column_name, comment FROM duckdb_columns() WHERE comment IS NOT NULL")
        told = {(t, n): text for t, n, text in rows.fetchall()}
    assert "by row at level 0 (original), " in told["people", "age"]
    assert "do not count by equal labels" in told["people", "age"]
    assert "at level 1; NULL where" in told["people_rolled_up", "age"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such column": ({"roll_up": {"shoe": 1}}, "tables.people.roll_up.shoe: is no quasi-identifying column"),
    "not quasi-identifying": ({"roll_up": {"illness": 1}}, "tables.people.roll_up.illness: is no quasi-identifying"),
    "too high": ({"roll_up": {"age": 4}}, "tables.people.roll_up.age: the hierarchy has no such level; it has 0 ("),
    "no such name": ({"roll_up": {"age": "decade"}}, "tables.people.roll_up.age: the hierarchy has no such level"),
    "below 0": ({"roll_up": {"age": -1}}, "tables.people.roll_up.age"),
    "another method": ({"roll_up": {"age": 1}, "search": {"method": "frontier"}}, "roll_up: goes with search.method"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_rolled_up_is_refused_by_place(name: str, there: Path, tmp_path: Path) -> None:
    more, said = REFUSED[name]
    with pytest.raises(JobError, match=re.escape(said)):
        plan(local_job(tmp_path, **more), there)


def test_a_release_may_not_be_called_like_it(tmp_path: Path) -> None:
    from sqldeid.job import Job
    from tests.support.local_tables import table

    tables = {"people": table(), "people_rolled_up": table()}
    with pytest.raises(JobError, match=r"is what the table of rolled-up rows of tables\.people is called"):
        Job.parse({"tables": tables}, folder=tmp_path)


def test_a_text_of_two_levels_that_disagree_says_nothing(there: Path, tmp_path: Path) -> None:
    """`b` is a leaf under `low`, and the name of the group of all that is high: alone it tells neither."""
    (tmp_path / "h.csv").write_text("a;low;all\nb;low;all\nc;b;all\nd;b;all\ne;e;all\n", encoding="utf-8")
    columns = {**COLUMNS, "sex": qi("h.csv")}
    hierarchy = open_source("h.csv", tmp_path)
    bound = hierarchy.bind(pa.array(["a", "b", "c", "d", "e"]), numeric=False, uncovered="refuse")

    class Plain:
        def labels(self, of: Any, level: int) -> Any:
            return of.labels[level]

    q: QuasiIdentifier = Plain()  # type: ignore[assignment]
    assert columns["sex"]
    assert said_at(q, bound, 1, [0, 1, 2]) == {
        **{"a": "low", "b": None, "c": "b", "d": "b", "e": "e", "low": "low", "all": None}
    }
    assert said_at(q, bound, 0, [0, 1])["e"] == "e", "a group of one leaf that is called like it"
    assert said_at(q, bound, 0, [0, 1])["b"] is None
    assert said_at(q, bound, 1, [0])["b"] == "low", "no layer uses the other level"
