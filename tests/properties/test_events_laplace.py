"""`laplace` is differentially private per object: enumerated, with twins that must fail, and its noise is measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.errors import JobError, SqldeidError
from sqldeid.events import synthesize
from sqldeid.events.domain import Domain
from sqldeid.events.estimate import posterior_mean, rake
from sqldeid.events.fit import prepare
from sqldeid.events.privacy.laplace import Ledger, Spend, noise, sensitivity_of
from sqldeid.events.release import _read_private
from sqldeid.events.synthesize import Tables, add_noise, count_tables, estimate
from sqldeid.job import Job
from tests.events import WARD_STATES, database, kind_c, kind_t, laplace, planned, procedures, transfers

HOUR = 3_600_000_000
TINY: dict[str, Any] = {"source": "e", "object": "who", "time": "at", "state": "what"}


@contextmanager
def placed_of(events: list[tuple[str, int, str]], folder: Path, **changes: object) -> Iterator[tuple[Any, Any, Any]]:
    """Plan, placed events and engine of a small database: (object, hours since 2100, state)."""
    (folder / "states.txt").write_text("a\nb", encoding="utf-8")
    base = 4_102_444_800 * 10**6
    rows = pa.table(
        {
            "who": pa.array([e[0] for e in events], pa.string()),
            "at": pa.array([base + e[1] * HOUR for e in events], pa.int64()).cast(pa.timestamp("us")),
            "what": pa.array([e[2] for e in events], pa.string()),
        }
    )
    privacy = laplace(folder / "states.txt", time_range=["2100-01-01", "2100-03-01"], gap_bins_hours=[2], **changes)
    del privacy["other"]
    with planned(database(rows), TINY | {"privacy": privacy}) as (plan, engine):
        yield plan, _read_private(plan, engine).placed, engine


def tables_of(events: list[tuple[str, int, str]], folder: Path, **changes: object) -> Tables:
    """Exact counts of a small database."""
    with placed_of(events, folder, **changes) as (plan, placed, engine):
        return count_tables(plan.domain, placed, engine)


def distances(left: Tables, right: Tables) -> dict[str, int]:
    """L1 distance of each statistic."""
    names = {"transitions": "transitions", "states": "states", "gaps": "gaps", "lengths": "lengths"}
    names |= {"start months": "months", "start hours": "hours"}
    return {s: int(np.abs(getattr(left, n) - getattr(right, n)).sum()) for s, n in names.items()}


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


@pytest.fixture(scope="module")
def contributions(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int]]:
    """What each possible object adds to the tables, by the SQL that counts; counts are sums over objects."""
    folder = tmp_path_factory.mktemp("states")
    chosen = [*every_object(3)[::4], [("new", 0, "a"), ("new", 5, "b")]]
    events = [(f"o{i}", h, s) for i, rows in enumerate(chosen) for _, h, s in rows]
    with placed_of(events, folder, events_max=L) as (plan, placed, engine):
        assert plan.domain is not None
        nothing = count_tables(plan.domain, some(placed, 0, engine), engine)
        alone = [count_tables(plan.domain, some(placed, i, engine), engine) for i in range(1, len(chosen) + 1)]
        whole = count_tables(plan.domain, placed, engine)
    for name in ("transitions", "states", "gaps", "lengths", "months", "hours"):
        assert np.array_equal(sum(getattr(t, name) for t in alone), getattr(whole, name)), "objects add up"
    return [distances(nothing, t) for t in alone]


def some(placed: Any, number: int, engine: Any) -> Any:
    """Placed events of one object."""
    one = engine.workbench("one")
    name, table = one.sql(dialect="duckdb"), placed.sql(dialect="duckdb")
    engine.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM {table} WHERE object = {number}")
    return one


def epsilon_spent(change: dict[str, int], ledger: Ledger) -> Fraction:
    """Greatest log ratio of discrete Laplace noise on every cell: the sum of |difference| / scale; it is reached."""
    return sum((Fraction(change[s.statistic]) * s.epsilon / s.sensitivity for s in ledger.spends), Fraction(0))


def test_no_neighbouring_pair_exceeds_epsilon_and_one_reaches_it(contributions: list[dict[str, int]]) -> None:
    ledger = Ledger.split(domain(), Fraction(1))
    spent = [epsilon_spent(change, ledger) for change in contributions]
    assert max(spent) == 1, "exactly epsilon: nothing is wasted, nothing is exceeded"


def test_the_twin_with_too_little_noise_is_found_out(contributions: list[dict[str, int]]) -> None:
    """Sensitivity L instead of L + 1 for the transitions."""
    right = Ledger.split(domain(), Fraction(1))
    wrong = [
        Spend(s.statistic, L, s.epsilon, s.scale, s.cells) if s.statistic == "transitions" else s for s in right.spends
    ]
    assert max(epsilon_spent(c, Ledger(Fraction(1), tuple(wrong))) for c in contributions) > 1


def test_the_twin_without_bounding_is_found_out(tmp_path: Path) -> None:
    """The same ledger on tables in which all events of an object count."""
    before = [("old", 3, "b")]
    longer = [("new", h, "a") for h in range(4)]
    change = distances(tables_of(before, tmp_path, events_max=9), tables_of([*before, *longer], tmp_path, events_max=9))
    assert epsilon_spent(change, Ledger.split(domain(), Fraction(1))) > 1


def domain(events_max: int = L) -> Domain:
    from datetime import datetime

    return Domain(
        (("a",), ("b",)), None, datetime(2100, 1, 1), datetime(2100, 3, 1), (Fraction(2),), (1, 2, 4), events_max
    )


@pytest.mark.parametrize("epsilon", ["1", "0.1", "7/3", "0.0001"])
@pytest.mark.parametrize("events_max", [1, 2, 8])
def test_the_ledger_adds_up_exactly_and_opendp_confirms_each_spend(epsilon: str, events_max: int) -> None:
    ledger = Ledger.split(domain(events_max), Fraction(epsilon))
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
    spend = Spend("transitions", 9, Fraction(3, 5), 15.0, 2_000)
    drawn, used = noise(np.full(2_000, 1_000, dtype=np.int64), spend)
    assert abs(z_of_scale(drawn - 1_000, used.scale)) <= 4
    for wrong in (0.7, 1.3):
        other, _ = noise(
            np.zeros(2_000, dtype=np.int64),
            Spend("transitions", 9, Fraction(3, 5) / Fraction(str(wrong)), 15.0 * wrong, 2_000),
        )
        assert abs(z_of_scale(other, used.scale)) > 4, "the test must see a wrong scale"


def test_counts_equal_plain_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    events = [
        (f"o{o}", int(h), "abz"[rng.integers(0, 3)])
        for o in range(60)
        for h in np.cumsum(rng.integers(1, 90, rng.integers(1, 9)))
    ]
    events += [("late", 10**6, "a"), ("early", -5, "a")]
    found = tables_of(events, tmp_path, events_max=4, length_bins=[1, 2, 4])
    expected = Tables(
        *(np.zeros_like(getattr(found, f)) for f in ("transitions", "states", "gaps", "lengths", "months", "hours"))
    )
    span = 59 * 24
    for owner in {e[0] for e in events}:
        own = sorted((h, s) for o, h, s in events if o == owner and s in "ab" and 0 <= h < span)
        if not own:
            continue
        codes = ["ab".index(s) for _, s in own][:4]
        expected.transitions[0, codes[0]] += 1
        for a, b in pairwise(codes):
            expected.transitions[a + 1, b] += 1
        if len(own) <= 4:
            expected.transitions[codes[-1] + 1, 2] += 1
        for (h, _), (g, _), code in zip(own, own[1:4], codes, strict=False):
            expected.gaps[code, int(g - h >= 2)] += 1
        np.add.at(expected.states, codes, 1)
        expected.lengths[np.searchsorted([1, 2, 4], len(own))] += 1
        start = own[0][0]
        expected.months[int(start >= 31 * 24)] += 1
        expected.hours[(4 + start // 24) % 7, start % 24] += 1
    for name in ("transitions", "states", "gaps", "lengths", "months", "hours"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_estimating_beats_clipping_and_raking_meets_its_sums() -> None:
    rng = np.random.default_rng(2)
    truth = rng.poisson(np.where(rng.random(4_000) < 0.05, 60, 0.05)).astype(np.int64)
    spend = Spend("transitions", 9, Fraction(3, 5), 15.0, 4_000)
    drawn, _ = noise(truth, spend)
    prior = np.full(4_000, truth.mean())
    estimated = posterior_mean(drawn, 15.0, prior)
    assert np.abs(estimated - truth).sum() < 0.5 * np.abs(drawn.clip(0) - truth).sum()
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
        exact = count_tables(plan.domain, _read_private(plan, engine).placed, engine)
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
        assert "evaluation" not in text and "attacks" not in text and "source" not in text
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

    (tmp_path / "wards.txt").write_text("\n".join(WARD_STATES), encoding="utf-8")
    connection, rng = transfers(200), np.random.default_rng(1)
    section = kind_t(privacy=laplace(tmp_path / "wards.txt"))
    del section["gap_hours"]
    with planned(connection, section) as (plan, engine):
        source = _read_private(plan, engine)
        private = fly_canary(
            plan, source.placed, lambda p: fit_laplace(plan, p, engine, lambda t: None), rng, engine, releases=7
        )
    with planned(connection, kind_t(privacy={"method": "ratio", "epsilon": 0.4}, clusters={"hashes": 10})) as (
        plan,
        engine,
    ):
        placed, _, counts = read_placed(plan, engine)

        def refit(table: Any) -> Any:
            return prepare(plan, sequence(plan, table, counts, engine), engine, lambda t: None).privatise(
                0.4, 200, engine
            )

        broken = fly_canary(plan, placed, refit, np.random.default_rng(1), engine, releases=20)
    assert broken is not None and private is not None
    assert broken.seen_with >= 15 and broken.seen_without == 0, "of 20 each"
    assert private.seen_with < 7 or private.seen_without > 0, "of 7 each: it does not tell"
