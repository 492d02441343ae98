"""A suppression limit of 1: any number of rows may be suppressed, even all of them."""

from __future__ import annotations

import duckdb
import pytest

import sqldeid

ROWS = 40


def released(connection: duckdb.DuckDBPyConnection, k: int, suppression: str, method: str) -> tuple[int, int]:
    """Rows released and suppressed, of a release that was checked again."""
    bands = {"role": "quasi-identifying", "hierarchy": {"bands": [2, 4]}}
    table = {
        "source": "people",
        "person": "id",
        "columns": {"a": bands, "b": bands},
        "privacy": {"k": k, "suppression_limit": 1, "suppression": suppression},
        "search": {"method": method},
    }
    job = sqldeid.Job.parse({"release": {"schema": "out"}, "tables": {"people": table}})
    result = sqldeid.anonymize(job, connection, options=sqldeid.Options(replace=True, certificate=True))
    sqldeid.verify(job, connection)
    if method != "ola":
        sqldeid.verify_certificates(job, connection, {"people": result.tables["people"].certificate})
    found = connection.sql("SELECT count(*) FROM out.people").fetchall()[0][0]
    return found, result.tables["people"].suppressed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["frontier", "best-first", "flash", "ola"])
@pytest.mark.parametrize("suppression", ["drop", "blank"])
@pytest.mark.parametrize("k", [2, 30])
def test_any_number_of_rows_may_be_suppressed(k, suppression, method):
    connection = duckdb.connect()
    connection.sql(f"CREATE TABLE people AS SELECT i AS id, i % 7 AS a, i % 3 AS b FROM range({ROWS}) r(i)")
    rows, suppressed = released(connection, k, suppression, method)
    assert rows == (ROWS if suppression == "blank" else ROWS - suppressed)
    if k > 2 and method == "ola":  # the finest node that passes: at the original every class is too small
        assert suppressed == ROWS


def test_more_than_all_is_refused():
    privacy = {"k": 2, "suppression_limit": 1.0001}
    with pytest.raises(sqldeid.JobError, match="suppression_limit"):
        sqldeid.Job.parse({"tables": {"t": {"source": "people", "rows_are_persons": True, "privacy": privacy}}})
