"""Local recoding against the slow and obvious: every partition of few combinations, and a recount by labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.arrays import Ints
from sqldeid.errors import NoSolutionError
from sqldeid.tables.criteria import (
    BetaLikeness,
    ClassCriterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from sqldeid.tables.peel import LocalProblem, Partition, partition
from tests.support.local_problems import histogram, meets, price, problems, recounted

CRITERIA: list[ClassCriterion] = [
    DistinctLDiversity("x", 2),
    EntropyLDiversity("x", 2),
    RecursiveLDiversity("x", 2, Fraction(2)),
    TCloseness("x", Fraction(3, 10), "equal"),
    TCloseness("x", Fraction(3, 10), "ordered"),
    DeltaDisclosure("x", Fraction(3, 2)),
    BetaLikeness("x", Fraction(1), "basic"),
    BetaLikeness("x", Fraction(1), "enhanced"),
]
SOME = st.lists(st.sampled_from(CRITERIA), max_size=2)


def found(problem: LocalProblem) -> Partition | None:
    try:
        return partition(problem)
    except NoSolutionError:
        return None


@settings(deadline=None)
@given(problems(SOME))
def test_the_promise_holds_by_an_obvious_count(problem: LocalProblem) -> None:
    release = found(problem)
    everything = np.arange(len(problem.rows))
    if release is None:
        assert not meets(problem, everything)
    else:
        lost = recounted(problem, release)
        assert lost == release.unit * release.units
        assert release.unit * release.bound <= lost


@settings(deadline=None, max_examples=40)
@given(problems(SOME, most_combinations=5, most_columns=2))
def test_no_partition_loses_less_than_the_bound(problem: LocalProblem) -> None:
    release, optimum = found(problem), least(problem)
    if optimum is None:
        assert release is None
    elif release is not None:
        assert release.unit * release.bound <= optimum <= release.unit * release.units


@settings(deadline=None)
@given(problems())
def test_weights_of_columns_in_another_unit_change_nothing(problem: LocalProblem) -> None:
    doubled = replace(problem, attributes=tuple(replace(a, weight=a.weight * 2) for a in problem.attributes))
    one, two = partition_or_top(problem), partition_or_top(doubled)
    assert one.nodes == two.nodes
    assert np.array_equal(one.layer, two.layer)
    assert one.loss == two.loss


def partition_or_top(problem: LocalProblem) -> Partition:
    return partition(replace(problem, k=min(problem.k, int(problem.rows.sum()))))


def least(problem: LocalProblem) -> Fraction | None:
    """The least loss of every way to put combinations into classes or to suppress them; classes at their lowest."""
    losses = [lost for blocks in ways(len(problem.rows)) if (lost := priced(problem, blocks)) is not None]
    return min(losses, default=None)


def ways(n: int) -> Iterator[list[list[int]]]:
    """Every partition of 0 … n-1; the first block is what is suppressed, and may be empty."""
    if n == 0:
        yield [[]]
        return
    for blocks in ways(n - 1):
        for i in range(len(blocks)):
            yield [[*b, n - 1] if i == j else b for j, b in enumerate(blocks)]
        yield [*blocks, [n - 1]]


def priced(problem: LocalProblem, blocks: list[list[int]]) -> Fraction | None:
    suppressed, *classes = blocks
    rows = problem.rows.tolist()
    if sum(rows[i] for i in suppressed) > problem.allowed:
        return None
    lost = Fraction(sum(rows[i] for i in suppressed))
    for members in classes:
        if not meets(problem, np.array(members)):
            return None
        lost += min(sum(rows[i] * price(problem, node, i) for i in members) for node in meeting(problem, members))
    return lost / sum(rows)


def meeting(problem: LocalProblem, members: list[int]) -> list[tuple[int, ...]]:
    """Nodes at which some combinations have equal labels."""
    every = product(*(range(a.height) for a in problem.attributes))
    return [n for n in every if len({labels(problem, n, i) for i in members}) == 1]


def labels(problem: LocalProblem, node: tuple[int, ...], i: int) -> tuple[int, ...]:
    leaf = problem.leaf[:, i].tolist()
    return tuple(int(a.label[x][v]) for a, x, v in zip(problem.attributes, node, leaf, strict=True))


@settings(deadline=None)
@given(problems(SOME))
def test_shares_prove_the_bound_at_every_node(problem: LocalProblem) -> None:
    release = found(problem)
    if release is None:
        return
    rows, share = (
        problem.rows.tolist(),
        [release.unit * int(u) * int(problem.rows.sum()) for u in release.share.sum(axis=0)],
    )
    assert release.unit * release.bound == sum(n * u for n, u in zip(rows, share, strict=True)) / sum(rows)
    assert max(share) <= 1
    for node in product(*(range(a.height) for a in problem.attributes)):
        classes: dict[tuple[int, ...], list[int]] = {}
        for i in range(len(rows)):
            classes.setdefault(labels(problem, node, i), []).append(i)
        for members in classes.values():
            if not can_hold_a_class(problem, np.array(members)):
                continue
            greatest = sorted((u for i in members for u in [share[i]] * rows[i]), reverse=True)[: problem.k]
            assert sum(greatest) <= problem.k * max(price(problem, node, i) for i in members)


def can_hold_a_class(problem: LocalProblem, members: Ints) -> bool:
    """Whether k rows can be released below these, as the certificates' formulas say."""
    if int(problem.rows[members].sum()) < problem.k:
        return False
    for judged in problem.criteria:
        counts = np.zeros((1, len(judged.whole)), dtype=np.int64)
        for value, n in histogram(judged, members).items():
            counts[0, value] += n
        if int(judged.criterion.passing_rows(counts, judged.whole)[0]) < problem.k:
            return False
    return True


@settings(deadline=None)
@given(problems(SOME), st.integers(1, 3))
def test_no_more_layers_are_used_than_allowed(problem: LocalProblem, layers: int) -> None:
    release = found(replace(problem, layers=layers))
    if release is None:
        assert found(problem) is None
    else:
        assert len(release.nodes) <= layers
        assert recounted(problem, release) == release.unit * release.units


@settings(deadline=None)
@given(problems(SOME))
def test_a_release_whose_time_is_over_is_valid_and_bounded(problem: LocalProblem) -> None:
    release, free = found(replace(problem, seconds=0.0)), found(problem)
    assert (release is None) == (free is None)
    if release is not None and free is not None:
        lost = recounted(problem, release)
        assert release.stopped
        assert release.unit * release.bound <= free.unit * free.units
        assert lost == release.unit * release.units


@settings(deadline=None)
@given(problems(st.just([DistinctLDiversity("x", 1)])))
def test_sensitive_values_that_no_criterion_rules_out_change_nothing(problem: LocalProblem) -> None:
    other = replace(problem, criteria=())
    one, two = partition_or_top(problem), partition_or_top(other)
    assert (one.nodes, one.units, one.bound) == (two.nodes, two.units, two.bound)
    assert np.array_equal(one.layer, two.layer)
