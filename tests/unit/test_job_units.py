"""Whose a row is: a person's by a key, or a person by the job's word."""

from __future__ import annotations

from typing import Any

import pytest

from sqldeid.errors import JobError
from sqldeid.job import Job

AGE = {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10]}}


def table(**more: Any) -> dict[str, Any]:
    made = {"source": "s", "person": "id", "columns": {"age": AGE}, "privacy": {"k": 2}} | more
    return {name: value for name, value in made.items() if value is not None}


def refused(part: dict[str, Any], **job: Any) -> str:
    with pytest.raises(JobError) as caught:
        Job.parse({"tables": {"t": part}, **job})
    assert caught.value.code == 2
    return caught.value.message


def test_a_table_says_whose_its_rows_are() -> None:
    assert Job.parse({"tables": {"t": table()}}).tables["t"].rows_are_persons is None
    said = refused(table(person=None))
    assert "tables.t.person: missing" in said and "rows_are_persons = true" in said
    assert Job.parse({"tables": {"t": table(person=None, rows_are_persons=True)}}).warnings()
    assert "tables.t.rows_are_persons: is for tables without a person key" in refused(table(rows_are_persons=True))
    assert "rows_are_persons" in refused(table(person=None, rows_are_persons=False))
