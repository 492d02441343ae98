"""Local recoding held to earlier releases: nights of changes, and whoever compares the releases of all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.engine.opening import Settings
from sqldeid.errors import JobError, VerificationError
from tests.support.nights import Hospital, Released, lone_rows, smallest_difference, smallest_trace

K, NIGHTS = 4, 7
KEY = "".join(f"{i:02x}" for i in range(7, 39))
CRITERIA: dict[str, dict[str, Any]] = {
    "k": {},
    "k, layers": {"search": {"layers": 5}},
    "k, nothing suppressed": {"privacy": {"suppression_limit": 0}},
    "l": {"privacy": {"l_diversity": {"column": "illness", "l": 2}}},
    "t": {"privacy": {"t_closeness": {"column": "illness", "t": 0.5}}},
}


def job(folder: Path, *, local: bool = True, **more: Any) -> sqldeid.Job:
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "illness": {"role": "sensitive"},
        "mark": {"role": "insensitive"},
    }
    table = {
        "source": "main.people",
        "person": "id",
        "text": True,
        "recoding": local,
        "columns": columns,
        "privacy": {"k": K, "suppression_limit": 0.1, **more.get("privacy", {})},
        "search": {**({"method": "local"} if local else {}), **more.get("search", {})},
    }
    if local:
        table["roll_up"] = {"age": 2}
    return sqldeid.Job.parse({"tables": {"people": table}}, folder=folder)


def options(folder: Path) -> sqldeid.Options:
    (folder / "key").write_text(KEY)
    one = Settings(threads=1)
    return sqldeid.Options(replace=True, ledger=folder / "ledger.duckdb", key_file=folder / "key", settings=one)


def night(connection: duckdb.DuckDBPyConnection, rows: Any, asked: sqldeid.Job, how: sqldeid.Options) -> Any:
    connection.register("rows", rows)
    connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM rows")
    return sqldeid.anonymize(asked, connection, options=how).releases["people"]


def shown(connection: duckdb.DuckDBPyConnection) -> Released:
    found = connection.execute("SELECT mark, age, sex, illness FROM release.people").fetchall()
    return {mark: ((age, sex), illness) for mark, age, sex, illness in found}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CRITERIA)
def test_no_two_releases_single_anybody_out_nor_do_all_together(name: str, tmp_path: Path) -> None:
    asked, how = job(tmp_path, **CRITERIA[name]), options(tmp_path)
    released: list[Released] = []
    with duckdb.connect(":memory:", config={"threads": 1}) as c:
        for rows in Hospital(seed=3).nights(NIGHTS):
            found = night(c, rows, asked, how)
            released.append(shown(c))
            there = set(rows.id.astype(int))
            assert set(released[-1]) <= there
            assert found.released == len(released[-1]) == found.rows - found.suppressed - found.ledger["held_back"]
            assert found.bound <= found.loss["loss"]
            assert found.classes == len({row[0] for row in released[-1].values()})
            checked = sqldeid.verify(asked, c, options=how)["people"]
            assert (checked.rows, checked.released, checked.k) == (len(rows), found.released, found.k)
            if "search" in CRITERIA[name]:
                assert len(found.layers) <= 5
    assert smallest_difference(released) >= K
    assert smallest_trace(released) >= K
    assert lone_rows(released) == 0
    kept = [len(set(a) & set(b)) / len(a) for a, b in pairwise(released)]
    assert min(kept) > 0.8  # who was released stays so, but for the classes that somebody left


def test_where_people_only_arrive_everybody_stays_and_they_come_in(tmp_path: Path) -> None:
    asked, how = job(tmp_path), options(tmp_path)
    released: list[Released] = []
    with duckdb.connect(":memory:", config={"threads": 1}) as c:
        for rows in Hospital(seed=5, arrivals=40, departures=0, corrections=0).nights(4):
            night(c, rows, asked, how)
            released.append(shown(c))
    for before, after in pairwise(released):
        assert before.items() <= after.items()  # with the labels that they had
    assert len(released[-1]) > len(released[0]) + 40


def test_without_a_ledger_the_same_nights_single_people_out(tmp_path: Path) -> None:
    asked, how = job(tmp_path), sqldeid.Options(replace=True, without_ledger=True, settings=Settings(threads=1))
    released = []
    with duckdb.connect(":memory:", config={"threads": 1}) as c:
        for rows in Hospital(seed=3).nights(4):
            night(c, rows, asked, how)
            released.append(shown(c))
    assert smallest_difference(released) == 1
    assert smallest_trace(released) == 1


def test_releases_of_both_kinds_are_held_to_each_other(tmp_path: Path) -> None:
    """Full-domain, local, local with other levels, full-domain again: one ledger for all."""
    how, released = options(tmp_path), []
    jobs = [
        job(tmp_path, local=False),
        job(tmp_path),
        job(tmp_path, search={"loss": "prec", "weights": {"sex": 9}}),
        job(tmp_path, local=False),
    ]
    with duckdb.connect(":memory:", config={"threads": 1}) as c:
        for asked, rows in zip(jobs, Hospital(seed=4).nights(4), strict=True):
            try:
                night(c, rows, asked, how)
            except VerificationError as error:
                assert "holds every row back" in error.message
                continue
            released.append(shown(c))
            sqldeid.verify(asked, c, options=how)
    assert len(released) >= 2
    assert smallest_difference(released) >= K
    assert smallest_trace(released) >= K


def test_verify_asks_the_ledger_who_is_there(tmp_path: Path) -> None:
    asked, how = job(tmp_path), options(tmp_path)
    with duckdb.connect(":memory:", config={"threads": 1}) as c:
        for rows in Hospital(seed=3).nights(3):
            night(c, rows, asked, how)
        with pytest.raises(VerificationError, match="name it with --ledger"):
            sqldeid.verify(asked, c)
        c.execute("DELETE FROM release.people WHERE mark = (SELECT MIN(mark) FROM release.people)")
        with pytest.raises(VerificationError):
            sqldeid.verify(asked, c, options=how)


def test_a_row_that_is_held_back_is_missed_nowhere_else(tmp_path: Path) -> None:
    """Whoever the ledger knows as released is; of a class that stands beside the source's nobody else may be."""
    asked, how = job(tmp_path), options(tmp_path)
    with duckdb.connect(":memory:", config={"threads": 1}) as c:
        for rows in Hospital(seed=3).nights(3):
            night(c, rows, asked, how)
        out = set(rows.id.astype(int)) - set(shown(c))
        assert out
        c.execute(
            "INSERT INTO release.people BY NAME SELECT * REPLACE (? AS mark) FROM release.people LIMIT 1", [min(out)]
        )
        with pytest.raises(VerificationError):
            sqldeid.verify(asked, c, options=how)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"privacy": {"suppression": "blank"}}, "blanked rows show who left a class"),
    ],
)
def test_what_the_ledger_cannot_keep_is_refused(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    with duckdb.connect(":memory:") as c, pytest.raises(JobError, match=said):
        night(c, next(iter(Hospital(seed=1).nights(1))), job(tmp_path, **more), options(tmp_path))


def test_an_older_ledger_gets_the_table_of_levels(tmp_path: Path) -> None:
    asked, how = job(tmp_path), options(tmp_path)
    with duckdb.connect(":memory:", config={"threads": 1}) as c:
        first, second = list(Hospital(seed=3).nights(2))
        night(c, first, job(tmp_path, local=False), how)
        with duckdb.connect(str(tmp_path / "ledger.duckdb")) as ledger:
            ledger.execute("DROP TABLE levels")
            ledger.execute("DELETE FROM facts WHERE name LIKE 'rows of %'")  # which they did not tell, either
            ledger.execute("UPDATE facts SET value = '3' WHERE name = 'version'")
        night(c, second, job(tmp_path, local=False), replace(how))
        with duckdb.connect(str(tmp_path / "ledger.duckdb")) as ledger:
            assert ledger.execute("SELECT COUNT(*) FROM levels").fetchone() == (0,)
    assert asked.tables
