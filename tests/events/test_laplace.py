"""`laplace` is differentially private per object: enumerated, with twins that must fail, and its noise is measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.errors import JobError, SqldeidError
from sqldeid.events import synthesize
from sqldeid.events.domain import Domain, choose_events
from sqldeid.events.estimate import posterior_mean, rake
from sqldeid.events.fit import prepare
from sqldeid.events.privacy.laplace import Ledger, Spend, by, noise, sensitivity_of
from sqldeid.events.release import read_private
from sqldeid.events.synthesize import Tables, add_noise, count_tables, estimate, possible
from sqldeid.job import Job
from tests.support.events import WARD_STATES, database, kind_c, kind_t, laplace, planned, procedures, transfers

HOUR = 3_600_000_000
TINY: dict[str, Any] = {"source": "e", "object": "who", "time": "at", "state": "what"}


@contextmanager
def placed_of(
    events: list[tuple[str, int, str]], folder: Path, factors: Sequence[str] = (), **changes: Any
) -> Iterator[tuple[Any, Any, Any]]:
    """Plan, placed events and engine of a small database: (object, hours since 2100, state)."""
    (folder / "states.txt").write_text("a\nb", encoding="utf-8")
    changes = {"other": None, "time_range": ["2100-01-01", "2100-03-01"], "gap_bins_hours": [2], **changes}
    section = {"privacy": laplace(folder / "states.txt", **changes), "factors": list(factors)}
    with planned(database(rows_of(events)), TINY | section) as (plan, engine):
        yield plan, read_private(plan, engine).placed, engine


def rows_of(events: list[tuple[str, int, str]]) -> pa.Table:
    base = 4_102_444_800 * 10**6
    return pa.table(
        {
            "who": pa.array([e[0] for e in events], pa.string()),
            "at": pa.array([base + e[1] * HOUR for e in events], pa.int64()).cast(pa.timestamp("us")),
            "what": pa.array([e[2] for e in events], pa.string()),
        }
    )


def tables_of(events: list[tuple[str, int, str]], folder: Path, **changes: Any) -> Tables:
    """Exact counts of a small database."""
    with placed_of(events, folder, **changes) as (plan, placed, engine):
        return count_tables(plan.domain, placed, engine)


def cells(tables: Tables) -> dict[str, Any]:
    """The table of each statistic."""
    names = {"transitions": "transitions", "states": "states", "gaps": "gaps", "lengths": "lengths"}
    names |= {"start months": "months", "start hours": "hours"}
    return {s: getattr(tables, n) for s, n in names.items()} | {by(f): t for f, t in tables.factors.items()}


def distances(left: Tables, right: Tables) -> dict[str, int]:
    """L1 distance of each statistic."""
    other = cells(right)
    return {name: int(np.abs(counts - other[name]).sum()) for name, counts in cells(left).items()}


def every_object(most: int) -> list[list[tuple[str, int, str]]]:
    """All objects of up to `most` events: states a, b and one that is not listed; gaps on both sides of the bin."""
    found = []
    for length in range(1, most + 1):
        for states in product("abz", repeat=length):
            for gaps in product((1, 5), repeat=length - 1):
                hours = [0, *np.cumsum(gaps).tolist()]
                found.append([("new", h, s) for h, s in zip(hours, states, strict=True)])
    return found


L = 2
FACTORS = ("weekday", "hour", "month", "year")


@pytest.fixture(scope="module", params=[1, L])
def contributions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, list[dict[str, int]]]:
    """What each possible object adds to the tables, by the SQL that counts; counts are sums over objects."""
    folder = tmp_path_factory.mktemp("states")
    chosen = [*every_object(3)[::6], [("new", 0, "a"), ("new", 5, "b")]]
    events = [(f"o{i}", h, s) for i, rows in enumerate(chosen) for _, h, s in rows]
    with placed_of(events, folder, events_max=request.param) as (plan, placed, engine):
        wide = replace(plan.domain, factors=FACTORS)
        nothing = count_tables(wide, some(placed, 0, engine), engine)
        alone = [count_tables(wide, some(placed, i, engine), engine) for i in range(1, len(chosen) + 1)]
        whole = count_tables(wide, placed, engine)
    for name, counts in cells(whole).items():
        assert np.array_equal(sum(cells(t)[name] for t in alone), counts), "objects add up"
    return request.param, [distances(nothing, t) for t in alone]


def some(placed: Any, number: int, engine: Any) -> Any:
    """Placed events of one object."""
    one = engine.workbench("one")
    name, table = one.sql(dialect="duckdb"), placed.sql(dialect="duckdb")
    engine.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM {table} WHERE object = {number}")
    return one


def epsilon_spent(change: dict[str, int], ledger: Ledger) -> Fraction:
    """Greatest log ratio of discrete Laplace noise on every cell: the sum of |difference| / scale; it is reached."""
    return sum((Fraction(change[s.statistic]) * s.epsilon / s.sensitivity for s in ledger.spends), Fraction(0))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factors", [(), ("hour",), FACTORS], ids=["no factor", "hour", "all factors"])
@pytest.mark.parametrize("chosen", [False, True], ids=["L given", "L private"])
def test_no_neighbouring_pair_exceeds_epsilon_and_one_reaches_it(
    contributions: tuple[int, list[dict[str, int]]], chosen: bool, factors: tuple[str, ...]
) -> None:
    """Where L is chosen with noise: whatever was chosen, what is spent before and after adds up."""
    most, changes = contributions
    ledger = Ledger.split(domain(most, chosen=chosen, factors=factors), Fraction(1))
    assert {s.statistic for s in ledger.spends} >= {by(f) for f in factors}
    spent = [epsilon_spent(change, ledger) for change in changes]
    assert max(spent) == 1, "exactly epsilon: nothing is wasted, nothing is exceeded"


@pytest.mark.parametrize("statistic", ["transitions", by("weekday")])
def test_the_twin_with_too_little_noise_is_found_out(
    contributions: tuple[int, list[dict[str, int]]], statistic: str
) -> None:
    """Sensitivity L instead of L + 1 for the transitions, or for a factor's table."""
    most, changes = contributions
    right = Ledger.split(domain(most, factors=("weekday",)), Fraction(1))
    wrong = [
        Spend(s.statistic, most, s.epsilon, s.scale, s.cells) if s.statistic == statistic else s for s in right.spends
    ]
    assert max(epsilon_spent(c, Ledger(Fraction(1), tuple(wrong))) for c in changes) > 1


def test_the_twin_that_pays_for_the_lengths_once_and_noises_them_twice_is_found_out(
    contributions: tuple[int, list[dict[str, int]]],
) -> None:
    """To choose L by one noised histogram, and release another, is not in the ledger: it spends more than epsilon."""
    most, changes = contributions
    ledger = Ledger.split(domain(most, chosen=True), Fraction(1))
    once = next(s for s in ledger.spends if s.statistic == "lengths")
    assert max(epsilon_spent(c, ledger) + c["lengths"] * once.epsilon for c in changes) > 1


def test_how_many_events_are_looked_at_is_chosen_from_noised_lengths_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One draw for the lengths chooses and is released; a choice by exact lengths would tell on one object."""
    drawn: list[tuple[str, list[int]]] = []

    def listen(counts: Any, spend: Spend) -> Any:
        made, used = noise(counts, spend)
        if spend.statistic == "lengths":
            made[0] += 10_000  # noise that chooses 1, where exact lengths choose 4
        drawn.append((spend.statistic, made.ravel().tolist()))
        return made, used

    monkeypatch.setattr(synthesize, "noise", listen)
    events = [(f"o{i}", h, "ab"[h % 2]) for i in range(40) for h in range(1 + i % 4)]
    with placed_of(events, tmp_path, events_max="private", length_bins=[1, 2, 4]) as (plan, placed, engine):
        assert plan.domain.chosen and plan.domain.events_max == 4
        found = synthesize.fit_private("x", plan.domain, Fraction(1), placed, engine, lambda text: None)
    assert [n for n, _ in drawn].count("lengths") == 1 and drawn[0][0] == "lengths", "first, and once"
    assert found.domain.events_max == choose_events(plan.domain, drawn[0][1]).events_max == 1
    assert found.objects == sum(drawn[0][1]), "and what was drawn is what is used"
    assert sum(s.epsilon for s in found.ledger.spends) == 1
    states, lengths = found.ledger.of("states"), found.ledger.of("lengths")
    assert states is not None and states.sensitivity == found.domain.events_max
    assert lengths is not None and lengths.epsilon == Fraction(1, 10)
    assert [choose_events(plan.domain, n).events_max for n in ([8, 1, 1, 0], [7, 1, 1, 0], [1, 1, 1, 9])] == [1, 2, 4]
    assert [choose_events(plan.domain, n).events_max for n in ([8, -5, -5, 0], [-1, -1, -1, -1])] == [1, 1]
    exact, neighbour = [4, 1, 0, 0], [3, 1, 0, 0]
    assert choose_events(plan.domain, exact) != choose_events(plan.domain, neighbour), "so exact lengths may not choose"


def test_the_twin_without_bounding_is_found_out(tmp_path: Path) -> None:
    """The same ledger on tables in which all events of an object count."""
    before = [("old", 3, "b")]
    longer = [("new", h, "a") for h in range(4)]
    change = distances(tables_of(before, tmp_path, events_max=9), tables_of([*before, *longer], tmp_path, events_max=9))
    assert epsilon_spent(change, Ledger.split(domain(), Fraction(1))) > 1


def domain(events_max: int = L, *, chosen: bool = False, factors: tuple[str, ...] = ()) -> Domain:
    return Domain(
        (("a",), ("b",)),
        None,
        datetime(2100, 1, 1),
        datetime(2100, 3, 1),
        (Fraction(2),),
        (1, 2, 4),
        events_max,
        chosen,
        factors,
    )


@pytest.mark.parametrize(("epsilon", "events_max"), [("1", 1), ("0.1", 2), ("7/3", 8), ("0.0001", 8)])
@pytest.mark.parametrize("factors", [(), ("weekday", "year", "month")], ids=["", "factors"])
@pytest.mark.parametrize("chosen", [False, True], ids=["L given", "L private"])
def test_the_ledger_adds_up_exactly_and_opendp_confirms_each_spend(
    epsilon: str, events_max: int, factors: tuple[str, ...], chosen: bool
) -> None:
    ledger = Ledger.split(domain(events_max, chosen=chosen, factors=factors), Fraction(epsilon))
    assert sum(s.epsilon for s in ledger.spends) == Fraction(epsilon)
    for spend in ledger.spends:
        assert spend.sensitivity == sensitivity_of(spend.statistic, events_max) > 0
        _, used = noise(np.zeros(spend.cells, dtype=np.int64), spend)
        assert Fraction(used.scale) * spend.epsilon >= spend.sensitivity, "never less noise than needed"
        assert used.scale == pytest.approx(float(spend.sensitivity / spend.epsilon), rel=1e-12), "and hardly more"
    with pytest.raises(SqldeidError, match="do not add up"):
        Ledger(Fraction(epsilon), ledger.spends[1:])
    with pytest.raises(JobError):
        Ledger.split(domain(), Fraction(0))


def test_noise_is_added_to_every_cell_of_the_whole_domain() -> None:
    spend = Ledger.split(domain(), Fraction(1)).spends[0]
    with pytest.raises(SqldeidError, match="cells"):
        noise(np.zeros(spend.cells - 1, dtype=np.int64), spend)


def z_of_scale(drawn: np.ndarray[Any, Any], scale: float) -> float:
    """How far the mean size of discrete Laplace noise is from what `scale` makes it, in standard errors."""
    r = np.exp(-1 / scale)
    mean, second = 2 * r / (1 - r * r), 2 * r / (1 - r) ** 2
    return float((np.abs(drawn).mean() - mean) / np.sqrt((second - mean**2) / len(drawn)))


def test_the_noise_has_the_scale_that_the_ledger_says() -> None:
    """Reject |z| > 5 in both of two draws: by chance once in 10^11. A wrong scale gives 13."""

    def z(factor: str) -> float:
        spend = Spend("transitions", 9, Fraction(3, 5) / Fraction(factor), 15.0 * float(factor), 2_000)
        return min(abs(z_of_scale(noise(np.full(2_000, n), spend)[0] - n, 15.0)) for n in (0, 1_000))

    assert z("1") <= 5
    assert z("0.7") > 5 and z("1.3") > 5, "the test must see a wrong scale"


def test_every_table_gets_the_noise_that_its_spend_says() -> None:
    """Tables of nothing, with the noise of a whole release: each statistic by the scale in the ledger."""
    wide = replace(
        domain(8, factors=FACTORS), states=tuple((str(n),) for n in range(30)), length_bins=tuple(range(1, 41))
    )
    steps = np.zeros((31, 31), dtype=np.int64)
    factors = {f: np.zeros((len(wide.values(f)), 31, 31), dtype=np.int64) for f in FACTORS}
    empty = [np.zeros(n, dtype=np.int64) for n in (30, (30, 2), 41, 2, (7, 24))]
    drawn: dict[str, list[Any]] = {}
    for _ in range(3):
        tables, ledger = add_noise(Tables(steps, *empty, factors), Ledger.split(wide, Fraction(1)))
        for name, counts in cells(tables).items():
            cut = possible(counts) if name.startswith("transitions") else np.ones(counts.shape, dtype=np.bool_)
            assert not counts[~cut].any(), "START → END cannot be"
            drawn.setdefault(name, []).append(counts[cut])
    assert set(drawn) == {s.statistic for s in ledger.spends} and len(drawn) == 10
    for spend in ledger.spends:
        assert drawn[spend.statistic][0].size == spend.cells
        if spend.cells > 25:
            # A mean of 30 sizes is gamma distributed: beyond 5 deviations once in 20,000, three times once in 10^13.
            far = min(abs(z_of_scale(counts, spend.scale)) for counts in drawn[spend.statistic])
            assert far <= 5, f"{spend.statistic}: of three draws, the nearest"


def test_counts_equal_plain_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    events = [
        (f"o{o}", int(h), "abz"[rng.integers(0, 3)])
        for o in range(60)
        for h in np.cumsum(rng.integers(1, 90, rng.integers(1, 9)))
    ]
    events += [("late", 10**6, "a"), ("early", -5, "a")]
    found = tables_of(events, tmp_path, factors=FACTORS, events_max=4, length_bins=[1, 2, 4])
    expected = Tables(
        *(np.zeros_like(getattr(found, f)) for f in ("transitions", "states", "gaps", "lengths", "months", "hours")),
        {factor: np.zeros_like(counts) for factor, counts in found.factors.items()},
    )

    def step(hour: int, origin: int, target: int) -> None:
        expected.transitions[origin, target] += 1
        day = datetime(2100, 1, 1) + timedelta(hours=hour)
        values = {"weekday": day.weekday(), "hour": day.hour, "month": day.month - 1, "year": 0}
        for factor, value in values.items():
            expected.factors[factor][value, origin, target] += 1

    span = 59 * 24
    for owner in {e[0] for e in events}:
        own = sorted((h, s) for o, h, s in events if o == owner and s in "ab" and 0 <= h < span)
        if not own:
            continue
        codes = ["ab".index(s) for _, s in own][:4]
        step(own[0][0], 0, codes[0])
        for (h, _), (a, b) in zip(own, pairwise(codes), strict=False):
            step(h, a + 1, b)
        if len(own) <= 4:
            step(own[-1][0], codes[-1] + 1, 2)
        for (h, _), (g, _), code in zip(own, own[1:4], codes, strict=False):
            expected.gaps[code, int(g - h >= 2)] += 1
        np.add.at(expected.states, codes, 1)
        expected.lengths[np.searchsorted([1, 2, 4], len(own))] += 1
        start = own[0][0]
        expected.months[int(start >= 31 * 24)] += 1
        expected.hours[(4 + start // 24) % 7, start % 24] += 1
    for name, counts in cells(expected).items():
        assert np.array_equal(cells(found)[name], counts), name


def test_an_edge_of_gaps_is_in_the_bin_above_where_they_are_counted_and_where_they_are_made(tmp_path: Path) -> None:
    """Edges between two seconds, too: whole seconds are made, none of them of another bin than was drawn."""
    at_edge = tables_of([("o", 0, "a"), ("o", 2, "a"), ("p", 0, "a"), ("p", 1, "a")], tmp_path, events_max=2)
    assert at_edge.gaps[0].tolist() == [1, 1], "two hours are not below two hours"
    edges = (Fraction("0.0004"), Fraction("0.00055"), Fraction("4.35"), Fraction(6))  # 1.44 s, 1.98 s, 15,660 s
    bins = len(edges) + 1
    model: Any = SimpleNamespace(domain=replace(domain(), gap_bins_hours=edges), gaps=np.eye(bins))
    wanted = np.repeat(np.arange(bins), 2_000)
    made = synthesize._steps(model, wanted, np.random.default_rng(1)) // 1_000_000
    found = np.array([sum(Fraction(int(s), 3600) >= e for e in edges) for s in made])
    whole = wanted != 1  # between 1.44 and 1.98 there is no second: the next one
    assert np.array_equal(found[whole], wanted[whole]) and set(made[~whole]) == {2}


def test_estimating_beats_clipping_and_raking_meets_its_sums() -> None:
    rng = np.random.default_rng(2)
    truth = rng.poisson(np.where(rng.random(4_000) < 0.05, 60, 0.05)).astype(np.int64)
    spend = Spend("transitions", 9, Fraction(3, 5), 15.0, 4_000)
    drawn, _ = noise(truth, spend)
    prior = np.full(4_000, truth.mean())
    estimated = posterior_mean(drawn, 15.0, prior)
    # 0.45 of the error of clipping, with a standard deviation of 0.013 from draw to draw.
    assert np.abs(estimated - truth).sum() < 0.6 * np.abs(drawn.clip(0) - truth).sum()
    assert estimated.min() >= 0
    table = rake(rng.random((5, 4)), np.array([1.0, 2, 3, 4, 5]), np.array([3.0, 4, 5, np.nan]))
    assert table.sum(axis=1) == pytest.approx([1, 2, 3, 4, 5])


def test_what_is_made_depends_on_the_noised_tables_alone(tmp_path: Path) -> None:
    """Two databases whose noised tables are equal give the same objects for a seed."""
    exact = tables_of([("o", 3, "a"), ("o", 4, "b"), ("p", 1, "b")], tmp_path, length_bins=[1, 2, 4])
    ledger = Ledger.split(domain(8), Fraction(1))
    noised, used = add_noise(exact, ledger)
    made = []
    for _ in range(2):
        model = estimate(domain(8), noised, used)
        made.append(list(model.generate(50, np.random.default_rng(1), synthesize.Made())))
    assert made[0] == made[1]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    folder = tmp_path_factory.mktemp("laplace")
    (folder / "wards.txt").write_text("\n".join(WARD_STATES), encoding="utf-8")
    connection = transfers(4_370)
    section = kind_t(privacy=laplace(folder / "wards.txt"), attacks=False)
    del section["gap_hours"]
    result = sqldeid.anonymize(Job.parse({"events": {"t": section}}), connection)
    return result, connection, folder


def test_laplace_keeps_patterns_at_the_size_of_the_paper(released: tuple[Any, Any, Path]) -> None:
    figures = released[0].releases["t"].evaluation
    assert figures["tvd_2gram"] <= 0.55 and figures["cover"] > 0.7 and figures["similarity"] > 0.6


def test_laplace_beats_a_plain_noised_table_with_all_of_epsilon(released: tuple[Any, Any, Path]) -> None:
    """Clip at 0, normalise, draw: with epsilon for the transitions alone."""
    _, connection, folder = released
    section = kind_t(privacy=laplace(folder / "wards.txt"))
    del section["gap_hours"]
    with planned(connection, section) as (plan, engine):
        assert plan.domain is not None
        exact = count_tables(plan.domain, read_private(plan, engine).placed, engine)
    drawn, _ = noise(exact.transitions.ravel(), Spend("transitions", 9, Fraction(1), 9.0, exact.transitions.size))
    plain = drawn.reshape(exact.transitions.shape).clip(0)[1:, :-1].astype(np.float64)
    truth = exact.transitions[1:, :-1]
    distance = np.abs(plain / plain.sum() - truth / truth.sum()).sum() / 2
    assert released[0].releases["t"].evaluation["tvd_2gram"] < distance


def test_nothing_that_is_not_noised_leaves(released: tuple[Any, Any, Path]) -> None:
    result, connection, _ = released
    release = result.releases["t"]
    public = json.dumps(release.to_public())
    notes = " ".join(
        str(c)
        for row in connection.execute(
            "SELECT comment FROM duckdb_tables() UNION ALL SELECT comment FROM duckdb_columns()"
        ).fetchall()
        for c in row
    )
    for text in (public, notes):
        # The note says that its source is not marked, and why; no mark of a source stands there.
        said = text.replace('"source_marks": "composes by epsilon"', "").replace("in the words of the source", "")
        assert "evaluation" not in said and "attacks" not in said and "source" not in said
        assert not any(
            f" {n}" in text or f"{n:,}" in text for n in (release.source["objects"], release.source["events"])
        )
    assert sum(Fraction(str(s["epsilon_exact"])) for s in release.ledger) == 1
    assert set(release.to_dict()["audience"]) >= {"evaluation", "attacks", "source"}
    assert release.guarantee.differentially_private and "subject_id" in release.guarantee.text


def test_an_empty_database_is_an_outcome_not_a_refusal(tmp_path: Path) -> None:
    """A refusal would tell that nobody is in it."""
    (tmp_path / "codes.txt").write_text("\n".join("abc"), encoding="utf-8")
    section = kind_c(privacy=laplace(tmp_path / "codes.txt", timed=False), attacks=False)
    connection = procedures(1)
    connection.execute("DELETE FROM e")
    result = sqldeid.anonymize(Job.parse({"events": {"c": section}}), connection)
    assert result.releases["c"].objects >= 0


def test_one_object_does_not_show(tmp_path: Path) -> None:
    """The canary that breaks `ratio` is seen as often without the object as with it; `ratio` is broken by it."""
    from sqldeid.events.attacks import fly_canary
    from sqldeid.events.fit import fit_laplace
    from sqldeid.events.sequences import read_placed, sequence

    events = [(f"o{o}", h, s) for o in range(20) for h, s in enumerate("abbcbb" * (1 + o % 2))]
    with placed_of(events, tmp_path, other="c") as (plan, placed, engine):
        rng = np.random.default_rng(1)
        private = fly_canary(
            plan, placed, lambda p: fit_laplace(plan, p, engine, lambda t: None), rng, engine, releases=20
        )
    ratio = TINY | {"privacy": {"method": "ratio", "epsilon": 0.4}, "clusters": {"hashes": 10}, "factors": []}
    with planned(database(rows_of(events)), ratio) as (plan, engine):
        placed, _, counts = read_placed(plan, engine)

        def refit(table: Any) -> Any:
            return prepare(plan, sequence(plan, table, counts, engine), engine, lambda t: None).privatise(
                0.4, 20, engine
            )

        broken = fly_canary(plan, placed, refit, np.random.default_rng(1), engine, releases=20)
    assert broken is not None and private is not None
    assert broken.seen_with == 20 and broken.seen_without == 0, "of 20 each"
    assert private.seen_with < 20 or private.seen_without > 0, "it does not tell; by chance once in 10^12 at most"


@pytest.mark.parametrize("most", [8, 1_000])
def test_the_canary_stays_within_the_public_times(tmp_path: Path, most: int) -> None:
    """Somebody's first event decided whether it went on past their end, in a year that no table has."""
    span, hours = ["2100-06-01", "2101-01-01"], (datetime(2101, 1, 1) - datetime(2100, 1, 1)).days * 24
    for begins in (hours - 1, hours - 24, 4_000):
        events = [(f"o{o}", begins, "ab"[o % 2]) for o in range(6)]
        with placed_of(
            events, tmp_path, FACTORS, time_range=span, events_max=most, length_bins=[1, most], other="c"
        ) as (plan, placed, engine):
            found = flown(plan, placed, engine)
        assert min(found) == datetime(2100, 6, 1) and max(found) < datetime(2101, 1, 1) and len(found) == most


@pytest.mark.parametrize("end", ["2100-06-01T00:30:00", "2100-06-01T00:00:00.000003"])
def test_the_canary_stays_within_times_shorter_than_it(tmp_path: Path, end: str) -> None:
    base = (datetime(2100, 6, 1) - datetime(2100, 1, 1)).days * 24
    events = [(f"o{o}", base, "ab"[o % 2]) for o in range(6)]
    with placed_of(events, tmp_path, FACTORS, time_range=["2100-06-01", end]) as (plan, placed, engine):
        found = flown(plan, placed, engine)
    assert min(found) == datetime(2100, 6, 1) and max(found) < datetime.fromisoformat(end) and len(found) == 8


def flown(plan: Any, placed: Any, engine: Any) -> list[datetime]:
    """Times of the canary's events, after both kinds of releases were made."""
    from sqldeid.events.attacks import fly_canary
    from sqldeid.events.fit import fit_laplace

    times: list[list[datetime]] = []

    def refit(table: Any) -> Any:
        rows = engine.query(f"SELECT moment, object FROM {table.sql(dialect='duckdb')}").to_pylist()
        times.append([row["moment"] for row in rows if row["object"] == 7])
        return fit_laplace(plan, table, engine, lambda text: None)

    assert fly_canary(plan, placed, refit, np.random.default_rng(1), engine, releases=1) is not None
    assert times[1] == []
    return times[0]


def test_what_follows_depends_on_a_factor(tmp_path: Path) -> None:
    """Before noon a is followed by b, after noon by a; a table without the factor mixes them."""
    noon = [("m", 9, "a"), ("m", 10, "b"), ("n", 21, "a"), ("n", 22, "a")]
    events = [(f"{o}{i}", h + 24 * (i % 28), s) for i in range(300) for o, h, s in noon]
    share = {}
    for factors in ([], ["hour"]):
        with placed_of(events, tmp_path, factors, epsilon=300.0) as (plan, placed, engine):
            found = synthesize.fit_private("x", plan.domain, plan.epsilon, placed, engine, lambda text: None)
        made = pa.Table.from_batches(found.generate(600, np.random.default_rng(1), synthesize.Made())).to_pydict()
        firsts = [
            (made["moment"][i].hour, made["state"][i + 1])
            for i, p in enumerate(made["position"][:-1])
            if p == 1 and made["position"][i + 1] == 2 and made["state"][i] == 0
        ]
        share[bool(factors)] = [np.mean([s == 1 for h, s in firsts if (h < 12) is early]) for early in (True, False)]
    assert share[True][0] > 0.9 and share[True][1] < 0.1
    assert all(0.2 < s < 0.8 for s in share[False])
