"""Linked table releases in the job: which belong together, and what is refused with its fix."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from sqldeid.errors import JobError
from sqldeid.job import Job, schema
from sqldeid.job.link_rules import link_groups

PSEUDONYM = {"role": "identifying", "pseudonym": True}
DRAWN = {"beta": 0.5, "epsilon": 2.0, "delta": 0.49}
QI = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}


def table(link: str | None = None, **more: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"source": "t", "person": "id", "columns": {"id": PSEUDONYM, "x": QI}, "privacy": {"k": 2}}
    return deepcopy(part | ({} if link is None else {"link": link}) | more)


def refusal(**tables: dict[str, Any]) -> str:
    with pytest.raises(JobError) as refused:
        Job.parse({"tables": tables})
    return refused.value.message


def test_a_chain_and_a_star_are_one_group_each() -> None:
    links = {"a": None, "b": "a", "c": "b", "d": None, "e": "d", "f": "d", "g": None}
    job = {"tables": {name: table(link) for name, link in links.items()}}
    assert link_groups(job) == [("a", "b", "c"), ("d", "e", "f")]
    assert Job.parse(job).tables["c"].link == "b"


def test_the_order_is_that_of_the_job_whoever_names_whom() -> None:
    assert link_groups({"tables": {"b": table("z"), "a": table("z"), "z": table()}}) == [("b", "a", "z")]


@pytest.mark.parametrize(
    ("links", "place", "text"),
    [
        ({"a": "a"}, "tables.a.link", "its own release"),
        ({"a": "nobody"}, "tables.a.link", "another table release of this job"),
        ({"a": None, "b": "A"}, "tables.b.link", "another table release of this job"),
        ({"a": "b", "b": "a"}, "tables.a.link", "circle"),
        ({"a": None, "b": "c", "c": "d", "d": "b"}, "tables.c.link", "circle"),
    ],
)
def test_where_a_link_may_lead(links: dict[str, str | None], place: str, text: str) -> None:
    message = refusal(**{name: table(link) for name, link in links.items()})
    assert place in message
    assert text in message


@pytest.mark.parametrize(
    ("second", "place", "text"),
    [
        ({"person": None}, "tables.b.person", "name the person key"),
        ({"columns": {"x": QI}}, "tables.b.columns.id", "pseudonym = true"),
        ({"columns": {"id": {"role": "identifying"}, "x": QI}}, "tables.b.columns.id", "pseudonym = true"),
        ({"person": "other", "columns": {"other": PSEUDONYM, "x": QI}}, "tables.b.person", "another key"),
        ({"search": {"method": "mondrian"}}, "tables.b.search.method", "no lattice"),
        (
            {
                "search": {"method": "epsilon-safe", "epsilon_safe": DRAWN},
                "columns": {"x": QI},
            },
            "tables.b.search.method",
            "one table alone",
        ),
        ({"text": True}, "tables.b.text", "say the same in each"),
        ({"privacy": {"k": 2, "suppression": "blank"}}, "tables.b.privacy.suppression", "say the same in each"),
        ({"search": {"method": "ola", "loss": "prec"}}, "tables.b.search.method", "share one search"),
        ({"search": {"loss": "prec"}}, "tables.b.search.loss", "share one search"),
    ],
)
def test_what_linked_tables_agree_on(second: dict[str, Any], place: str, text: str) -> None:
    first = table(search={"method": "frontier", "loss": "loss"})
    other = {k: v for k, v in (table("a") | second).items() if v is not None}
    message = refusal(a=first, b=other)
    assert place in message
    assert text in message


@pytest.mark.parametrize(
    ("role", "there", "refused"),
    [
        ("quasi-identifying", "insensitive", "b"),
        ("sensitive", "quasi-identifying", "a"),
        ("identifying", "quasi-identifying", "b"),
        ("insensitive", "free-text", "a"),
        ("sensitive", "insensitive", None),
        ("identifying", "free-text", None),
    ],
)
def test_what_one_table_guards_no_other_shows(role: str, there: str, refused: str | None) -> None:
    """Age in bands in one table and as it is in the other is no age in bands for who joins them."""

    def part(role: str, name: str, link: str | None) -> dict[str, Any]:
        return table(link, columns={"id": PSEUDONYM, "x": QI, name: QI if role == QI["role"] else {"role": role}})

    tables = {"a": part(role, "age", None), "b": part(there, "AGE", "a")}
    if refused is None:
        Job.parse({"tables": tables})
        return
    assert f"tables.{refused}.columns.{'age' if refused == 'a' else 'AGE'}: has another role" in refusal(**tables)


@pytest.mark.parametrize(
    ("tops", "refused"), [((90, None), "b"), ((None, 90), "a"), ((90, 95), "b"), ((90, 90), ""), ((None, None), "")]
)
@pytest.mark.parametrize("column", [{"role": "insensitive"}, {**QI, "hierarchy": {"bands": [5]}}])
def test_what_one_table_cuts_at_the_top_no_other_shows(
    tops: tuple[int | None, int | None], refused: str, column: dict[str, Any]
) -> None:
    """Ages of 90 and more in one table and as they are in the other are told for who joins them."""
    tables = {}
    for name, age, link, top in zip("ab", ("age", "AGE"), (None, "a"), tops, strict=True):
        cut = {} if top is None else {"top_code": top}
        tables[name] = table(link, columns={"id": PSEUDONYM, "x": QI, age: {**column, **cut}})
    if not refused:
        Job.parse({"tables": tables})
        return
    assert f"tables.{refused}.columns.{'age' if refused == 'a' else 'AGE'}.top_code: is not that of" in refusal(
        **tables
    )


def test_what_a_stack_makes_has_a_role_too() -> None:
    stack = {"from": "c", "on": "id", "value": "v", "order": "o", "first": 2, "role": "insensitive"}
    codes = table("a", stack={"code": stack})
    first = table(columns={"id": PSEUDONYM, "x": QI, "code_2": QI})
    assert "tables.b.columns.code_2: has another role in a" in refusal(a=first, b=codes)


def test_one_search_for_all() -> None:
    """A key may stand in one table alone, and weights in each."""
    both = {"a": table(search={"method": "ola", "loss": "prec"}), "b": table("a", search={"weights": {"x": 2.0}})}
    assert Job.parse({"tables": both}).tables["b"].search.weights == {"x": 2.0}
    both["a"]["search"] = {"loss": "entropy"}
    assert "no weights are defined" in refusal(**both)


def test_inverse_ola_knows_no_diversity_of_another_table() -> None:
    first = table(search={"method": "inverse-ola", "max_loss": 0.5})
    columns = {"id": PSEUDONYM, "x": QI, "s": {"role": "sensitive"}}
    second = table("a", columns=columns, privacy={"k": 2, "l_diversity": {"column": "s", "l": 2}})
    assert "tables.b.link" in refusal(a=first, b=second)


def test_known_columns_are_counted_over_all_tables() -> None:
    def known(link: str | None) -> dict[str, Any]:
        names = [f"s{i}" for i in range(7)]
        columns = {"id": PSEUDONYM, "x": QI} | {name: {"role": "sensitive"} for name in names}
        concealing = {"m": 0.5, "known": dict.fromkeys(names, 0.1)}
        return table(link, columns=columns, privacy={"k": 2, "m_concealing": concealing})

    assert "14 columns known" in refusal(a=known(None), b=known("a"))


def test_a_series_follows_one_table_alone() -> None:
    series = {"source": "s", "person": "id", "time": "t", "variable": "v", "value": "x", "link": "b"}
    job = {"tables": {"a": table(), "b": table("a")}, "series": {"s": series}}
    with pytest.raises(JobError, match=r"series\.s\.link: names a table that is linked with another one"):
        Job.parse(job)


def test_linked_releases_are_no_surprise_to_each_other() -> None:
    """The warning that two releases hold the same people is for those that nobody linked."""
    assert not Job.parse({"tables": {"a": table(), "b": table("a")}}).warnings()
    (warning,) = Job.parse({"tables": {"a": table(), "b": table("a"), "c": table()}}).warnings()
    assert "tables.a, tables.b, tables.c" in warning


def test_the_schema_describes_it() -> None:
    tables = schema()["$defs"]["Table"]["properties"]  # type: ignore[index]
    assert "pseudonym" in tables["link"]["description"]


@pytest.mark.parametrize("wrong", [3, [], {"x": 1}, True, None])
def test_nonsense_is_refused_without_a_traceback(wrong: object) -> None:
    with pytest.raises(JobError):
        Job.parse({"tables": {"a": wrong, "b": table("a")}})
    with pytest.raises(JobError):
        Job.parse({"tables": {"a": table(), "b": table() | {"link": wrong, "person": wrong, "columns": wrong}}})
