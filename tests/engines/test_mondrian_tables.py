"""`search.method = "mondrian"` on tables: k rows share every released combination, ranges hold what they say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from sqldeid import anonymize, verify
from sqldeid.errors import JobError, VerificationError
from sqldeid.job import Job
from sqldeid.run import plan

SOURCE = """CREATE TABLE people AS
    SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 37) % 80 END AS age,
           DATE '1950-01-01' + CAST((i * 91) % 9000 AS INTEGER) AS born, CASE WHEN i % 7 = 0 THEN 'inf'::DOUBLE
           ELSE ((i * 53) % 900) / 10e0 END AS weight, i % 4 AS ward, 'name ' || i AS name
    FROM RANGE(300) AS r(i)"""


def median(show: str = "range") -> dict[str, object]:
    return {"role": "quasi-identifying", "hierarchy": {"median": show}}


COLUMNS: Mapping[str, object] = {
    "born": median(),
    "age": median(),
    "ward": {"role": "sensitive"},
    "weight": median("mean"),
    "name": {"role": "identifying"},
}


def job(folder: Path, **changes: object) -> Job:
    table = {"source": "people", "person": "id", "columns": COLUMNS, "privacy": {"k": 5}}
    table = {**table, "search": {"method": "mondrian"}, **changes}
    return Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SOURCE)
    return path


def released(folder: Path) -> pd.DataFrame:
    with duckdb.connect(str(folder / "out.duckdb")) as connection:
        return connection.execute("SELECT * FROM release.people").df()


def within(label: str, value: object) -> bool:
    """What a reader understands by a range."""
    missing = value is None or pd.isna(value)
    if label == "*" or (missing and label.endswith(" or missing")):
        return True
    if missing:
        return False
    label, kind = label.removesuffix(" or missing"), type(value)
    read = (lambda text: pd.Timestamp(text)) if kind is pd.Timestamp else float
    if label.startswith("≤ "):
        return bool(value <= read(label[2:]))
    if label.startswith("> "):
        return bool(value > read(label[2:]))
    low, high = label[1:-1].split(", ")
    return bool(read(low) < value <= read(high))


@pytest.mark.parametrize("k", [2, 5, 20])
def test_k_rows_share_every_combination_and_nobody_is_lost(source: Path, tmp_path: Path, k: int) -> None:
    found = anonymize(job(tmp_path, privacy={"k": k}), source).releases["people"]
    rows = released(tmp_path)
    assert list(rows.columns) == ["born", "age", "ward", "weight"]
    sizes = rows.groupby(["born", "age", "weight"], dropna=False).size()
    assert (sizes.min(), len(sizes), len(rows)) == (found.k, found.classes, 300)
    assert found.k >= k
    assert found.classes > 300 / (4 * k)
    with duckdb.connect(str(source), read_only=True) as connection:
        people = connection.execute("SELECT * FROM people").df()
    assert sorted(rows.ward) == sorted(people.ward)
    for column in ("born", "age"):
        assert all(any(within(label, v) for label in set(rows[column])) for v in people[column])
    assert verify(job(tmp_path, privacy={"k": k}), source)["people"].to_dict()["k"] == found.k


def test_cuts_are_shown_and_never_the_least_or_greatest_value(source: Path, tmp_path: Path) -> None:
    anonymize(job(tmp_path, columns={"age": median()}), source)
    labels = set(released(tmp_path).age)
    assert any(label.startswith("≤ ") for label in labels) and any(label.startswith("> ") for label in labels)
    assert not any("0," in label.replace("10,", "").replace("20,", "") and label.startswith("(0,") for label in labels)
    assert not any(label.endswith(" 79]") for label in labels)


def test_a_changed_release_is_refused(source: Path, tmp_path: Path) -> None:
    anonymize(job(tmp_path), source)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute("UPDATE release.people SET age = '*' WHERE rowid = 3")
    with pytest.raises(VerificationError, match=r"its smallest class|are not what the source gives"):
        verify(job(tmp_path), source)
    with pytest.raises(VerificationError, match="another k"):
        verify(job(tmp_path, privacy={"k": 4}), source)


def test_a_plan_says_what_it_is(source: Path, tmp_path: Path) -> None:
    facts = dict(plan(job(tmp_path), source)[0].facts())  # type: ignore[union-attr]
    assert facts["Cut at medians"] == "born (range), age (range), weight (mean)"


BAD: list[tuple[dict[str, object], str]] = [
    ({"columns": {"name": median()}}, "a column of type VARCHAR has no medians"),
    ({"columns": {"born": median("mean")}}, 'dates have ranges; write "range"'),
    ({"columns": {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [5]}}}}, "cuts at medians: write"),
    ({"search": {}}, 'goes with search.method = "mondrian" alone'),
    ({"privacy": {"k": 5, "suppression_limit": 0.1}}, "suppresses nothing"),
    ({"privacy": {"k": 5, "l_diversity": {"column": "ward", "l": 2}}}, "knows k-anonymity alone"),
    ({"privacy": {"k": 301}}, "people has 300 rows"),
    ({"columns": {"born": median()}, "person": "ward"}, "give one row per person"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(source: Path, tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(JobError) as raised:
        anonymize(job(tmp_path, **changes), source)
    assert message in raised.value.message
    assert not (tmp_path / "out.duckdb").exists()
