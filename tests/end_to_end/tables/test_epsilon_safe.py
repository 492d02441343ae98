"""epsilon-safe end to end: what leaves, what is refused, and what the result says."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import sqldeid

pytestmark = pytest.mark.usefixtures("stages")

ROWS = 3000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT i AS id, 20 + i * 7 % 40 AS age, CASE WHEN i % 3 = 0 THEN 'F' ELSE 'M' END "
            f"AS sex FROM range({ROWS}) t(i)"
        )
    lines = [f"{a};{a // 10 * 10}-{a // 10 * 10 + 9};*" for a in range(120)]
    (tmp_path / "age.csv").write_text("\n".join(lines))
    (tmp_path / "sex.csv").write_text("F;*\nM;*\n")
    return path


def job_of(folder: Path, *, k: int = 20, privacy: dict[str, object] | None = None, **asked: object) -> sqldeid.Job:
    release = asked.pop("release", {"into": "out.duckdb"})
    columns = asked.pop("columns", {})
    return sqldeid.Job.parse(
        {
            "release": release,
            "tables": {
                "people": {
                    "source": asked.pop("source", "people"),
                    "person": "id",
                    "columns": {
                        "age": {"role": "quasi-identifying", "hierarchy": "age.csv"},
                        "sex": {"role": "quasi-identifying", "hierarchy": "sex.csv"},
                    }
                    | columns,  # type: ignore[operator]
                    "privacy": {"k": k, **(privacy or {})},
                    "search": {
                        "method": "epsilon-safe",
                        "epsilon_safe": {"beta": 0.25, "epsilon": 1.0, "delta": 0.24} | asked,
                    },
                }
            },
        },
        folder=folder,
    )


def test_a_release_is_classes_of_k_sampled_rows(database: Path) -> None:
    seen = set()
    for _ in range(5):
        job = job_of(database.parent)
        release = sqldeid.anonymize(job, database, options=sqldeid.Options(replace=True, without_ledger=True)).releases[
            "people"
        ]
        with duckdb.connect(str(database.parent / "out.duckdb"), read_only=True) as connection:
            sizes = connection.execute("SELECT age, sex, count(*) FROM release.people GROUP BY ALL").fetchall()
            comment = connection.execute("SELECT comment FROM duckdb_tables()").fetchone()
        assert all(n >= 20 for *_, n in sizes)
        assert sum(n for *_, n in sizes) == release.released < ROWS / 2
        assert comment is not None
        assert not {str(release.rows), str(release.suppressed), str(ROWS)} & set(
            json.dumps(json.loads(comment[0])["sqldeid"]["node"]).replace(",", " ").split()
        )
        assert sqldeid.verify(job, database)["people"].released == release.released
        seen.add((tuple(release.node.values()), release.released))
    assert len(seen) > 1, "the same sample and node five times"


def test_the_result_states_the_guarantee(database: Path) -> None:
    release = sqldeid.anonymize(job_of(database.parent), database).releases["people"]
    assert release.guarantee is not None
    assert release.guarantee["proven"] is True
    assert 0 < release.guarantee["delta"] < 0.25  # type: ignore[operator]
    assert release.criteria[0].name == "epsilon-safe"
    assert any("publish none" in w for w in release.warnings)
    public = json.dumps(release.to_public())
    assert str(release.rows) not in public
    assert "suppressed" not in public


def test_a_seed_repeats_the_draw_and_says_so(database: Path) -> None:
    job = job_of(database.parent, seed=7)
    options = sqldeid.Options(replace=True, without_ledger=True)
    first, second = (sqldeid.anonymize(job, database, options=options).releases["people"] for _ in range(2))
    assert (first.node, first.released, first.rows) == (second.node, second.released, second.rows)
    assert first.guarantee is not None
    assert first.guarantee["proven"] is False
    assert "Not proven" in first.criteria[0].guarantee


def test_reciprocal_is_labelled(database: Path) -> None:
    release = sqldeid.anonymize(job_of(database.parent, utility="reciprocal"), database).releases["people"]
    assert release.guarantee is not None
    assert release.guarantee["proven"] is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns": {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [10]}}}}, "does not depend on them"),
        ({"columns": {"id2": {"role": "insensitive"}}, "source": {"query": "SELECT *, id AS id2 FROM people"}}, "id2"),
        ({"privacy": {"suppression": "blank"}}, "blanked"),
        ({"epsilon": 0.1}, "epsilon"),
        ({"k": 1}, "k at least"),
        ({"delta": 1e-30}, "k at least"),
        ({"delta": None}, "state the most that delta may be, or population"),
        ({"delta": None, "population": 10**15, "k": 3}, "k at least"),
        ({"delta": 0.9, "k": 1}, "k at least"),
        ({"penalty": "suppression"}, "population"),
        ({"release": {"as": "view"}}, "view"),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(database: Path, change: dict[str, object], words: str) -> None:
    with pytest.raises(sqldeid.JobError, match=words):
        sqldeid.anonymize(job_of(database.parent, **change), database)  # type: ignore[arg-type]
    assert not (database.parent / "out.duckdb").exists()


def test_an_empty_release_and_unknown_values_are_outcomes(database: Path) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE people SET age = 500 WHERE id < 10")
    release = sqldeid.anonymize(job_of(database.parent, k=2000), database).releases["people"]
    assert release.released == 0
    assert release.k == 0
    assert any("nothing is released" in w and "spends epsilon and delta again" in w for w in release.warnings)


def test_types_that_one_row_can_change_are_the_custodians_assertion(database: Path) -> None:
    file = database.with_suffix(".csv")
    with duckdb.connect(str(database), read_only=True) as connection:
        connection.table("people").write_csv(str(file))
    told = {
        place.suffix: any("guessed from all rows" in w for w in released.releases["people"].warnings)
        for place in (database, file)
        for released in [
            sqldeid.anonymize(
                job_of(database.parent), place, options=sqldeid.Options(replace=True, without_ledger=True)
            )
        ]
    }
    assert told == {".duckdb": False, ".csv": True}


def test_queries_across_rows_are_the_custodians_assertion(database: Path) -> None:
    query = "SELECT id, age, sex FROM people QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY age) = 1"
    release = sqldeid.anonymize(job_of(database.parent, source={"query": query}), database).releases["people"]
    assert any("custodian" in w for w in release.warnings)
