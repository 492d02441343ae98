"""What readers undo with certainty: no more than all sources of a release agree on, and how much of that is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sqldeid
from sqldeid.errors import NoSolutionError
from sqldeid.job import Job
from sqldeid.tables.attacks.base import HELD_BACK
from sqldeid.tables.attacks.downcoding import PROVEN_OF, PROVING
from sqldeid.tables.search import search
from tests.support.downcoded import Asked, Released, Rows, by_k, compare, full_domain, local
from tests.support.oracle import exhaustive, problem_of, random_table
from tests.support.sources import insert

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
    (by_k, Asked((AGE,), 2, 6, allowed=1, sensitive=2), (2, 4), (6, 10)),
    (by_k, Asked((SEX, SEX), 2, 5, allowed=1, sensitive=2), (4, 8), (6, 10)),
    (by_k, Asked((SEX, WARD), 2, 5, allowed=1, loss="prec", sensitive=2), (6, 9), (8, 11)),
    (by_k, Asked((SEX, WARD), 2, 5, allowed=2, loss="dm_star", sensitive=2), (0, 0), (3, 3)),
    (by_k, Asked((SEX, WARD), 2, 5, allowed=1, sensitive=2), (6, 9), (8, 11)),
]
"""How levels are chosen, what is asked, and of the columns of all releases' classes: those of which it is found and is
certain how many rows have each finer value, and those of which it is found and is certain that each is there."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("release", "asked", "exact", "present"), COUNTED)
def test_what_is_called_certain_is_the_same_in_all_sources_of_the_release(
    release: Release, asked: Asked, exact: tuple[int, int], present: tuple[int, int]
) -> None:
    true, fast = compare(asked, release)
    assert (fast["exact"], true["exact"]) == exact
    assert (fast["present"], true["present"]) == present


@pytest.mark.sampled(1)
@pytest.mark.parametrize("loss", ["loss", "dm_star"])
def test_who_forgets_what_other_criteria_suppressed_is_wrong(loss: str) -> None:
    asked = Asked(
        (SEX, WARD), 2, 4 if loss == "loss" else 5, allowed=0 if loss == "loss" else 2, loss=loss, sensitive=2
    )
    with pytest.raises(AssertionError):
        compare(asked, partial(by_k, told=False))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", PROVING)
def test_a_node_that_was_proven_within_a_limit_is_the_node_without_one(method: str) -> None:
    """Ties included, whatever the limit: so what a reader concludes is the same."""
    proven = 0
    for seed in range(60):
        table, rng = random_table(seed), np.random.default_rng(seed)
        name, allowed = PROVEN_OF[seed % len(PROVEN_OF)], min(int(rng.integers(0, 6)), table.rows)
        try:
            outcome = search(method, problem_of(table, name, allowed, checks_limit=int(rng.integers(1, 40))))
        except NoSolutionError:
            continue
        proven += outcome.optimal
        assert not outcome.optimal or outcome.node == exhaustive(table, name, allowed)
    assert proven > 5


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
        insert(connection, "people", [(i, *row) for i, row in enumerate(rows)])
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
    found, result = attacked(tmp_path, [*rows, ("x", "x")])
    assert found["downcoding"]["rows"]["value"] == found["downcoding"]["present"]["value"] == 0
    assert found["downcoding"]["bits"]["low"] == 0
    said = dict(result.releases["people"].attacks.facts())["Undone"]
    assert said.startswith("nothing: ")


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_a_limit_that_ended_nothing_costs_no_attack(method: str, tmp_path: Path) -> None:
    rows = [("x", "x"), ("x", "y"), ("y", "y"), ("x", "y")]
    found = []
    for limits in ({}, {"time_limit": 600}):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        found.append(attacked(folder, rows, method=method, **limits)[0]["downcoding"])
    assert found[0] == found[1]


def test_a_limit_that_ended_the_search_costs_the_attack(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    rows = [tuple(random.choice(["x", "y"], 2).tolist()) for _ in range(9)]
    found, result = attacked(tmp_path, [*rows, ("y", "x")], checks_limit=1)
    assert not result.releases["people"].search.optimal
    assert "are not proven the best" in {one["attack"]: one["reason"] for one in found["left_out"]}["downcoding"]


ILL = (
    "ALTER TABLE people ADD COLUMN ill VARCHAR; UPDATE people SET ill = CASE WHEN id % 2 = 0 THEN 'flu' ELSE 'gout' END"
)


def with_illness(path: Path, choose: str) -> Job:
    """The job with a sensitive column, l-diverse; the node is chosen by k alone or by all criteria."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(ILL)
    asked = job(path).model_dump(mode="json", by_alias=True, exclude_unset=True)
    asked["tables"]["people"] |= {"search": {"choose": choose}}
    asked["tables"]["people"]["columns"]["ill"] = {"role": "sensitive"}
    privacy = {"k": 2, "l_diversity": {"column": "ill", "l": 2}}
    asked["tables"]["people"]["privacy"] = privacy | ({"criteria_limit": 0.9} if choose == "by-k" else {})
    return Job.parse(asked, folder=path.parent)


def test_a_node_by_k_alone_is_attacked_as_for_k(tmp_path: Path) -> None:
    """No class fails the other criterion, so what is undone is what k alone would give."""
    rows = [("x", "x"), ("x", "y"), ("y", "x"), ("y", "y")]
    path = people(tmp_path, rows)
    found = sqldeid.anonymize(with_illness(path, "by-k"), path).releases["people"]
    reasons = {one.attack: one.reason for one in found.attacks.left_out}
    assert found.search.suppressed_beyond_k == 0 and "downcoding" not in reasons
    alone = sqldeid.anonymize(job(path), path, options=sqldeid.Options(replace=True)).releases["people"]
    assert alone.node == found.node and alone.attacks.downcoding == found.attacks.downcoding


def test_a_node_by_several_criteria_is_not_attacked(tmp_path: Path) -> None:
    path = people(tmp_path, [("x", "x"), ("x", "y"), ("y", "x"), ("y", "y")])
    found = sqldeid.anonymize(with_illness(path, "by-all"), path).releases["people"]
    reasons = {one.attack: one.reason for one in found.attacks.left_out}
    assert reasons["downcoding"] == "which of several criteria finer levels failed is not certain"


@pytest.mark.usefixtures("control_groups")
@pytest.mark.parametrize("method", ["frontier", "local"])
def test_a_ledger_costs_attacks_only_where_it_held_rows_back(method: str, tmp_path: Path) -> None:
    rows = [(a, b) for a in "xy" for b in "xy" for _ in range(40)]
    path, key = people(tmp_path, rows), tmp_path / "key"
    key.write_text("".join(f"{i:02x}" for i in range(7, 39)))
    how = sqldeid.Options(replace=True, ledger=tmp_path / "ledger.duckdb", key_file=key)
    first = sqldeid.anonymize(job(path, method=method), path, options=how).releases["people"]
    reasons = {one.attack: one.reason for one in first.attacks.left_out if not one.column}
    assert first.ledger["held_back"] == 0 and HELD_BACK not in reasons.values()
    assert first.attacks.downcoding is not None
    assert ("singling_out" in reasons) == (method == "local")  # nobody was held out of it
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO people VALUES (1000, 'x', 'x')")
    second = sqldeid.anonymize(job(path, method=method), path, options=how).releases["people"]
    assert second.ledger["held_back"] == 1 and second.attacks.downcoding is None
    told = dict(second.attacks.facts())
    assert told["Undone"].startswith("not attacked") or HELD_BACK in {one.reason for one in second.attacks.left_out}
    assert told["Learnt"].count("a ledger") <= 1


def test_what_is_not_certain_is_left_out_with_its_reason(tmp_path: Path) -> None:
    rows = [("x", "x"), ("x", "y")]
    for how in ({"method": "datafly"}, {"method": "local", "layers": 1}, {"loss": "height"}):
        folder = tmp_path / "_".join(map(str, how.values()))
        folder.mkdir()
        found, _ = attacked(folder, rows, **how)
        reasons = {one["attack"]: one["reason"] for one in found["left_out"]}
        assert "downcoding" not in found
        assert reasons["downcoding"].endswith(("certain", "proves nothing of finer levels", "is proven"))


def test_no_attack_is_made_where_the_job_wants_none(tmp_path: Path) -> None:
    path = people(tmp_path, [("x", "x"), ("x", "y")])
    asked = job(path).model_dump(mode="json", by_alias=True, exclude_unset=True)
    asked["tables"]["people"]["attacks"] = False
    result = sqldeid.anonymize(Job.parse(asked, folder=tmp_path), path)
    assert result.releases["people"].attacks is None and "attacks" not in result.to_dict()["releases"]["people"]
