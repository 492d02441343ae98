"""A run with `uncovered = "top"` warns where a rule does not read a good part of the rows, and shows no value."""

from __future__ import annotations

import duckdb
import pytest

import sqldeid


def release(path, other: int, search: dict[str, object], hierarchy: object, name: str = "day"):
    """A run over 200 rows, `other` of them with dates in another format."""
    with duckdb.connect(str(path / "d.duckdb")) as c:
        c.execute(
            "CREATE TABLE t AS SELECT i AS id, CASE WHEN i < ? THEN '17.03.2025' ELSE '2025-0' || (1 + i % 2) || '-11' "
            "END AS day FROM range(200) AS r(i)",
            [other],
        )
    column = {"role": "quasi-identifying", "hierarchy": hierarchy, "uncovered": "top"}
    table = {"source": "t", "person": "id", "columns": {name: column}, "privacy": {"k": 2}, "search": search}
    job = {"release": {"into": str(path / "o.duckdb")}, "tables": {"t": table}}
    found = sqldeid.anonymize(sqldeid.Job.parse(job), path / "d.duckdb")
    return [w for w in found.releases["t"].warnings if "hides" in w]


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_half_a_column_that_becomes_a_star_is_warned_of(tmp_path, method):
    (said,) = release(tmp_path, 100, {"method": method}, {"dates": ["month", "year"]})
    assert said.startswith('tables.t.columns.day.uncovered: "top" hides 100 of 200 rows (50.0 %) as "*"')
    assert "strptime(" in said and "17.03" not in said and "set uncovered" not in said


def test_a_few_such_rows_and_a_file_are_not_warned_of(tmp_path):
    assert release(tmp_path, 10, {}, {"dates": ["month", "year"]}) == []  # just 5 %
    (tmp_path / "d.csv").write_text("2025-01-11;2025\n")
    (tmp_path / "o.duckdb").unlink()
    (tmp_path / "d.duckdb").unlink()
    assert release(tmp_path, 100, {}, str(tmp_path / "d.csv")) == []


def test_the_proposed_line_mends_the_column(tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as c:
        c.execute(
            "CREATE TABLE t AS SELECT i AS id, CASE WHEN i < 9 THEN '17.03.2025' ELSE '2025-03-11' END AS \"my day\" "
            "FROM range(20) AS r(i)"
        )
    table = {"person": "id", "privacy": {"k": 2}}
    table["columns"] = {"my day": {"role": "quasi-identifying", "hierarchy": {"dates": ["month"]}}}
    job = {"release": {"into": str(tmp_path / "o.duckdb")}, "tables": {"t": {**table, "source": "t"}}}
    with pytest.raises(sqldeid.HierarchyError, match="its type is text") as told:
        sqldeid.anonymize(sqldeid.Job.parse(job), tmp_path / "d.duckdb")
    line = told.value.message.split("in DuckDB by ")[1].split("; on Postgres")[0]
    job["tables"]["t"]["source"] = {"query": f'SELECT id, {line} AS "my day" FROM t'}
    assert sqldeid.anonymize(sqldeid.Job.parse(job), tmp_path / "d.duckdb").tables["t"].released == 20
