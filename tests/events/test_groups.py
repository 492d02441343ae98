"""Groups of objects under `laplace`: counts equal plain Python, the budget holds, and what is made differs by group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError, VerificationError
from sqldeid.events.domain import MAX_GROUPS
from sqldeid.events.groups import combinations, number_of, value_of
from sqldeid.events.privacy.laplace import BY_GROUP, GROUPS, Ledger, Spend, by, noise, sensitivity_of
from sqldeid.events.release import read_private
from sqldeid.events.synthesize import Tables, count_tables, fit_private
from sqldeid.job import Job
from sqldeid.sql import column
from tests.support.events import database, laplace, planned

VALUES = {"sex": ["F", "M"], "age": ["young", "it's; -- old"]}
OLD = VALUES["age"][1]
REST = 4
Event = tuple[str, int, str, str | None, str | None]
"""Whose, its place, state, sex, age."""


def section(
    folder: Path, epsilon: float = 1.0, groups: dict[str, list[str]] | None = None, **more: Any
) -> dict[str, Any]:
    (folder / "states.txt").write_text("a\nb", encoding="utf-8")
    given = VALUES if groups is None else groups
    asked = {"other": None, "length_bins": [1, 2, 4], **({"groups": given} if given else {}), **more}
    privacy = laplace(folder / "states.txt", epsilon, timed=False, **asked)
    return {"source": "e", "object": "who", "order": "seq", "state": "what", "privacy": privacy}


def rows_of(events: list[Event]) -> pa.Table:
    columns = list(zip(*events, strict=True)) or [[]] * 5
    kinds = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.string())
    names = ("who", "seq", "what", "sex", "age")
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


@contextmanager
def counted(events: list[Event], folder: Path, **more: Any) -> Iterator[tuple[Any, Tables]]:
    with planned(database(rows_of(events)), section(folder, **more)) as (plan, engine):
        yield plan, count_tables(plan.domain, read_private(plan, engine).placed, engine)


def cells(tables: Tables) -> dict[str, Any]:
    """The table of each statistic that an order alone has."""
    found = {n: getattr(tables, n) for n in ("transitions", "states", "lengths", "groups")}
    return found | {by(BY_GROUP): tables.factors[BY_GROUP]}


def people(rng: np.random.Generator, count: int) -> list[Event]:
    """Objects whose groups change from event to event, are missing, or not on the list; states z are not listed."""
    sexes, ages = ["F", "M", None, "f"], ["young", OLD, None, "", "F"]
    return [
        (f"o{o}", i, "abz"[rng.integers(3)], sexes[rng.integers(4)], ages[rng.integers(5)])
        for o in range(count)
        for i in range(rng.integers(1, 8))
    ]


def group_of(event: Event) -> int:
    """By the list of values; whoever lacks one of them is in the rest."""
    _, _, _, sex, age = event
    known = sex in VALUES["sex"] and age in VALUES["age"]
    return VALUES["sex"].index(str(sex)) * 2 + VALUES["age"].index(str(age)) if known else REST


def slow(events: list[Event], most: int) -> dict[str, Any]:
    """Objects by group of the first kept event, and their first transitions by it."""
    groups, steps = np.zeros(REST + 1, dtype=np.int64), np.zeros((REST, 3, 3), dtype=np.int64)
    for owner in {e[0] for e in events}:
        own = sorted((e for e in events if e[0] == owner and e[2] in "ab"), key=lambda e: e[1])
        if not own:
            continue
        group = group_of(own[0])
        groups[group] += 1
        codes = ["ab".index(e[2]) for e in own]
        path = [0, *(c + 1 for c in codes[:most])]
        for before, after in pairwise(path):
            if group != REST:
                steps[group, before, after - 1] += 1
        if len(codes) <= most and group != REST:
            steps[group, path[-1], 2] += 1
    return {"groups": groups, by(BY_GROUP): steps}


@pytest.mark.parametrize("most", [1, 3, 9])
def test_counts_by_group_equal_plain_python(tmp_path: Path, most: int) -> None:
    events = people(np.random.default_rng(most), 150)
    shuffled = [events[i] for i in np.random.default_rng(0).permutation(len(events))]
    for rows in (events, shuffled):
        with counted(rows, tmp_path, events_max=most) as (_, tables):
            for name, counts in slow(events, most).items():
                assert np.array_equal(cells(tables)[name], counts), name
            assert tables.groups[REST] > 0 and (tables.groups[:REST] > 0).all(), "every group has somebody"
            assert tables.groups.sum() == tables.lengths.sum() == tables.transitions[0].sum()


@pytest.fixture(scope="module", params=[1, 2])
def contributions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Any]]:
    """What each possible object of up to three events adds beside others, by the SQL that counts."""
    folder, most = tmp_path_factory.mktemp("groups"), request.param
    others = people(np.random.default_rng(3), 6)
    kinds = [("F", "young"), ("M", None)]
    news = [
        [("new", i, state, *kinds[kind]) for i, (state, kind) in enumerate(zip(states, which, strict=True))]
        for length in (1, 2, 3)
        for states in product("az", repeat=length)
        for which in product((0, 1), repeat=length)
    ][::4]
    news.append([("new", 0, "a", "F", "young"), ("new", 1, "b", "M", OLD)])
    with counted(others, folder, events_max=most) as (_, before):
        found = []
        for new in news:
            with counted([*others, *new], folder, events_max=most) as (plan, after):
                gap = {n: int(np.abs(t - cells(before)[n]).sum()) for n, t in cells(after).items()}
                found.append(gap)
    return most, [plan.domain, found]


def spent(change: dict[str, int], ledger: Ledger) -> Fraction:
    """Greatest log ratio of the noise on all cells: it is reached."""
    return sum((Fraction(change[s.statistic]) * s.epsilon / s.sensitivity for s in ledger.spends), Fraction(0))


@pytest.mark.deep
def test_no_neighbouring_pair_exceeds_epsilon_and_one_reaches_it(contributions: tuple[int, list[Any]]) -> None:
    _, (domain, changes) = contributions
    ledger = Ledger.split(domain, Fraction(1))
    names = {s.statistic for s in ledger.spends}
    assert names == {"transitions", "states", "lengths", "groups", by(BY_GROUP)}
    assert max(spent(change, ledger) for change in changes) == 1, "exactly epsilon: nothing is wasted or exceeded"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("statistic", ["groups", by(BY_GROUP)])
def test_the_twin_with_too_little_noise_is_found_out(contributions: tuple[int, list[Any]], statistic: str) -> None:
    """Half the part of epsilon for the same noise, of the counts by group and of their transitions."""
    _, (domain, changes) = contributions
    right = Ledger.split(domain, Fraction(1))
    twin = [
        Spend(s.statistic, s.sensitivity, s.epsilon * (2 if s.statistic == statistic else 1), s.scale, s.cells)
        for s in right.spends
    ]
    doubled = Ledger(sum((s.epsilon for s in twin), Fraction(0)), tuple(twin))
    assert max(spent(change, doubled) for change in changes) > 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("factors", [(), ("hour", "year")])
@pytest.mark.parametrize("chosen", [False, True])
def test_the_budget_of_groups_adds_up_and_opendp_confirms_it(
    contributions: tuple[int, list[Any]], factors: tuple[str, ...], chosen: bool
) -> None:
    _, (domain, _) = contributions
    if factors:
        from datetime import datetime

        domain = replace(domain, first=datetime(2100, 1, 1), last=datetime(2101, 1, 1), gap_bins_hours=(Fraction(1),))
    wide = replace(domain, factors=factors, chosen=chosen)
    ledger = Ledger.split(wide, Fraction(3, 7))
    assert sum(s.epsilon for s in ledger.spends) == Fraction(3, 7)
    tables = [s for s in ledger.spends if s.statistic.startswith("transitions by")]
    assert len(tables) == len(factors) + 1 and len({s.epsilon for s in tables}) == 1, "each has the same part"
    counts = ledger.of("groups")
    assert counts is not None and (counts.epsilon, counts.cells) == (GROUPS * Fraction(3, 7), REST + 1)
    for spend in (counts, *tables):
        assert spend.sensitivity == sensitivity_of(spend.statistic, wide.events_max)
        _, used = noise(np.zeros(spend.cells, dtype=np.int64), spend)
        assert Fraction(used.scale) * spend.epsilon >= spend.sensitivity


@given(st.lists(st.tuples(*[st.sampled_from([None, "", "F", "M", "f", OLD, "young", "a\tb"])] * 2), min_size=1))
def test_a_group_number_stands_for_its_values(rows: list[tuple[str | None, str | None]]) -> None:
    """Against the list of combinations, by SQL both ways."""
    from sqldeid.events.domain import Domain

    domain = Domain((("a",),), None, None, None, (), (1,), 1, groups=tuple((k, tuple(v)) for k, v in VALUES.items()))
    groups = combinations(domain)
    number = number_of(domain, [column("x", "r"), column("y", "r")])
    shown = [value_of(domain, i, column("n", "q")) for i in range(2)]
    query = ", ".join(e.sql(dialect="duckdb") for e in shown)
    table = pa.table(
        {"x": pa.array([r[0] for r in rows], pa.string()), "y": pa.array([r[1] for r in rows], pa.string())}
    )
    with duckdb.connect() as connection:
        connection.register("r", table)
        inner = f"SELECT {number.sql(dialect='duckdb')} AS n FROM r"
        found = connection.execute(f"SELECT n, {query} FROM ({inner}) AS q").fetchall()
    assert len(groups) == REST + 1 and groups[REST] == (None, None)
    for row, (n, *values) in zip(rows, found, strict=True):
        assert n == (groups.index(row) if row in groups[:REST] else REST)
        assert tuple(values) == groups[n]


def halves(count: int) -> list[Event]:
    """Women go a b a b, men b only; one in ten has no sex and goes a."""
    paths = {"F": "abab", "M": "bbb", None: "a"}
    sexes = ["F", "M", None, "F", "M", "F", "M", "F", "M", "F"]
    return [(f"o{o}", i, s, sexes[o % 10], None) for o in range(count) for i, s in enumerate(paths[sexes[o % 10]])]


def test_what_follows_depends_on_the_group(tmp_path: Path) -> None:
    """With the groups women and men go ways of their own; without them nobody can tell them apart."""
    events = halves(2_000)
    connection = database(rows_of(events))
    asked = section(tmp_path, 100.0, {"sex": ["M", "F"]})
    job = Job.parse({"events": {"x": asked | {"attacks": False, "generate": {"seed": 1}}}})
    found = sqldeid.anonymize(job, connection).releases["x"]
    assert not any("groups" in warning for warning in found.warnings)
    shown = connection.execute(
        "SELECT sex, COUNT(DISTINCT object_number), AVG(CAST(what = 'b' AS INTEGER)) FROM release.x GROUP BY sex"
    ).fetchall()
    by_sex = {sex: (objects / found.objects, share) for sex, objects, share in shown}
    assert {None, "F", "M"} == set(by_sex)
    for sex, share, of_b in (("F", 0.5, 0.5), ("M", 0.4, 1.0), (None, 0.1, 0.7)):
        assert by_sex[sex][0] == pytest.approx(share, abs=0.06), sex
        assert by_sex[sex][1] == pytest.approx(of_b, abs=0.12 if sex else 0.35), sex
    assert [c[0] for c in connection.execute("FROM release.x").description or ()] == [
        "object_number",
        "sex",
        "position",
        "what",
    ]
    with planned(connection, section(tmp_path, 100.0, {})) as (plan, engine):
        model = fit_private(
            "x", plan.domain, plan.epsilon, read_private(plan, engine).placed, engine, lambda text: None
        )
    assert model.following[1, 1] > 0.2 and 0.2 < model.first[0] < 0.8, "one table mixes them"
    told = found.to_public()["columns"]["sex"]
    assert {c["shown"] for c in told["codes"]} == {"F", "M", "NULL"} and not told["more_codes"]
    public = json.dumps(found.to_public())
    assert str(found.source["events"]) not in public and '"groups"' in public
    assert "public groups" in " ".join(sqldeid.verify(job, connection)["x"].checks)


def test_little_epsilon_for_many_groups_is_said(tmp_path: Path) -> None:
    """Said unless the noise of 8 cells adds up to 64 times its scale, less what is there: once in 10^20."""
    many = {"sex": ["F", "M", "x", "y"], "age": VALUES["age"]}
    job = Job.parse({"events": {"x": section(tmp_path, 0.5, many) | {"attacks": False, "generate": {"objects": 50}}}})
    found = sqldeid.anonymize(job, database(rows_of(halves(60)))).releases["x"]
    assert any(w.startswith("events.x.privacy.groups: most of the tables by group is noise") for w in found.warnings)


def test_whoever_has_another_value_is_in_the_rest_and_nothing_tells_of_it(tmp_path: Path) -> None:
    """Neither a refusal nor a warning nor a fact before the release shows that somebody has an unlisted value."""
    events = halves(100)
    said = []
    for more in ([], [("new", 0, "a", "unheard of", OLD)]):
        connection = database(rows_of([*events, *more]))
        asked = section(tmp_path, 50.0, {"sex": ["M", "F"]}) | {"attacks": False, "generate": {"objects": 80}}
        job = Job.parse({"events": {"x": asked}})
        found = sqldeid.anonymize(job, connection).releases["x"]
        shown = {row[0] for row in connection.execute("SELECT DISTINCT sex FROM release.x").fetchall()}
        assert shown <= {"M", "F", None}
        said.append(
            [w for w in found.warnings if "noise" not in w] + [str(p.facts()) for p in sqldeid.plan(job, connection)]
        )
    assert said[0] == said[1]


def test_attacks_try_a_release_by_groups(tmp_path: Path) -> None:
    job = Job.parse({"events": {"x": section(tmp_path, 5.0) | {"generate": {"objects": 60}}}})
    events = people(np.random.default_rng(1), 80)
    found = sqldeid.anonymize(job, database(rows_of(events))).releases["x"]
    assert "membership" in found.attacks


TAMPERED = {
    "of its groups may not be": "UPDATE release.x SET sex = 'unheard of', age = 'young' WHERE object_number = 1",
    "of its groups may": "UPDATE release.x SET age = NULL WHERE sex IS NOT NULL",
    "more than one group": "UPDATE release.x SET sex = CASE position WHEN 1 THEN 'F' ELSE 'M' END",
    "in more than one": "UPDATE release.x SET sex = CASE position WHEN 1 THEN 'F' END",
    "the columns": "ALTER TABLE release.x DROP COLUMN sex",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("message", TAMPERED)
def test_a_changed_release_is_refused(tmp_path: Path, message: str) -> None:
    connection = database(rows_of(halves(200)))
    connection.execute("UPDATE e SET age = 'young'")
    job = Job.parse({"events": {"x": section(tmp_path, 20.0) | {"attacks": False, "generate": {"objects": 100}}}})
    sqldeid.anonymize(job, connection)
    sqldeid.verify(job, connection)
    connection.execute(TAMPERED[message])
    with pytest.raises(VerificationError, match=message):
        sqldeid.verify(job, connection)


def test_a_release_of_other_groups_is_refused(tmp_path: Path) -> None:
    connection = database(rows_of(halves(200)))
    asked = section(tmp_path, 20.0) | {"attacks": False, "generate": {"objects": 100}}
    sqldeid.anonymize(Job.parse({"events": {"x": asked}}), connection)
    fewer = section(tmp_path, 20.0, {"sex": ["F", "M"], "age": ["young"]}) | {
        k: asked[k] for k in ("attacks", "generate")
    }
    with pytest.raises(VerificationError, match="not those of the job"):
        sqldeid.verify(Job.parse({"events": {"x": fewer}}), connection)


def refused(events: dict[str, Any]) -> str:
    with pytest.raises(JobError) as raised:
        sqldeid.plan(Job.parse({"events": {"x": events}}), database(rows_of(halves(10))))
    return str(raised.value)


def test_jobs_that_cannot_be_are_refused_by_their_key(tmp_path: Path) -> None:
    key = "events.x.privacy.groups"
    good = section(tmp_path)

    def asked(groups: Any, **more: Any) -> str:
        return refused(good | {"privacy": good["privacy"] | {"groups": groups}} | more)

    assert f"{key}.sex: names a value twice" in asked({"sex": ["F", "F"]})
    assert f"{key}.what: names the column of state" in asked({"what": ["a"]})
    assert f"{key}.who: names the column of object" in asked({"who": ["o1"]})
    assert "names a column twice" in asked({"sex": ["F"], "SEX": ["F"]})
    assert key in asked({"nowhere": ["F"]}) and key in asked({"sex": []}) and key in asked({})
    assert "released beside it" in asked(
        {"object_number": ["1"]}, source={"query": "SELECT *, 1 AS object_number FROM e"}
    )
    wide = {f"g{i}": [str(n) for n in range(32)] for i in range(3)}
    query = "SELECT *, sex AS g0, sex AS g1, sex AS g2 FROM e"
    assert f"{MAX_GROUPS:,} are allowed" in asked(wide, source={"query": query})
    ratio = {"method": "ratio", "epsilon": 0.65, "groups": {"sex": ["F"]}}
    assert "goes with" in refused(good | {"privacy": ratio})
