"""Rules of a house: each refuses the job that breaks it and no other, and exceptions hold for whom they are."""

from __future__ import annotations

import copy
import hashlib
import tomllib
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.errors import JobError, UnknownKindError
from sqldeid.house_rules import applied, broken, checking, empty, load, model, parse, schema
from sqldeid.job import Job
from sqldeid.job.events import EventsPrivacy
from sqldeid.job.parts import Search
from sqldeid.job.privacy import Privacy
from sqldeid.job.series import Perturb, SeriesPrivacy

TODAY = date(2026, 6, 15)
JOB = tomllib.loads("""
[release]
into = "out.duckdb"
[tables.people]
source = "main.people"
person = "id"
[tables.people.columns]
age = { role = "quasi-identifying", hierarchy = { bands = [10, 50] } }
illness = { role = "sensitive" }
name = { role = "identifying" }
[tables.people.privacy]
k = 5
suppression_limit = 0.05
[tables.people.privacy.l_diversity]
column = "illness"
l = 3
[series.vitals]
source = "main.vitals"
person = "id"
time = "at"
variable = "what"
value = "value"
[series.vitals.durations]
k = 5
[series.vitals.privacy]
k = 5
[events.moves]
source = "main.moves"
object = "id"
time = "at"
state = "ward"
[events.moves.privacy]
method = "ratio"
epsilon = 1.0
""")
STRICT = tomllib.loads("""
organisation = "Example Hospital"
[release]
allowed_kinds = ["table", "parquet"]
outside_the_source = true
[run]
forbidden_options = ["without-ledger"]
[tables]
least_k = 5
greatest_suppression_limit = 0.05
sensitive_needs = ["l_diversity", "t_closeness"]
least_l = 3
greatest_t = 0.2
greatest_delta = 1.0
greatest_beta = 2.0
greatest_m = 0.2
greatest_average_risk = 0.1
least_k_map = 5
allowed_methods = ["frontier", "local", "epsilon-safe"]
greatest_epsilon = 2.0
greatest_dp_delta = 1e-5
forbidden_roles = ["insensitive"]
forbidden = ["pseudonym", "shift", "computed-view", "blank", "never-with", "query", "without-person", "without-attacks"]
[tables.roles]
AGE = "quasi-identifying"
name = ["identifying", "free-text"]
[series]
least_k = 5
least_k_of_durations = 5
allowed_methods = ["shared"]
allowed_nulls = ["null-pattern", "null-strict"]
forbidden = ["seed", "query", "own-shape", "link"]
[events]
allowed_methods = ["laplace", "ratio"]
greatest_epsilon = 1.0
forbidden = ["seed", "query", "without-attacks"]
""")


def job_with(*changes: tuple[str, Any]) -> Job:
    """The job with other values; None removes a key."""
    return Job.parse(changed(JOB, *changes), name="job.toml")


def changed(content: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(content)
    for path, value in changes:
        here = made
        *outer, last = path.split(".")
        for key in outer:
            here = here.setdefault(key, {})
        if value is None:
            here.pop(last, None)
        else:
            here[last] = copy.deepcopy(value)
    return made


def problems(rules: dict[str, Any], job: Job, run: dict[str, bool] | None = None) -> list[tuple[str, str]]:
    names = [name for part in (job.tables, job.series, job.events) for name in part]
    found, _ = broken(parse(rules, "rules.toml"), job, names, run, TODAY)
    return [(".".join(one.where), one.rule) for one in found]


def test_words_of_the_rules_are_those_of_the_job():
    assert get_args(model.TableMethod) == get_args(Search.model_fields["method"].annotation)
    assert get_args(model.EventsMethod) == get_args(EventsPrivacy.model_fields["method"].annotation)
    assert get_args(model.Nulls) == get_args(SeriesPrivacy.model_fields["nulls"].annotation)
    assert get_args(model.Perturbation) == get_args(Perturb.model_fields["method"].annotation)
    assert {*get_args(model.Asked), *get_args(model.Guard)} <= set(Privacy.model_fields)
    assert get_args(model.OfTables) == tuple(checking.OF_TABLES)
    assert get_args(model.OfSeries) == tuple(checking.OF_SERIES)
    assert get_args(model.OfEvents) == tuple(checking.OF_EVENTS)


L = "tables.people.privacy.l_diversity"
P = "tables.people.privacy."
EMPTY = {
    "l_diversity": {"column": "illness", "l": 1},
    "t_closeness": {"column": "illness", "t": 1.0},
    "m_concealing": {"m": 0.1, "inclusion": 0.1, "known": {"illness": 0.5}},
}


@pytest.mark.parametrize("key", EMPTY)
def test_a_criterion_that_holds_of_every_table_guards_nothing(key):
    rules = {"organisation": "H", "tables": {"sensitive_needs": [key]}, "series": {}, "events": {}}
    job = job_with((L, None), (P + key, EMPTY[key]))
    assert problems(rules, job) == [("tables.people.columns.illness", "tables.sensitive_needs")]


@pytest.mark.parametrize(
    ("key", "asked", "met"),
    [
        ("l_diversity", {"column": "illness", "l": 1, "kind": "recursive", "c": 0.5}, True),
        ("l_diversity", {"column": "illness", "l": 1, "kind": "recursive", "c": 5.0}, False),
        ("beta_likeness", {"column": "illness", "beta": 2.0}, True),
        ("delta_disclosure", {"column": "illness", "delta": 2.0}, True),
        ("m_concealing", {"m": 0.1, "known": {"illness": 0.5}}, True),
        ("m_concealing", {"m": 0.1, "known": {"illness": 0.0}}, False),
    ],
)
def test_a_criterion_that_a_table_can_fail_guards_what_it_is_of(key, asked, met):
    rules = {"organisation": "H", "tables": {"sensitive_needs": [key]}, "series": {}, "events": {}}
    assert (problems(rules, job_with((L, None), (P + key, asked))) == []) is met


@pytest.mark.parametrize(
    ("key", "empty", "enough"),
    [
        ("average_risk", 1.0, 0.1),
        ("at_risk", {"threshold": 1.0, "share": 0.1}, {"threshold": 0.1, "share": 0.1}),
        ("at_risk", {"threshold": 0.1, "share": 1.0}, {"threshold": 0.1, "share": 0.0}),
        ("game", {"payout": 1.0, "cost": 2.0}, {"payout": 4.0, "cost": 1.0}),
        ("m_concealing", {"m": 1.0}, {"m": 0.5}),
    ],
)
def test_what_is_required_asks_for_something(key, empty, enough):
    rules = {"organisation": "H", "tables": {"required": [key]}, "series": {}, "events": {}}
    assert problems(rules, job_with((P + key, empty))) == [(P + key, "tables.required")]
    assert problems(rules, job_with((P + key, enough))) == []


@pytest.mark.parametrize("part", ["cohort", "labels"])
def test_no_query_says_whose_series_leave(part):
    asked = {"source": {"query": "SELECT * FROM people"}, "person": "id"}
    asked |= {"column": "died"} if part == "labels" else {}
    found = problems(STRICT, job_with((f"series.vitals.{part}", asked)))
    assert (f"series.vitals.{part}.source", "series.forbidden") in found


def test_each_criterion_that_rules_name_is_known_to_be_empty_or_not():
    assert set(empty._EMPTY) == {*get_args(model.Guard), *get_args(model.Asked)}


def test_a_word_that_the_check_does_not_know_is_refused(monkeypatch):
    monkeypatch.delitem(checking.OF_TABLES, "shift")
    with pytest.raises(UnknownKindError):
        problems(STRICT, job_with())


def test_a_job_that_meets_all_is_let_through():
    assert problems(STRICT, job_with(), dict.fromkeys(get_args(model.Option), False)) == []


TABLE, SERIES, EVENTS = "tables.people", "series.vitals", "events.moves"
EPSILON_SAFE = {"beta": 0.1, "epsilon": 1.0, "delta": 1e-6, "population": 100_000}
SAFE: list[tuple[str, Any]] = [
    (f"{TABLE}.privacy.l_diversity", None),
    (f"{TABLE}.columns.illness", None),
    (f"{TABLE}.search", {"method": "epsilon-safe", "epsilon_safe": EPSILON_SAFE}),
]
BREAKS: list[tuple[list[tuple[str, Any]], str, str]] = [
    ([(f"{TABLE}.privacy.k", 4)], f"{TABLE}.privacy.k", "tables.least_k"),
    (
        [(f"{TABLE}.privacy.suppression_limit", 0.051)],
        f"{TABLE}.privacy.suppression_limit",
        "tables.greatest_suppression_limit",
    ),
    (
        [(f"{TABLE}.privacy.criteria_limit", 0.01), (f"{TABLE}.search.choose", "by-k")],
        f"{TABLE}.privacy.suppression_limit",
        "tables.greatest_suppression_limit",
    ),
    ([(f"{TABLE}.privacy.l_diversity", None)], f"{TABLE}.columns.illness", "tables.sensitive_needs"),
    ([(f"{TABLE}.columns.drug", {"role": "sensitive"})], f"{TABLE}.columns.drug", "tables.sensitive_needs"),
    ([(f"{TABLE}.privacy.l_diversity.l", 2)], f"{TABLE}.privacy.l_diversity.l", "tables.least_l"),
    (
        [(f"{TABLE}.privacy.t_closeness", {"column": "illness", "t": 0.21})],
        f"{TABLE}.privacy.t_closeness.t",
        "tables.greatest_t",
    ),
    (
        [(f"{TABLE}.privacy.delta_disclosure", {"column": "illness", "delta": 1.1})],
        f"{TABLE}.privacy.delta_disclosure.delta",
        "tables.greatest_delta",
    ),
    (
        [(f"{TABLE}.privacy.beta_likeness", {"column": "illness", "beta": 2.1})],
        f"{TABLE}.privacy.beta_likeness.beta",
        "tables.greatest_beta",
    ),
    ([(f"{TABLE}.privacy.m_concealing", {"m": 0.3})], f"{TABLE}.privacy.m_concealing.m", "tables.greatest_m"),
    ([(f"{TABLE}.privacy.average_risk", 0.11)], f"{TABLE}.privacy.average_risk", "tables.greatest_average_risk"),
    (
        [(f"{TABLE}.privacy.k_map", 4), (f"{TABLE}.privacy.population", {"table": "main.all"})],
        f"{TABLE}.privacy.k_map",
        "tables.least_k_map",
    ),
    ([(f"{TABLE}.search.method", "datafly")], f"{TABLE}.search.method", "tables.allowed_methods"),
    (
        [*SAFE, (f"{TABLE}.search.epsilon_safe.epsilon", 2.1)],
        f"{TABLE}.search.epsilon_safe.epsilon",
        "tables.greatest_epsilon",
    ),
    (
        [*SAFE, (f"{TABLE}.search.epsilon_safe.delta", 2e-5)],
        f"{TABLE}.search.epsilon_safe.delta",
        "tables.greatest_dp_delta",
    ),
    (
        [*SAFE, (f"{TABLE}.search.epsilon_safe.delta", None), (f"{TABLE}.search.epsilon_safe.population", 99_999)],
        f"{TABLE}.search.epsilon_safe.delta",
        "tables.greatest_dp_delta",
    ),
    ([(f"{TABLE}.columns.hours", {"role": "insensitive"})], f"{TABLE}.columns.hours.role", "tables.forbidden_roles"),
    (
        [
            (f"{TABLE}.columns.Name", {"role": "sensitive"}),
            (f"{TABLE}.columns.name", None),
            (f"{TABLE}.privacy.t_closeness", {"column": "Name", "t": 0.1}),
        ],
        f"{TABLE}.columns.Name.role",
        "tables.roles",
    ),
    ([(f"{TABLE}.columns.name.pseudonym", True)], f"{TABLE}.columns.name.pseudonym", "tables.forbidden"),
    ([(f"{TABLE}.privacy.suppression", "blank")], f"{TABLE}.privacy.suppression", "tables.forbidden"),
    ([(f"{TABLE}.source", {"query": "SELECT * FROM main.people"})], f"{TABLE}.source", "tables.forbidden"),
    ([(f"{TABLE}.person", None), (f"{TABLE}.rows_are_persons", True)], f"{TABLE}.person", "tables.forbidden"),
    ([(f"{TABLE}.attacks", False)], f"{TABLE}.attacks", "tables.forbidden"),
    ([("release.into", None)], "release.into", "release.outside_the_source"),
    ([("release.as", "view")], "release.as", "release.allowed_kinds"),
    ([(f"{SERIES}.privacy.k", 4)], f"{SERIES}.privacy.k", "series.least_k"),
    ([(f"{SERIES}.durations.k", 4)], f"{SERIES}.durations.k", "series.least_k_of_durations"),
    ([(f"{SERIES}.perturb.method", "projection")], f"{SERIES}.perturb.method", "series.allowed_methods"),
    ([(f"{SERIES}.privacy.nulls", "strict")], f"{SERIES}.privacy.nulls", "series.allowed_nulls"),
    ([(f"{SERIES}.perturb.seed", 1)], f"{SERIES}.perturb.seed", "series.forbidden"),
    ([(f"{SERIES}.source", {"query": "SELECT * FROM main.vitals"})], f"{SERIES}.source", "series.forbidden"),
    ([(f"{EVENTS}.privacy.epsilon", 1.5)], f"{EVENTS}.privacy.epsilon", "events.greatest_epsilon"),
    ([(f"{EVENTS}.generate.seed", 1)], f"{EVENTS}.generate.seed", "events.forbidden"),
    ([(f"{EVENTS}.attacks", False)], f"{EVENTS}.attacks", "events.forbidden"),
]


@pytest.mark.parametrize(("changes", "key", "rule"), BREAKS, ids=lambda v: v if isinstance(v, str) else "")
def test_each_rule_refuses_the_job_that_breaks_it_and_only_it(changes, key, rule):
    assert problems(STRICT, job_with(*changes)) == [(key, rule)]
    part, _, name = rule.partition(".")
    relaxed = changed(STRICT, (f"{part}.{name}", None))
    assert problems(relaxed, job_with(*changes)) == []


def test_what_only_some_jobs_can_do_is_seen():
    plain = [(f"{TABLE}.privacy.l_diversity", None), (f"{TABLE}.columns.illness", None)]
    view = job_with(*plain, (f"{TABLE}.view", "computed"), ("release.as", "view"), ("release.into", None))
    found = problems(STRICT, view)
    assert (f"{TABLE}.view", "tables.forbidden") in found
    assert (f"{TABLE}.view", "tables.forbidden") not in problems(STRICT, job_with(*plain))
    drawn = job_with(
        *SAFE, (f"{TABLE}.search.epsilon_safe.seed", 1), (f"{TABLE}.search.epsilon_safe.utility", "reciprocal")
    )
    words = changed(STRICT, ("tables.forbidden", ["seed", "reciprocal"]))
    at = f"{TABLE}.search.epsilon_safe"
    assert problems(words, drawn) == [(f"{at}.seed", "tables.forbidden"), (f"{at}.utility", "tables.forbidden")]
    shifted = job_with((f"{TABLE}.columns.seen", {"role": "insensitive", "shift": "person"}))
    assert (f"{TABLE}.columns.seen.shift", "tables.forbidden") in problems(STRICT, shifted)
    never = job_with((f"{TABLE}.never_with", ["other"]), ("tables.other", JOB["tables"]["people"]))
    names = ["people", "other", "vitals", "moves"]
    found_never, _ = broken(parse(STRICT, "rules.toml"), never, names, None, TODAY)
    assert [(one.where[-1], one.rule) for one in found_never] == [("never_with", "tables.forbidden")]


def test_own_shape_and_events_without_protection():
    shape = [(f"{SERIES}.perturb.method", "projection"), (f"{SERIES}.features", {"hr": []})]
    assert problems(STRICT, job_with(*shape)) == [
        (f"{SERIES}.perturb.method", "series.allowed_methods"),
        (f"{SERIES}.features.hr", "series.forbidden"),
    ]
    bare = job_with((f"{EVENTS}.privacy", {"method": "none"}))
    assert problems(STRICT, bare) == [
        (f"{EVENTS}.privacy.method", "events.allowed_methods"),
        (f"{EVENTS}.privacy.epsilon", "events.greatest_epsilon"),
    ]


@pytest.mark.parametrize(("part", "key"), [("tables", TABLE), ("series", SERIES), ("events", EVENTS)])
def test_what_the_rules_say_nothing_of_is_refused(part, key):
    silent = changed(STRICT, (part, None))
    assert problems(silent, job_with()) == [(key, part)]
    assert problems(changed(silent, (part, {})), job_with()) == []


def test_options_of_a_run():
    run = dict.fromkeys(get_args(model.Option), False)
    rules = changed(STRICT, ("run", {"required_options": ["certificate"], "forbidden_options": ["replace"]}))
    assert problems(rules, job_with(), {**run, "certificate": True}) == []
    assert problems(rules, job_with(), {**run, "replace": True}) == [
        ("--certificate", "run.required_options"),
        ("--replace", "run.forbidden_options"),
    ]
    assert problems(rules, job_with(), None) == []  # nothing is run


@given(
    least=st.integers(1, 9),
    k=st.integers(1, 9),
    most=st.integers(0, 30),
    k_part=st.integers(0, 20),
    l_part=st.integers(0, 20),
)
def test_limits_are_added_exactly(least, k, most, k_part, l_part):
    """Hundredths as floats, against whole numbers: 0.1 and 0.2 are within 0.3."""
    rules = {"organisation": "x", "tables": {"least_k": least, "greatest_suppression_limit": most / 100}}
    limits = {"k": k, "suppression_limit": k_part / 100, "criteria_limit": l_part / 100}
    content = changed(JOB, ("series", None), ("events", None), (f"{TABLE}.search.choose", "by-k"))
    content["tables"]["people"]["privacy"] |= limits
    found = {rule for _, rule in problems(rules, Job.parse(content))}
    assert ("tables.least_k" in found) == (k < least)
    assert ("tables.greatest_suppression_limit" in found) == (k_part + l_part > most)


EXCEPTION = {
    "job_sha256": "",
    "release": "people",
    "key": "tables.least_k",
    "value": 3,
    "reason": "a rare disease",
    "approved_by": "A. Board",
    "approved_on": "2026-06-01",
    "until": "2026-06-30",
}
APPROVERS = {"A. Board": ["tables.least_k", "run.forbidden_options"], "B. Clerk": ["tables.least_l"]}


def excepted(job: Job, **other: Any) -> dict[str, Any]:
    one = {**EXCEPTION, "job_sha256": job.sha256, **other}
    return {**STRICT, "approvers": APPROVERS, "exceptions": [{k: v for k, v in one.items() if v is not None}]}


def test_an_exception_holds_for_its_job_release_and_days():
    job, lower = job_with((f"{TABLE}.privacy.k", 3)), job_with((f"{TABLE}.privacy.k", 2))
    rules = parse(excepted(job), "rules.toml")
    names = ["people", "vitals", "moves"]
    found, used = broken(rules, job, names, None, TODAY)
    assert (found, [one.approved_by for one in used]) == ([], ["A. Board"])
    assert applied(rules, job.sha256, "people", TODAY).rules.tables.least_k == 3
    for day in (date(2026, 5, 31), date(2026, 7, 1)):
        found, used = broken(rules, job, names, None, day)
        assert ([one.rule for one in found], used) == (["tables.least_k"], [])
        assert "its exception" in found[0].text
    for day in (date(2026, 6, 1), date(2026, 6, 30)):
        assert broken(rules, job, names, None, day)[0] == []
    assert broken(rules, lower, names, None, TODAY)[0][0].rule == "tables.least_k"  # another job, by its text
    assert problems(excepted(lower), lower) == [(f"{TABLE}.privacy.k", "tables.least_k")]  # 3 is still asked
    assert problems(excepted(job, release="others"), job) == [(f"{TABLE}.privacy.k", "tables.least_k")]
    assert problems(excepted(job, until=None), job) == []


def test_an_exception_of_the_run():
    job, run = job_with(), {**dict.fromkeys(get_args(model.Option), False), "without-ledger": True}
    assert problems(STRICT, job, run) == [("--without-ledger", "run.forbidden_options")]
    assert problems(excepted(job, key="run.forbidden_options", value=[], release=None), job, run) == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"approved_by": "Nobody"}, "one of the names in approvers"),
        ({"approved_by": "B. Clerk"}, "may not approve"),
        ({"key": "tables.least_n"}, "must be that of a rule"),
        ({"key": "approvers.x"}, "must be that of a rule"),
        ({"key": "run.required_options", "value": [], "release": None}, "not among these rules"),
        ({"value": 0}, "must be what tables.least_k may be"),
        ({"value": "3"}, "must be what tables.least_k may be"),
        ({"release": None}, "release is missing"),
        ({"key": "run.forbidden_options", "value": []}, "release goes with"),
        ({"until": "2026-05-01"}, "until is before"),
        ({"job_sha256": "abc"}, "exceptions"),
        ({"reason": None}, "reason"),
        ({"why": "so"}, 'unknown key "why"'),
    ],
)
def test_exceptions_that_are_none_are_refused(other, told):
    rules = excepted(job_with(), **other)
    with pytest.raises(JobError, match=r"rules\.toml") as refused:
        parse(rules, "rules.toml")
    assert told in refused.value.message


def test_an_exception_may_not_stand_twice():
    rules = excepted(job_with())
    rules["exceptions"] *= 2
    with pytest.raises(JobError, match="of another one"):
        parse(rules, "rules.toml")


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({}, "organisation"),
        ({"organisation": "x", "table": {}}, 'unknown key "table"; did you mean "tables"'),
        ({"organisation": "x", "tables": {"least_K": 5}}, 'unknown key "least_K"; did you mean "least_k"'),
        ({"organisation": "x", "tables": {"least_k": "5"}}, "tables.least_k: must be a whole number"),
        ({"organisation": "x", "tables": {"least_k": True}}, "tables.least_k: must be a whole number"),
        ({"organisation": "x", "tables": {"forbidden": ["views"]}}, "must be one of"),
        ({"organisation": "x", "tables": {"greatest_suppression_limit": 5}}, "at most 1"),
        ({"organisation": "x", "tables": {"sensitive_needs": []}}, "not empty"),
        ({"organisation": "x", "tables": {"roles": {"age": "known"}}}, "must be"),
        ({"organisation": "x", "approvers": {"A": ["k"]}}, "a rule that is none"),
    ],
)
def test_what_is_not_known_is_refused(rules, told):
    with pytest.raises(JobError) as refused:
        parse(rules, "rules.toml")
    assert told in refused.value.message


def test_a_file_is_read_whole(tmp_path: Path):
    file = tmp_path / "rules.toml"
    file.write_text('organisation = "x"\n[tables]\nleast_k = 5\n')
    rules = load(file)
    assert (rules.name, rules.sha256) == ("rules.toml", hashlib.sha256(file.read_bytes()).hexdigest())
    for content in (b"\xff", b"k = ", b"organisation = 1"):
        file.write_bytes(content)
        with pytest.raises(JobError, match=r"rules\.toml"):
            load(file)
    with pytest.raises(JobError, match="cannot be read"):
        load(tmp_path / "none.toml")
    with pytest.raises(JobError, match="cannot be read"):
        load(tmp_path)


def test_the_page_of_the_rules_names_every_key_and_word(repository):
    page = (repository / "docs" / "how-to" / "house-rules.md").read_text(encoding="utf-8")
    keys = {name for part in model.SECTION_RULES.values() for name in part.model_fields}
    words = {*checking.OF_TABLES, *checking.OF_SERIES, *checking.OF_EVENTS}
    words |= {*get_args(model.Option), *get_args(model.Guard), *get_args(model.Asked)}
    assert sorted(w for w in keys | words if f"`{w}`" not in page and f".{w}]`" not in page) == []
    blocks = page.split("```toml\n")[1:]
    text = "".join(block.partition("```")[0] for block in blocks)
    assert parse(tomllib.loads(text), "rules.toml").exceptions


def test_every_key_of_the_file_is_described():
    definitions = [schema(), *schema()["$defs"].values()]
    for made in definitions:
        for name, key in made.get("properties", {}).items():
            assert key.get("description"), name
