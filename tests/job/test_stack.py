"""What a job may ask of child tables: rules of stacks, the columns that they make, and messages that name the key."""

from __future__ import annotations

from typing import Any

import pytest

from sqldeid.errors import JobError
from sqldeid.job import Job

PROC: dict[str, Any] = {
    "from": "procedures",
    "on": "id",
    "value": "code",
    "order": "seq",
    "first": 3,
    "role": "quasi-identifying",
    "hierarchy": "mimic3/procedure",
}
SEX = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}


def job_of(stack: dict[str, Any], /, **table: Any) -> Job:
    made = {"source": "people", "person": "id", "columns": {"sex": SEX}, "privacy": {"k": 2}, "stack": {"proc": stack}}
    return Job.parse({"tables": {"t": made | table}})


def changed(**changes: Any) -> dict[str, Any]:
    """The stack with these keys; None takes one away."""
    return {k: v for k, v in (PROC | changes).items() if v is not None}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ["proc_1", "proc_2", "proc_3"]),
        ({"first": None, "items": [1, 5]}, ["proc_1", "proc_5"]),
        ({"first": None, "items": [2, 5], "unordered": True}, ["proc_1", "proc_2"]),
        ({"first": None, "aggregate": "last"}, ["proc"]),
        ({"first": None, "order": None, "value": None, "aggregate": "count"}, ["proc"]),
    ],
)
def test_a_stack_names_its_columns(changes: dict[str, Any], names: list[str]) -> None:
    table = job_of(changed(**changes)).tables["t"]
    assert list(table.every_column) == ["sex", *names]
    assert {table.every_column[n].role for n in names} == {"quasi-identifying"}
    assert [table.every_column[n].hierarchy for n in names] == ["mimic3/procedure"] * len(names)


def test_columns_say_otherwise_of_one_and_rules_know_them_all() -> None:
    columns = {"sex": SEX, "proc_2": {"role": "sensitive"}}
    privacy = {
        "k": 2,
        "l_diversity": {"column": "proc_2", "l": 2},
        "m_concealing": {"m": 0.5, "known": {"proc_2": 0.1}},
    }
    table = job_of(PROC, columns=columns, privacy=privacy, search={"weights": {"proc_1": 2.0}}).tables["t"]
    assert [c.role for c in table.every_column.values()] == [
        "quasi-identifying",
        "sensitive",
        *["quasi-identifying"] * 2,
    ]
    assert job_of(PROC, columns={}).tables["t"].every_column["proc_1"].role == "quasi-identifying"
    with pytest.raises(JobError, match="none is quasi-identifying"):
        job_of(changed(role="sensitive", hierarchy=None), columns={})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"first": None}, "stack.proc: must hold exactly one of first, items, aggregate; it has none of them"),
        ({"items": [1]}, "stack.proc: must hold exactly one of first, items, aggregate; it has first and items"),
        ({"first": 0}, "stack.proc.first: must be a whole number, at least 1 and at most 1000"),
        ({"first": 1001}, "stack.proc.first: must be a whole number"),
        ({"first": None, "items": [5, 1]}, "stack.proc.items: must rise"),
        ({"first": None, "items": [1, 1]}, "stack.proc.items: must rise"),
        ({"first": None, "items": []}, "stack.proc.items: must be a list, not empty"),
        ({"value": None}, "stack.proc.value: missing"),
        ({"order": None}, "stack.proc.order: missing; which row is first must not be an accident"),
        ({"first": None, "aggregate": "max"}, 'stack.proc.order: has no meaning for aggregate = "max"'),
        ({"first": None, "aggregate": "sum"}, "stack.proc.aggregate: must be one of"),
        ({"first": None, "aggregate": "last", "unordered": True}, "stack.proc.unordered: goes with first or items"),
        ({"on": []}, "stack.proc.on: must be text, or a list of texts, not empty"),
        ({"on": 3}, "stack.proc.on: must be text, or a list of texts, not empty"),
        ({"through": "admissions"}, "stack.proc.through_on: missing"),
        ({"through_on": "hadm"}, "stack.proc.through_on: goes with through alone"),
        ({"on_as": ["a", "b"]}, "stack.proc.on_as: has 2 of the 1 names of on"),
        ({"through_on_as": "hadm"}, "stack.proc.through_on_as: goes with through alone"),
        (
            {"through": "a", "through_on": ["h", "i"], "through_on_as": "x"},
            "stack.proc.through_on_as: has 1 of the 2 names of through_on",
        ),
        ({"pick": "first"}, "stack.proc.pick: goes with through alone"),
        ({"through": "a", "through_on": "h", "pick": "first"}, "stack.proc.pick_order: missing"),
        ({"through": "a", "through_on": "h", "pick_then": "x"}, "stack.proc.pick_then: goes with pick alone"),
        (
            {"through": "a", "through_on": "h", "pick": "last", "pick_order": "x", "pick_until": "y"},
            'stack.proc.pick_until: goes with pick = "longest" alone',
        ),
        ({"role": "sensitive"}, "stack.proc.hierarchy: is for quasi-identifying columns"),
        ({"hierarchy": None}, "stack.proc.hierarchy: missing"),
        ({"hierarchy": {"bands": [5, 2]}}, "stack.proc.hierarchy.bands: must rise"),
        ({"frist": 3}, 'stack.proc: unknown key "frist"; did you mean "first"?'),
        ({"from": None}, "stack.proc.from: missing; it must be text"),
    ],
)
def test_what_does_not_go_together_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError) as caught:
        job_of(changed(**changes))
    assert f"tables.t.{said}" in caught.value.message


def test_two_stacks_make_no_column_of_one_name() -> None:
    count = {"from": "c", "on": "id", "aggregate": "count", "role": "sensitive"}
    with pytest.raises(JobError, match="would make a column that stack proc makes"):
        job_of(PROC, stack={"proc": PROC, "PROC_2": count})
    with pytest.raises(JobError, match=r"columns\.PROC_1: another column has this name"):
        job_of(PROC, columns={"sex": SEX, "PROC_1": {"role": "sensitive"}})
    with pytest.raises(JobError, match="a computed view reads one table; stacks need a snapshot"):
        Job.parse(
            {
                "release": {"as": "view"},
                "tables": {
                    "t": {
                        "source": "p",
                        "person": "id",
                        "columns": {"sex": SEX},
                        "view": "computed",
                        "stack": {"proc": PROC},
                        "privacy": {"k": 2},
                    }
                },
            }
        )
