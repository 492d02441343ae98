"""Attacks with a control group are made where there are enough persons for one, and left out with the reason."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.tables.attacks.control import MOST_GROUPS
from sqldeid.tables.attacks.folding import MOST_ATTACKED

pytestmark = pytest.mark.usefixtures("control_groups")

COMPARED = {"singling_out", "linkability", "inference", "groups"}


@pytest.mark.parametrize("rows", [99, 100])
def test_from_a_hundred_persons_on(tmp_path: Path, rows: int) -> None:
    source = tmp_path / "d.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT i AS id, i % 4 AS a, i % 2 AS b, i % 3 AS s FROM RANGE({rows}) AS r(i)"
        )
    known = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    columns = {"a": known, "b": known, "s": {"role": "sensitive"}}
    table = {"source": "t", "person": "id", "columns": columns, "privacy": {"k": 3}}
    found = sqldeid.anonymize(sqldeid.Job.parse({"tables": {"t": table}}), source).to_dict()
    attacks = found["releases"]["t"]["attacks"]
    left_out = {one["attack"]: one["reason"] for one in attacks["left_out"]}
    if rows < 100:
        assert left_out.keys() >= COMPARED and not COMPARED & attacks.keys()
        assert all("fewer than 100 persons" in left_out[name] for name in COMPARED)
    else:
        assert not COMPARED & left_out.keys() and attacks.keys() >= COMPARED


KNOWN = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}


def test_a_secret_that_is_not_inferred_is_named(tmp_path: Path) -> None:
    """A known column is none to infer, and a list is none that is compared; nothing is left out in silence."""
    source = tmp_path / "d.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS id, i % 4 AS a, i % 2 AS b, i % 3 AS s, [i % 3] AS l FROM RANGE(200) AS r(i)"
        )
    sensitive = {"role": "sensitive"}
    columns = {"a": KNOWN, "b": KNOWN, "s": sensitive, "l": sensitive}
    table = {"source": "t", "person": "id", "columns": columns, "privacy": {"k": 3}, "secrets": ["a"]}
    result = sqldeid.anonymize(sqldeid.Job.parse({"tables": {"t": table}}), source)
    attacks = result.to_dict()["releases"]["t"]["attacks"]
    assert [one["column"] for one in attacks["inference"]["columns"]] == ["s"]
    named = {one["column"]: one["reason"] for one in attacks["left_out"] if "column" in one}
    assert "quasi-identifying" in named["a"] and "not compared" in named["l"] and len(named) == 2
    assert "Inferring values of l: values of its type are not compared" in result.to_html()


def test_of_hundreds_of_sensitive_columns_the_first_are_attacked(tmp_path: Path) -> None:
    """Each costs statements: the others are named; one that the job names in `secrets` is attacked in any place."""
    source, number = tmp_path / "d.duckdb", MOST_ATTACKED + 5
    made = ", ".join(f"i % {j + 2} AS s{j}" for j in range(number))
    with duckdb.connect(str(source)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT i AS id, i % 4 AS a, i % 2 AS b, {made} FROM RANGE(200) AS r(i)")
    columns = {"a": KNOWN, "b": KNOWN, **{f"s{j}": {"role": "sensitive"} for j in range(number)}}
    last = f"s{number - 1}"
    table = {"source": "t", "person": "id", "columns": columns, "privacy": {"k": 3}, "secrets": [last]}
    result = sqldeid.anonymize(sqldeid.Job.parse({"tables": {"t": table}}), source)
    attacks = result.to_dict()["releases"]["t"]["attacks"]
    attacked = [f"s{j}" for j in range(MOST_ATTACKED)] + [last]
    assert [one["column"] for one in attacks["inference"]["columns"]] == attacked
    assert [one["column"] for one in attacks["disclosure"]["columns"]] == attacked
    named = {one["column"]: one["reason"] for one in attacks["left_out"] if "column" in one}
    assert named.keys() == columns.keys() - {"a", "b", *attacked}
    assert all("name it in secrets" in reason for reason in named.values())
    assert f"; {len(named)} other columns not attacked" in dict(result.releases["t"].attacks.facts())["Learnt"]


def test_of_many_groups_those_who_are_hit_most_are_told(tmp_path: Path) -> None:
    """A column of 80 bands; of whoever is in one of the last ten it follows what his sensitive value is."""
    source = tmp_path / "d.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS id, i % 160 AS a, IF(i % 160 >= 140, i % 160 // 2, i // 160 % 2) AS s "
            "FROM RANGE(4000) AS r(i)"
        )
    columns = {"a": {**KNOWN, "hierarchy": {"bands": [2, 200]}}, "s": {"role": "sensitive"}}
    table = {"source": "t", "person": "id", "columns": columns, "privacy": {"k": 3}}
    found = sqldeid.anonymize(sqldeid.Job.parse({"tables": {"t": table}}), source).to_dict()
    told: dict[str, set[str]] = {}
    for one in found["releases"]["t"]["attacks"]["groups"]["groups"]:
        told.setdefault(one["attack"], set()).add(one["value"])
    assert {len(values) for values in told.values()} == {MOST_GROUPS}
    last = {value for value in told["inference"] if 140 <= int(value[1:].partition(",")[0]) < 160}
    assert len(last) == 10
