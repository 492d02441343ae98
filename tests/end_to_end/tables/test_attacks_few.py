"""Attacks with a control group are made where there are enough persons for one, and left out with the reason."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sqldeid

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


def test_a_secret_that_is_not_inferred_is_named(tmp_path: Path) -> None:
    """A known column is none to infer, and a list is none that is compared; nothing is left out in silence."""
    source = tmp_path / "d.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS id, i % 4 AS a, i % 2 AS b, i % 3 AS s, [i % 3] AS l FROM RANGE(200) AS r(i)"
        )
    known = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    sensitive = {"role": "sensitive"}
    columns = {"a": known, "b": known, "s": sensitive, "l": sensitive}
    table = {"source": "t", "person": "id", "columns": columns, "privacy": {"k": 3}, "secrets": ["a"]}
    result = sqldeid.anonymize(sqldeid.Job.parse({"tables": {"t": table}}), source)
    attacks = result.to_dict()["releases"]["t"]["attacks"]
    assert [one["column"] for one in attacks["inference"]["columns"]] == ["s"]
    named = {one["column"]: one["reason"] for one in attacks["left_out"] if "column" in one}
    assert "quasi-identifying" in named["a"] and "not compared" in named["l"] and len(named) == 2
    assert "Inferring values of l: values of its type are not compared" in result.to_html()
