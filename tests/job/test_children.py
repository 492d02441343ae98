"""Child tables in the job: what they say, what their parent must be, and what is refused with its fix."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from sqldeid.errors import JobError
from sqldeid.job import Job

PSEUDONYM = {"role": "identifying", "pseudonym": True}
QI = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}


def parent(**more: Any) -> dict[str, Any]:
    part = {"source": "t", "person": "id", "columns": {"id": PSEUDONYM, "x": QI}, "privacy": {"k": 3}}
    return deepcopy(part | more)


def child(**more: Any) -> dict[str, Any]:
    part = {
        **{"source": "c", "person": "id", "parent": "p", "items": "code", "known": 2},
        **{"columns": {"code": QI}, "privacy": {"k": 3, "suppression_limit": 0.1}},
    }
    return {key: value for key, value in deepcopy(part | more).items() if value is not None}


def refusal(**tables: dict[str, Any]) -> str:
    with pytest.raises(JobError) as refused:
        Job.parse({"tables": tables})
    return refused.value.message


def test_a_child_and_its_parent_are_one_for_whoever_compares() -> None:
    job = Job.parse({"tables": {"c": child(), "p": parent(), "q": parent()}})
    assert job.tables["c"].known == 2
    pairs = job.comparable()
    assert (("tables", "c"), ("tables", "p")) not in pairs
    assert {(("tables", "c"), ("tables", "q")), (("tables", "p"), ("tables", "q"))} <= set(pairs)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"items": None}, "c.items: missing; a child table says which column holds the items"),
        ({"known": None}, "c.known: missing; a child table says how many"),
        ({"known": 0}, "c.known: must be a whole number, at least 1 and at most 4"),
        ({"known": 5}, "c.known: must be a whole number, at least 1 and at most 4"),
        ({"person": None}, "c.person: missing"),
        ({"parent": "c"}, "c.parent: names no other table release of this job; there: p"),
        ({"parent": "zz"}, "c.parent: names no other table release of this job; there: p"),
        ({"items": "zz"}, "c.items: must name a column of this table"),
        ({"privacy": {"k": 4}}, "c.privacy.k: is above that of tables.p"),
        ({"privacy": {"k": 2, "k_map": 3}}, "c.privacy.k_map: does not go with parent"),
        ({"privacy": {"k": 2, "suppression": "blank"}}, "c.privacy.suppression: does not go with parent"),
        ({"rows": "many"}, "c.rows: does not go with parent"),
        ({"search": {"method": "local"}}, "c.search: does not go with parent"),
        ({"link": "p"}, "c.link: does not go with parent"),
        ({"view": "computed"}, "c.view: does not go with parent"),
        ({"sample": 0.5}, "c.sample: does not go with parent"),
        ({"never_with": ["p"]}, "c.never_with: does not go with parent"),
        ({"columns": {"code": QI, "seq": {"role": "insensitive"}}}, "c.columns.seq: is not the column of items"),
        (
            {"columns": {"code": QI, "seq": {"role": "sensitive", "top_code": 3}}},
            "c.columns.seq.top_code: does not go with a sensitive column of a child table",
        ),
        ({"columns": {"code": QI, "day": QI}}, "c.columns.day: is not the column of items"),
        ({"columns": {"code": QI, "id": PSEUDONYM}}, "c.columns.id: is not the column of items"),
        ({"columns": {"code": {"role": "sensitive"}, "x": QI}}, "c.columns.code.role: holds the items"),
        ({"columns": {"code": {**QI, "top_code": 5}}}, "c.columns.code.top_code: is of numbers"),
    ],
)
def test_what_a_child_may_not_say(change: dict[str, Any], told: str) -> None:
    assert told in refusal(c=child(**change), p=parent())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"columns": {"x": QI}}, "p.columns.id: must leave as a pseudonym"),
        ({"columns": {"id": {"role": "identifying"}, "x": QI}}, "p.columns.id: must leave as a pseudonym"),
        ({"privacy": {"k": 3, "suppression": "blank"}}, 'p.privacy.suppression: must be "drop"'),
        ({"privacy": {"k": 3, "k_map": 5, "population": {"table": "u"}}}, "p.privacy.k_map: does not go with a child"),
        ({"sample": 0.5}, "p.sample: does not go with a child"),
        ({"view": "computed", "frozen": True}, 'p.view: must be "snapshot"'),
        *(
            ({"search": {"method": m}}, "p.search.method: must be one of frontier")
            for m in ("local", "mondrian", "epsilon-safe", "inverse-ola")
        ),
        ({"rows": "many", "columns": {"x": QI}}, 'p.rows: must be "one"'),
        (
            {"stack": {"y": {"from": "c", "on": "id", "value": "code", "count": True}}},
            "p.stack: does not go with a child",
        ),
    ],
)
def test_what_a_parent_may_not_be(change: dict[str, Any], told: str) -> None:
    assert told in refusal(c=child(), p=parent(**change))


def test_a_parent_with_a_criterion_beyond_k_is_refused() -> None:
    columns = {"id": PSEUDONYM, "x": QI, "s": {"role": "sensitive"}}
    guarded = parent(columns=columns, privacy={"k": 3, "l_diversity": {"column": "s", "l": 2}})
    assert "p.privacy.l_diversity: does not go with a child table" in refusal(c=child(), p=guarded)


def test_children_of_one_parent_share_one_promise() -> None:
    Job.parse({"tables": {"c": child(), "d": child(), "p": parent()}})
    told = refusal(c=child(), d=child(known=1), p=parent())
    assert "d.known: must be that of tables.c, 2: child tables of one parent share one promise" in told
    lower = child(privacy={"k": 2, "suppression_limit": 0.1})
    assert "d.privacy.k: must be that of tables.c, 3" in refusal(c=child(), d=lower, p=parent())


def test_a_child_that_says_less_than_the_first_is_refused() -> None:
    told = refusal(c=child(), d=child(known=None, privacy={}), p=parent())
    assert "d.known: m" in told and "d.privacy.k: " in told


def test_a_parent_is_no_child() -> None:
    told = refusal(c=child(), d=child(parent="c"), p=parent())
    assert "c.parent: does not go with a child table of this one" in told


def test_links_to_a_child_or_its_parent_are_refused() -> None:
    linked = parent(link="p")
    assert "p.columns" in refusal(c=child(), p=parent(columns={"x": QI}), q=linked)
    assert "q.link: names a child table" in refusal(c=child(), p=parent(), q=parent(link="c"))
    told = refusal(c=child(parent="q"), p=parent(), q=linked)
    assert "q.link: does not go with a child table of this one" in told


def test_linked_tables_have_no_child_whichever_of_them_names_the_other() -> None:
    assert "q.link: names a table that has a child table" in refusal(c=child(), p=parent(), q=parent(link="p"))


def test_items_and_known_are_for_children() -> None:
    told = refusal(p=parent(items="x", known=1))
    assert "p.items: goes with parent" in told
    assert "p.known: goes with parent" in told
