"""Whose a row is: a person's, one of many of a person, or a person by the job's word."""

from __future__ import annotations

from typing import Any

import pytest

from sqldeid.errors import JobError
from sqldeid.job import Job

AGE = {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10]}}
SERIES = {"source": "s", "person": "id", "time": "t", "variable": "v", "value": "x", "link": "t"}


def table(**more: Any) -> dict[str, Any]:
    made = {"source": "s", "person": "id", "columns": {"age": AGE}, "privacy": {"k": 2}} | more
    return {name: value for name, value in made.items() if value is not None}


def many(**more: Any) -> dict[str, Any]:
    return table(rows="many", **more)


def refused(part: dict[str, Any], **job: Any) -> str:
    with pytest.raises(JobError) as caught:
        Job.parse({"tables": {"t": part}, **job})
    assert caught.value.code == 2
    return caught.value.message


def test_a_table_says_whose_its_rows_are() -> None:
    assert Job.parse({"tables": {"t": table()}}).tables["t"].rows == "one"
    said = refused(table(person=None))
    assert "tables.t.person: missing" in said and "rows_are_persons = true" in said
    assert Job.parse({"tables": {"t": table(person=None, rows_are_persons=True)}}).warnings()
    assert "tables.t.rows_are_persons: is for tables without a person key" in refused(table(rows_are_persons=True))
    assert "rows_are_persons" in refused(table(person=None, rows_are_persons=False))


def test_many_rows_of_a_person_are_taken() -> None:
    job = Job.parse({"tables": {"t": many()}})
    assert job.tables["t"].many and not job.warnings()


HIDDEN = {"role": "sensitive"}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"person": None, "rows_are_persons": True}, "tables.t.rows:"),
    ({"columns": {"age": AGE, "id": {"role": "identifying", "pseudonym": True}}}, "tables.t.columns.id.pseudonym"),
    ({"columns": {"age": AGE, "stay": {"role": "identifying", "pseudonym": True}}}, "tables.t.columns.stay.pseudonym"),
    ({"columns": {"age": AGE, "seen": {"role": "insensitive", "shift": "person"}}}, "tables.t.columns.seen.shift"),
    ({"privacy": {"k": 2, "suppression": "blank"}}, "tables.t.privacy.suppression"),
    ({"columns": {"age": AGE, "ill": HIDDEN}, "privacy": {"k": 2, "m_concealing": {"m": 0.5, "known": {"ill": 0.1}}}},
     "tables.t.privacy.m_concealing"),
    ({"columns": {"age": AGE, "ill": HIDDEN, "b": HIDDEN},
      "privacy": {"k": 2, "l_diversity": {"column": "ill", "l": 2, "scope": "joint"}}},
     "tables.t.privacy.l_diversity.scope"),
    ({"search": {"method": "mondrian"}}, "tables.t.search.method"),
    ({"search": {"method": "inverse-ola", "max_loss": 0.5}}, "tables.t.search.method"),
    ({"search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.2, "epsilon": 1.0}}}, "tables.t.search.method"),
    ({"view": "computed"}, "tables.t.view"),
]  # fmt: skip


@pytest.mark.parametrize("more, key", BAD, ids=[key for _, key in BAD])
def test_what_links_rows_or_counts_them_as_persons_is_refused(more: dict[str, Any], key: str) -> None:
    assert any(key in line and "many" in line for line in refused(many(**more)).splitlines())


def test_neither_tables_nor_series_are_linked_to_many_rows_of_a_person() -> None:
    key = {"role": "identifying", "pseudonym": True}
    linked = many(columns={"age": AGE, "id": key}, link="u")
    said = refused(linked, tables={"t": linked, "u": table(columns={"age": AGE, "id": key})})
    assert "tables.t.link: does not go with rows" in said
    other = table(columns={"age": AGE, "id": key}, link="t")
    said = refused(linked, tables={"t": many(columns={"age": AGE, "id": key}), "u": other})
    assert "tables.t.rows" in said or "tables.t.columns.id.pseudonym" in said
    assert 'series.v.link: tables.t has rows = "many"' in refused(many(), series={"v": SERIES})
