"""Objects are made by the models and nothing else: drawn from the weighted ensemble, in order, again from a seed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sqldeid.events.fit import prepare
from sqldeid.events.generate import DAY_US, Made, moment
from sqldeid.events.model import Model, make_chain
from sqldeid.events.sequences import read_sequences
from tests.support.events import kind_c, kind_t, planned, procedures, transfers


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64)


def test_a_weighted_ensemble_is_drawn_as_its_weighted_mean() -> None:
    """Three models have the row, with supports 10, 100 and 30 (of the model, not of the row); a fourth has not."""
    chain = make_chain(
        level=ints(0, 0, 0, 1, 1, 2),
        cluster=ints(-1, -1, -1, 5, 5, -1),
        value=ints(-1, -1, -1, -1, -1, 3),
        origin=ints(0, 0, 1, 0, 0, 0),
        target=ints(1, 2, 1, 1, 3, 2),
        n=ints(40, 40, 20, 9, 1, 30),
        mean=np.zeros(6),
        sd=np.zeros(6),
    )
    count = 200_000
    origin = np.zeros(count, dtype=np.int64)
    rows = [
        chain.rows(0, -1, -1, origin),
        chain.rows(1, np.full(count, 5), -1, origin),
        chain.rows(2, -1, np.full(count, 3), origin),
        chain.rows(3, np.full(count, 5), np.full(count, 3), origin),
    ]
    assert [int(r[0]) >= 0 for r in rows] == [True, True, True, False]
    drawn = chain.target[chain.draw(np.random.default_rng(1), rows)]
    weights = np.array([1 / 100, 1 / 10, 1 / 30])
    weights /= weights.sum()
    expected = weights @ np.array([[0.5, 0.5, 0.0], [0.9, 0.0, 0.1], [0.0, 1.0, 0.0]])
    found = np.array([(drawn == t).mean() for t in (1, 2, 3)])
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / count) + 1e-9)
    assert np.all(chain.draw(np.random.default_rng(1), [chain.rows(0, -1, -1, origin + 7)]) == -1)


@pytest.fixture(scope="module", params=["T", "T by duration", "C", "C by duration"])
def fitted(request: pytest.FixtureRequest) -> Model:
    kind, _, by_duration = request.param.partition(" ")
    section = (kind_t if kind == "T" else kind_c)(**({"end": "duration"} if by_duration else {}))
    with planned(transfers(300) if kind == "T" else procedures(300), section) as (plan, engine):
        return prepare(plan, read_sequences(plan, engine), engine, lambda text: None).privatise(0.65, 300, engine).model


def batches(model: Model, objects: int, seed: int) -> tuple[pa.Table, Made]:
    from sqldeid.events.generate import generate

    made = Made()
    return pa.Table.from_batches(list(generate(model, objects, np.random.default_rng(seed), made))), made


@pytest.mark.sampled(2)
def test_what_is_made_is_numbered_ordered_and_within_the_models(fitted: Model) -> None:
    table, made = batches(fitted, 5_000, 3)
    found = table.to_pydict()
    assert (made.events, made.objects) == (table.num_rows, max(found["object"]))
    assert sorted(set(found["object"])) == list(range(1, made.objects + 1))
    assert made.parts == len(set(found["part"]))
    kept = set(zip(*(getattr_rows(fitted)), strict=True))
    near = {(int(a), int(b)) for a, b in zip(*rows_of(fitted.state_pairs), strict=True)}
    places: dict[int, int] = {}
    for at, (number, place) in enumerate(zip(found["object"], found["position"], strict=True)):
        places[number] = places.get(number, 0) + 1
        assert place == places[number], f"row {at}"
    assert max(places.values()) <= fitted.events_most
    keys = ("object", "part", "state", "moment")
    for before, after in pairwise(zip(*(found[k] for k in keys), strict=True)):
        if before[1] == after[1]:
            assert (before[2], after[2]) in kept or (before[2], after[2]) in near
        if fitted.timed and before[0] == after[0]:
            assert before[3] < after[3], "times tell the order"


def rows_of(chain: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Origin and target of every entry."""
    sizes = np.diff(chain.first)
    origin = np.repeat(chain.keys % chain.shape[3] + chain.low[3], sizes)
    return origin, chain.target


def getattr_rows(model: Model) -> tuple[list[int], list[int]]:
    origin, target = rows_of(model.states)
    return [int(o) for o in origin], [int(t) for t in target]


def test_a_seed_repeats_and_another_does_not(fitted: Model) -> None:
    first, _ = batches(fitted, 500, 3)
    assert first.equals(batches(fitted, 500, 3)[0])
    assert not first.equals(batches(fitted, 500, 4)[0])


def test_factors_of_time_read_as_the_sql_does() -> None:
    days = np.arange(-800, 80_000, 37)
    stamps = days.astype("datetime64[D]").tolist()
    us = days * DAY_US + 5 * 3_600_000_000 + 1
    assert moment("weekday", us).tolist() == [d.isoweekday() for d in stamps]
    assert moment("month", us).tolist() == [d.month for d in stamps]
    assert moment("year", us).tolist() == [d.year for d in stamps]
    assert set(moment("hour", us).tolist()) == {5}
