"""Durations: the dynamic programme equals brute force, algorithm 3 equals a transcript of it, and both keep k."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import JobError
from sqldeid.series.durations import assign, report, uniqueness

FIXTURE = np.array([9, 8, 8, 7, 5, 5, 5, 5, 3])

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=11)


def brute_force(falling: list[int], k: int) -> tuple[int, int] | None:
    """Least (steps lost, persons moved) over every assignment of a length at most the own, each shared by k or more."""

    @cache
    def best(counts: tuple[tuple[int, int], ...], at: int) -> tuple[int, int] | None:
        if at == len(falling):
            return (0, 0) if all(n >= k for _, n in counts) else None
        found = []
        for length in range(1, falling[at] + 1):
            there = dict(counts)
            there[length] = min(there.get(length, 0) + 1, k)
            if (rest := best(tuple(sorted(there.items())), at + 1)) is not None:
                found.append((rest[0] + falling[at] - length, rest[1] + (length < falling[at])))
        return min(found, default=None)

    return best((), 0)


def transcript(falling: list[int], k: int) -> list[int]:
    """Algorithm 3 line by line, with a list as first-in-first-out queue."""
    by_length: dict[int, list[int]] = {}
    for i, length in enumerate(falling):
        by_length.setdefault(length, []).append(i)
    new: dict[int, list[int]] = {}
    queue: list[int] = []
    for length in sorted(by_length, reverse=True):
        for i in by_length[length]:
            queue.append(i)
        if len(queue) < k:
            continue
        while len(queue) > 0 and len(new.get(length, [])) < k:
            new.setdefault(length, []).append(queue.pop(0))
    while len(queue) > 0:
        i = queue.pop(0)
        new.setdefault(falling[i], []).append(i)
    released = [0] * len(falling)
    for length, members in new.items():
        for i in members if len(members) >= k else ():
            released[i] = length
    return released


@pytest.mark.parametrize("method", ["optimal", "source"])
def test_the_fixture(method: str) -> None:
    assert assign(FIXTURE, 3, method).tolist() == [8, 8, 8, 5, 5, 5, 3, 3, 3]  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=9), st.integers(1, 4))
def test_optimal_loses_the_fewest_records(found: list[int], k: int) -> None:
    if len(found) < k:
        return
    released = assign(np.array(found), k, "optimal")
    moved = int((released < np.array(found)).sum())
    lost = sum(found) - int(released.sum())
    wanted = brute_force(sorted(found, reverse=True), k)
    assert wanted is not None
    assert lost == wanted[0]
    assert moved >= wanted[1]
    assert (released <= np.array(found)).all()
    assert (released > 0).all()
    assert np.unique(released, return_counts=True)[1].min() >= k


@given(lengths, st.integers(1, 5))
def test_source_is_algorithm_3(found: list[int], k: int) -> None:
    if len(found) < k:
        return
    falling = sorted(found, reverse=True)
    released = assign(np.array(falling), k, "source")
    assert released.tolist() == transcript(falling, k)
    kept = released[released > 0]
    assert len(kept) == 0 or np.unique(kept, return_counts=True)[1].min() >= k


@given(st.lists(st.integers(1, 60), min_size=6, max_size=80), st.integers(2, 6))
def test_optimal_never_loses_more_than_the_source(found: list[int], k: int) -> None:
    optimal, source = (assign(np.array(found), k, m) for m in ("optimal", "source"))  # type: ignore[arg-type]
    dropped = np.array(found)[source == 0].sum()
    assert sum(found) - optimal.sum() <= sum(found) - source.sum() or dropped > 0


def test_report_of_the_fixture() -> None:
    found = report(FIXTURE, assign(FIXTURE, 3, "optimal"), 3, "optimal")
    assert (found.moved, found.steps_lost, found.classes, found.dropped) == (4, 1 + 2 + 2 + 2, 3, 0)
    assert found.steps_lost_mean == pytest.approx(7 / 9)
    assert found.share_lost_mean == pytest.approx((1 / 9 + 2 / 7 + 2 / 5 + 2 / 5) / 9)
    assert (found.before.alone, found.before.below_k, found.after.alone, found.after.below_k) == (3, 5, 0, 0)
    assert uniqueness(FIXTURE, 2).below_k == 3


def test_too_few_persons_are_refused() -> None:
    with pytest.raises(JobError, match=r"durations\.k: 4 persons must share each length, and there are 3"):
        assign(np.array([1, 2, 3]), 4, "optimal")
