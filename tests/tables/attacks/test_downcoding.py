"""What readers undo with certainty: no more than all sources of a release agree on, and how much of that is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sqldeid
from sqldeid.job import Job
from tests.support.downcoded import Asked, Released, Rows, compare, full_domain, local

SEX = ((0, 1), (0, 0))
AGE = ((0, 1, 2, 3), (0, 0, 1, 1), (0, 0, 0, 0))
WARD = ((0, 1, 2), (0, 0, 0))
Release = Callable[[Asked, Rows], Released | None]
COUNTED: list[tuple[Release, Asked, tuple[int, int], tuple[int, int]]] = [
    (full_domain, Asked((SEX, WARD), 2, 5), (0, 0), (4, 4)),
    (full_domain, Asked((SEX, WARD), 2, 5, allowed=2), (0, 0), (2, 2)),
    (full_domain, Asked((SEX, AGE), 2, 4, allowed=1, loss="prec"), (0, 0), (6, 6)),
    (full_domain, Asked((SEX, SEX), 3, 8, allowed=1), (0, 0), (10, 10)),
    (full_domain, Asked((SEX, WARD), 2, 5, allowed=1, loss="dm_star"), (6, 6), (8, 8)),
    (full_domain, Asked((SEX, WARD), 2, 5, allowed=1, loss="entropy"), (6, 6), (8, 8)),
    (full_domain, Asked((AGE,), 2, 8, allowed=3), (2, 2), (4, 4)),
    (local, Asked((SEX, WARD), 2, 5), (18, 56), (46, 46)),
    (local, Asked((SEX, WARD), 2, 5, allowed=2), (18, 38), (18, 26)),
    (local, Asked((AGE,), 2, 7, allowed=1), (24, 24), (30, 30)),
    (local, Asked((SEX, AGE), 2, 4, loss="prec"), (178, 178), (194, 194)),
    (local, Asked((SEX, SEX), 3, 8), (0, 11), (62, 62)),
]
"""How levels are chosen, what is asked, and of the columns of all releases' classes: those of which it is found and is
certain how many rows have each finer value, and those of which it is found and is certain that each is there."""


@pytest.mark.sampled(11)
@pytest.mark.parametrize(("release", "asked", "exact", "present"), COUNTED)
def test_what_is_called_certain_is_the_same_in_all_sources_of_the_release(
    release: Release, asked: Asked, exact: tuple[int, int], present: tuple[int, int]
) -> None:
    true, fast = compare(asked, release)
    assert (fast["exact"], true["exact"]) == exact
    assert (fast["present"], true["present"]) == present


@pytest.mark.deep
def test_who_takes_local_classes_for_minimal_is_wrong() -> None:
    """That each finer value has fewer than k rows, which peeling guarantees, is no fact after improvement."""
    asked, wrong = Asked((SEX, AGE), 2, 6), 0
    for rows in asked.sources():
        released = local(asked, rows)
        for c in {c for c in released.classes if c is not None}:
            members = [r for r, mine in zip(rows, released.classes, strict=True) if mine == c]
            for j, (level, _) in enumerate(c):
                finer = [asked.trees[j][level - 1][r[j]] for r in members] if level else []
                wrong += any(finer.count(g) >= asked.k for g in finer)
    assert wrong > 0


def job(source: Path, **search: object) -> Job:
    columns = {
        "a": {"role": "quasi-identifying", "hierarchy": "two.csv"},
        "b": {"role": "quasi-identifying", "hierarchy": "two.csv"},
    }
    table = {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 2}, "search": search}
    return Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=source.parent)


def people(folder: Path, rows: list[tuple[str, str]]) -> Path:
    (folder / "two.csv").write_text("x;*\ny;*\n")
    path = folder / "source.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, a VARCHAR, b VARCHAR)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
    return path


def attacked(folder: Path, rows: list[tuple[str, str]], **search: object) -> tuple[dict[str, Any], sqldeid.Result]:
    path = people(folder, rows)
    result = sqldeid.anonymize(job(path, **search), path)
    found = json.loads(json.dumps(result.to_dict(), default=str))["releases"]["people"]["attacks"]
    return found, result


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_a_class_whose_finer_counts_are_certain_is_found(method: str, tmp_path: Path) -> None:
    rows = [("x", "x"), ("x", "y")]
    found, result = attacked(tmp_path, rows, method=method)
    assert found["downcoding"]["rows"]["value"] == 1 and found["downcoding"]["cells"]["value"] == 1
    assert "Undone" in dict(result.releases["people"].attacks.facts())
    assert "attacks" not in json.dumps(result.to_public()) and "downcoding" not in json.dumps(result.to_public())


def test_nothing_is_certain_of_independent_columns_in_large_classes(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = [tuple(random.choice(["x", "y"], 2).tolist()) for _ in range(400)]
    found, _ = attacked(tmp_path, [*rows, ("x", "x")])
    assert found["downcoding"]["rows"]["value"] == found["downcoding"]["present"]["value"] == 0
    assert found["downcoding"]["bits"]["low"] == 0


def test_what_is_not_certain_is_left_out_with_its_reason(tmp_path: Path) -> None:
    rows = [("x", "x"), ("x", "y")]
    for search in ({"time_limit": 60}, {"method": "datafly"}, {"method": "local", "layers": 1}, {"loss": "height"}):
        folder = tmp_path / "_".join(map(str, search.values()))
        folder.mkdir()
        found, _ = attacked(folder, rows, **search)
        reasons = {one["attack"]: one["reason"] for one in found["left_out"]}
        assert "downcoding" not in found
        assert reasons["downcoding"].endswith(("certain", "proves nothing of finer levels", "is proven"))


def test_no_attack_is_made_where_the_job_wants_none(tmp_path: Path) -> None:
    path = people(tmp_path, [("x", "x"), ("x", "y")])
    asked = job(path).model_dump(mode="json", by_alias=True, exclude_unset=True)
    asked["tables"]["people"]["attacks"] = False
    result = sqldeid.anonymize(Job.parse(asked, folder=tmp_path), path)
    assert result.releases["people"].attacks is None and "attacks" not in result.to_dict()["releases"]["people"]
