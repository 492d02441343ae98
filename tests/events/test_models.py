"""Sequences, clusters and models equal a slow, obvious reference on random events."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from hashlib import md5
from itertools import pairwise
from math import ceil, exp, floor, log, log2
from typing import Any

import numpy as np
import pytest

from sqldeid.events import markov
from sqldeid.events.clusters import cluster_parts
from sqldeid.events.privacy.ratio import Ratio
from sqldeid.events.sequences import read_sequences
from sqldeid.job.events import Clusters
from tests.support.events import database, kind_t, planned, random_events, sequences_of, split, transfers

SECTION: dict[str, Any] = {
    "source": "e",
    "object": "who",
    "time": "at",
    "order": "row",
    "state": "what",
    "factors": ["weekday", "hour", "duration", "year", "what"],
    "privacy": {"method": "none"},
}
DAY = 86_400 * 10**6


def moment(us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("gap_hours", ["auto", "none", 5])
def test_counts_means_and_deviations_equal_plain_python(seed: int, gap_hours: object) -> None:
    rows = random_events(np.random.default_rng(seed))
    whole = sequences_of(rows)
    gaps = [b[0] - a[0] for s in whole.values() for a, b in pairwise(s)]
    logs = np.log(np.array([gap for gap in gaps if gap >= 60_000_000]) / 3.6e9)
    low, high = np.quantile(logs, [0.25, 0.75])
    threshold = {"auto": max(exp(high + 1.5 * (high - low)), 1.0), "none": None}.get(str(gap_hours), 5.0)
    most = round(threshold * 3_600_000_000) if threshold is not None else None
    states = sorted({what for s in whole.values() for _, what in s})
    with planned(database(rows), SECTION | {"gap_hours": gap_hours}) as (plan, engine):
        sequences = read_sequences(plan, engine)
        found = cluster_parts("x", sequences.split, plan.part.clusters, engine)
        counted = markov.count(plan, sequences, found.clustered, engine)
        tables = {
            name: engine.query(f"SELECT * FROM {table.sql(dialect='duckdb')}").to_pylist()
            for name, table in [
                ("states", counted.states),
                ("clusters", counted.clusters),
                ("pairs", counted.state_pairs),
            ]
        }
        clusters = engine.query(f"SELECT part, cluster FROM {found.clustered.sql(dialect='duckdb')}").to_pylist()
    if threshold is not None:
        assert sequences.gaps.threshold_hours == pytest.approx(threshold, rel=1e-12)
    cluster_of = {row["part"]: row["cluster"] for row in clusters}
    expected, neighbours, jumps = defaultdict(list), Counter[tuple[int, int]](), defaultdict(list)
    number = 0
    firsts = sorted({what for s in whole.values() for _, what in s})
    for sequence in whole.values():
        before = None
        for part in split(sequence, most):
            number += 1
            cluster = cluster_of[number]
            duration = floor(log2(1 + (part[-1][0] - part[0][0]) / 3.6e9))
            here = [(states.index(what), at) for at, what in part]
            steps = [(len(states), here[0][0], None, here[0][1])]
            steps += [(a[0], b[0], (b[1] - a[1]) / 3.6e9, a[1]) for a, b in pairwise(here)]
            steps.append((here[-1][0], len(states) + 1, None, here[-1][1]))
            for origin, target, hours, at in steps:
                time = moment(at)
                values = [time.isoweekday(), time.hour, duration, time.year, firsts.index(part[0][1])]
                for level, c, value in [(0, -1, -1), (1, cluster, -1)] + [
                    (2 * i + own, cluster if own else -1, v) for i, v in enumerate(values, start=1) for own in (0, 1)
                ]:
                    expected[level, c, value, origin, target].append(hours)
            for a in {s for s, _ in here}:
                neighbours.update((a, b) for b in {s for s, _ in here} if a != b)
            hours = None if before is None else (part[0][0] - before[1]) / 3.6e9
            jumps[-1 if before is None else before[0], cluster].append(hours)
            before = (cluster, part[-1][0])
        jumps[before[0], -2].append(None)
    check_entries(
        {tuple(r[k] for k in ("level", "cluster", "value", "origin", "target")): r for r in tables["states"]}, expected
    )
    check_entries({(r["origin"], r["target"]): r for r in tables["clusters"] if r["level"] == 0}, jumps)
    assert {(r["origin"], r["target"]): r["n"] for r in tables["pairs"]} == neighbours


def check_entries(found: dict[Any, dict[str, Any]], expected: dict[Any, list[float | None]]) -> None:
    assert {key: row["n"] for key, row in found.items()} == {key: len(hours) for key, hours in expected.items()}
    for key, hours in expected.items():
        known = [h for h in hours if h is not None]
        if known:
            assert found[key]["mean_hours"] == pytest.approx(np.mean(known), rel=1e-9, abs=1e-12)
        else:
            assert found[key]["mean_hours"] is None
        if len(known) > 1:
            assert found[key]["sd_hours"] == pytest.approx(np.std(known, ddof=1), rel=1e-6, abs=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shingle", [1, 2, 3])
def test_signatures_estimate_jaccard_and_clusters_follow_their_leaders(shingle: int) -> None:
    asked = Clusters(share=0.15, hashes=100, shingle=shingle)
    with planned(transfers(120), kind_t()) as (plan, engine):
        sequences = read_sequences(plan, engine)
        runs = [cluster_parts("x", sequences.split, asked, engine) for _ in range(2)]
        read = [
            {
                name: engine.query(f"SELECT * FROM {getattr(run, name).sql(dialect='duckdb')} ORDER BY ALL").to_pylist()
                for name in ("clustered", "members", "signed", "ranked")
            }
            for run in runs
        ]
    assert read[0] == read[1], "clusters must not depend on chance"
    run, tables = runs[0], read[0]
    members, sizes = defaultdict(set), {r["set_number"]: r["n"] for r in tables["ranked"]}
    for row in tables["members"]:
        members[row["set_number"]].add(row["code"])
    signed = {r.pop("set_number"): np.array(list(r.values())) for r in tables["signed"]}
    assert run.clusters == min(ceil(0.15 * run.parts), run.sets)
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True), "leaders are the most frequent sets"
    far, pairs = 0, 0
    for a in members:
        for b in members:
            if a < b:
                exact = len(members[a] & members[b]) / len(members[a] | members[b])
                estimate = float((signed[a] == signed[b]).mean())
                error = np.sqrt(exact * (1 - exact) / 100)
                far, pairs = far + (abs(estimate - exact) > 3 * error + 1e-12), pairs + 1
    assert far / pairs <= 0.005
    leader_of = {r["set_number"]: r["cluster"] + 1 for r in tables["clustered"]}
    lost = []
    for number, leader in leader_of.items():
        agreement = [int((signed[number] == signed[other]).sum()) for other in range(1, run.clusters + 1)]
        if number <= run.clusters:
            assert leader == number
        lost.append(max(agreement) - agreement[leader - 1])
    assert np.mean(lost) < 3, "of 100 hash functions; the bands may miss a better leader, not by much"
    assert sum(run.sizes.values()) <= run.clusters and sum(s * n for s, n in run.sizes.items()) == run.parts


def test_hash_values_are_md5_on_every_version() -> None:
    rows = random_events(np.random.default_rng(3), objects=10)
    with planned(database(rows), SECTION) as (plan, engine):
        sequences = read_sequences(plan, engine)
        run = cluster_parts("x", sequences.split, Clusters(hashes=10), engine)
        signed = engine.query(f"SELECT * FROM {run.signed.sql(dialect='duckdb')} ORDER BY set_number").to_pylist()
        parts = engine.query(
            f"SELECT DISTINCT c.set_number, s.state FROM {run.clustered.sql(dialect='duckdb')} AS c "
            f"JOIN {sequences.split.sql(dialect='duckdb')} AS s ON c.part = s.part"
        ).to_pylist()
    held = defaultdict(set)
    for row in parts:
        held[row["set_number"]].add(row["state"])
    for row in signed:
        for i in range(10):
            digests = [int(md5(f"{i}:{state}".encode()).hexdigest()[:15], 16) for state in held[row["set_number"]]]
            assert row[f"h{i}"] == min(digests)


def test_the_worked_example_of_the_source() -> None:
    assert Ratio(0.4).keeps(3, 10) and not Ratio(0.3).keeps(3, 10)
    assert not Ratio(0.4).keeps(2, 9), "one record less: the decision itself gives it away"
    assert not Ratio(100.0).keeps(1, 1), "a single record is never used, whatever epsilon is"
    assert log(1.35) < 0.4


@pytest.mark.parametrize("epsilon", [0.05, 0.35, 0.65, 2.0])
def test_one_round_of_suppression_is_enough(epsilon: float) -> None:
    """All that fail go at once; then everything that is left passes with the smaller total."""
    rng, ratio = np.random.default_rng(1), Ratio(epsilon)
    for _ in range(500):
        counts = rng.geometric(0.1, int(rng.integers(1, 12)))
        kept = [c for c in counts if ratio.keeps(int(c), int(counts.sum()))]
        assert all(ratio.keeps(int(c), int(sum(kept))) for c in kept)
