"""Re-identification by somebody who may know sensitive values, simulated: m bounds it, class sizes do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import sqrt

import duckdb
import numpy as np
import pytest

import sqldeid
from tests.support.sources import insert

M, KNOWN = 0.1, {"illness": 0.3, "town": 0.15}
TRIALS = 20_000
Row = tuple[str, str, str]


@pytest.fixture(scope="module")
def people() -> duckdb.DuckDBPyConnection:
    rng = np.random.default_rng(20)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (id INTEGER, age INTEGER, illness VARCHAR, town VARCHAR)")
    ages = rng.integers(0, 64, 900)
    illness = rng.choice(["none", "flu", "asthma", "gout"], 900, p=[0.5, 0.3, 0.15, 0.05])
    town = rng.choice(["north", "south", "west"], 900, p=[0.6, 0.35, 0.05])
    rows = [(i, int(a), str(s), str(t)) for i, (a, s, t) in enumerate(zip(ages, illness, town, strict=True))]
    insert(connection, "people", rows)
    return connection


def released(people: duckdb.DuckDBPyConnection, privacy: dict[str, object]) -> list[Row]:
    """Class, illness and town of every released row."""
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [2, 4, 8, 16, 32]}},
        "illness": {"role": "sensitive"},
        "town": {"role": "sensitive"},
    }
    asked = {"suppression_limit": 0.05, **privacy}
    job = {"tables": {"people": {"source": "people", "person": "id", "columns": columns, "privacy": asked}}}
    sqldeid.anonymize(sqldeid.Job.parse(job), people, options=sqldeid.Options(replace=True, without_ledger=True))
    return people.execute("SELECT CAST(age AS VARCHAR), illness, town FROM release.people").fetchall()


def rates(rows: Sequence[Row], seed: int) -> list[float]:
    """How often the attacker picks the right row, for one person of each of the rarest combinations.

    The class is known; each sensitive value with its probability. Of the rows that fit, one is picked at random.
    """
    rng = np.random.default_rng(seed)
    found = []
    for rare, _ in Counter(rows).most_common()[:-16:-1]:
        person = rows.index(rare)
        own = [i for i, r in enumerate(rows) if r[0] == rare[0]]
        knows = rng.random((TRIALS, 2)) < list(KNOWN.values())
        hits = 0
        for illness, town in ((a, b) for a in (False, True) for b in (False, True)):
            times = int((knows == (illness, town)).all(axis=1).sum())
            fit = [i for i in own if (not illness or rows[i][1] == rare[1]) and (not town or rows[i][2] == rare[2])]
            hits += int((rng.choice(fit, times) == person).sum())
        found.append(hits / TRIALS)
    return found


NOISE = 4 * sqrt(M * (1 - M) / TRIALS)


def test_nobody_is_found_more_often_than_m(people: duckdb.DuckDBPyConnection) -> None:
    rows = released(people, {"k": 2, "m_concealing": {"m": M, "known": KNOWN}})
    assert len(rows) >= 0.95 * 900
    assert max(rates(rows, 1)) <= M + NOISE
    assert max(rates(rows, 1)) > M / 3  # the bound is not idle


def test_classes_of_one_over_m_rows_do_not_bound_it(people: duckdb.DuckDBPyConnection) -> None:
    rows = released(people, {"k": round(1 / M)})
    assert max(rates(rows, 1)) > M + NOISE


def test_knowing_more_than_was_stated_breaks_it(people: duckdb.DuckDBPyConnection) -> None:
    """*Does not protect*: the same release, had the job called both values unlikelier to be known than they are."""
    stated = {name: p / 10 for name, p in KNOWN.items()}
    rows = released(people, {"k": 2, "m_concealing": {"m": M, "known": stated}})
    assert max(rates(rows, 1)) > M + NOISE
