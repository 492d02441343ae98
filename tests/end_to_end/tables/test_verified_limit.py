"""A release of which more is suppressed than the job allows by now is not that of the job."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.errors import VerificationError

TABLE: dict[str, Any] = {
    "source": "people",
    "person": "id",
    "columns": {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [10, 50]}},
        "illness": {"role": "sensitive"},
    },
    "privacy": {"k": 3, "suppression_limit": 0.5},
    "search": {"loss": "prec"},
}


def job(**privacy: object) -> sqldeid.Job:
    by = {"choose": "by-k"} if "criteria_limit" in privacy else {}
    table = {**TABLE, "privacy": {**TABLE["privacy"], **privacy}, "search": {**TABLE["search"], **by}}
    return sqldeid.Job.parse({"tables": {"people": table}})


@pytest.fixture
def people() -> duckdb.DuckDBPyConnection:
    """20 of 100 persons stand alone by decade, and 4 more are alike in age and illness."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE people AS SELECT i AS id, "
        "CASE WHEN i < 20 THEN 100 + 10 * i WHEN i < 24 THEN 30 ELSE 50 END AS age, "
        "CASE WHEN i < 24 THEN 'x' ELSE 'y' || (i % 4) END AS illness FROM range(100) AS r(i)"
    )
    return connection


@pytest.mark.parametrize("suppression", ["drop", "blank"])
def test_verify_holds_a_release_to_the_limit_of_the_job(suppression, people):
    made = sqldeid.anonymize(job(suppression=suppression), people).releases["people"]
    assert made.suppressed == 20
    for enough in (0.5, 0.2):
        asked = job(suppression=suppression, suppression_limit=enough)
        assert sqldeid.verify(asked, people)["people"].suppressed == 20
    with pytest.raises(VerificationError, match=r"20.00 % of the rows are suppressed.* allow 19 %") as refused:
        sqldeid.verify(job(suppression=suppression, suppression_limit=0.19), people)
    assert refused.value.key == "tables.people.privacy.suppression_limit"


def test_both_limits_count_together(people):
    diverse = {"l_diversity": {"column": "illness", "l": 2}}
    made = sqldeid.anonymize(job(**diverse, criteria_limit=0.5), people).releases["people"]
    assert made.suppressed == 24
    assert sqldeid.verify(job(**diverse, suppression_limit=0.2, criteria_limit=0.04), people)["people"].suppressed == 24
    with pytest.raises(VerificationError, match=r"suppression_limit and criteria_limit of the job allow 23 %"):
        sqldeid.verify(job(**diverse, suppression_limit=0.2, criteria_limit=0.03), people)
