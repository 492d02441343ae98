"""What labels say, beside a release by local recoding: a reader who has nothing else brings columns to any level."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from sqldeid import anonymize, plan, verify
from sqldeid.errors import JobError, VerificationError
from sqldeid.job import Job
from sqldeid.run import Options
from tests.support.local_tables import COLUMNS, LABELS, NAMES, local_job, people, released, shown, source, table
from tests.support.sources import qi

JOINED = """SELECT s.code, s.recoding, h.says
FROM release.people AS s
LEFT JOIN release.people_hierarchies AS h
  ON h.column_name = ? AND h.label IS NOT DISTINCT FROM CAST(s.{name} AS VARCHAR) AND h.level = ?"""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return source(tmp_path / "source.duckdb")


def test_a_reader_brings_each_column_to_each_level(there: Path, tmp_path: Path) -> None:
    job = local_job(tmp_path, hierarchies=True, recoding=True)
    found = anonymize(job, there).releases["people"]
    assert [w.rpartition(".")[2] for w in found.written] == ["people", "people_layers", "people_hierarchies"]
    whole, node = people(there).set_index("code"), {layer.number: layer.node for layer in found.layers}
    said = 0
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as c:
        for name in NAMES:
            for level, label in enumerate(LABELS[name]):
                rows = c.execute(JOINED.format(name=name), [name, level]).fetchall()
                assert len(rows) == found.released
                for code, recoding, says in rows:
                    own = node[recoding][name]
                    assert shown(says) == (label(whole.loc[code][name]) if own <= level else "NULL")
                    said += says is not None
    assert said
    assert verify(job, there)["people"].k == found.k
    public = found.to_public()
    assert public["hierarchies"] == "people_hierarchies" and "hierarchies" in json.dumps(found.to_dict())


def test_it_agrees_with_rows_that_the_job_rolls_up(there: Path, tmp_path: Path) -> None:
    job = local_job(tmp_path, hierarchies=True, recoding=True, roll_up={"age": 2, "zip": 1})
    anonymize(job, there)
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as c:
        for name, level in (("age", 2), ("zip", 1)):
            ours = {code: says for code, _, says in c.execute(JOINED.format(name=name), [name, level]).fetchall()}
            assert ours == dict(c.execute(f"SELECT code, {name} FROM release.people_rolled_up").fetchall())


def test_it_names_only_labels_that_rows_show(there: Path, tmp_path: Path) -> None:
    anonymize(local_job(tmp_path, hierarchies=True, privacy={"k": 30}), there)
    rows, told = released(tmp_path), released(tmp_path, "release.people_hierarchies")
    for name in NAMES:
        mine = told[told.column_name == name]
        assert set(mine.label.map(shown)) == set(rows[name].map(shown))
        finest = mine[mine.level == 0]
        assert set(finest.says.map(shown)) <= set(rows[name].map(shown)), "a value that no row shows"
    assert set(told.label.map(shown)) < set(people(there)[list(NAMES)].map(shown).to_numpy().ravel()) | {
        f(v) for n in NAMES for f in LABELS[n] for v in people(there)[n]
    }


def test_a_column_with_a_type_of_its_own_is_told_by_its_text(tmp_path: Path) -> None:
    text = (
        "CREATE TABLE people AS SELECT i AS id, CAST(i % 3 AS SMALLINT) AS ward, i % 40 AS age FROM RANGE(240) AS r(i)"
    )
    there = source(tmp_path / "source.duckdb", text=text)
    job = local_job(tmp_path, columns={"ward": qi(), "age": qi({"bands": [5, 10]})}, hierarchies=True)
    found = anonymize(job, there).releases["people"]
    assert found.columns["ward"].type == "SMALLINT"
    told = released(tmp_path, "release.people_hierarchies")
    assert sorted(set(told[(told.column_name == "ward") & (told.level == 0)].says)) == ["0", "1", "2"]
    assert verify(job, there)["people"].k == found.k


CHANGED = {
    "UPDATE {t} SET says = 'x' WHERE rowid = 3": "2 rows are not what the release and hierarchies say",
    "DELETE FROM {t} WHERE rowid = 3": "1 rows are not what the release and hierarchies say",
    "INSERT INTO {t} SELECT * FROM {t} WHERE rowid = 3": "1 rows are not what the release and hierarchies say",
    "ALTER TABLE {t} DROP COLUMN level_name": "has other columns",
    "DROP TABLE {t}": "is not there",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", CHANGED)
def test_what_was_changed_is_refused(change: str, there: Path, tmp_path: Path) -> None:
    job = local_job(tmp_path, hierarchies=True)
    anonymize(job, there)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        c.execute(change.format(t="release.people_hierarchies"))
    with pytest.raises(VerificationError, match=CHANGED[change]):
        verify(job, there)


@pytest.mark.parametrize("kind", ["view", "parquet"])
def test_it_is_published_as_the_release_is_and_goes_with_it(kind: str, there: Path, tmp_path: Path) -> None:
    target = {"as": kind, "into": "out" if kind == "parquet" else "out.duckdb"}
    job = local_job(tmp_path, target, hierarchies=True)
    anonymize(job, there)
    assert verify(job, there)["people"].rows == len(people(there))
    anonymize(local_job(tmp_path, target), there, options=Options(replace=True))
    with pytest.raises(VerificationError, match=r"people_hierarchies.* is not there"):
        verify(job, there)


def test_it_goes_with_local_recoding_alone(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"hierarchies: goes with search.method"):
        local_job(tmp_path, search={"method": "frontier"}, hierarchies=True)
    with pytest.raises(JobError, match=r"is what the table of hierarchies of tables\.people is called"):
        both = {"people": table(hierarchies=True), "people_hierarchies": table(columns=COLUMNS)}
        Job.parse({"tables": both}, folder=tmp_path)


def test_a_plan_lists_its_statements(there: Path, tmp_path: Path) -> None:
    [planned] = plan(local_job(tmp_path, hierarchies=True), there)
    assert planned.beside == ("people_hierarchies",)
