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
    HierarchicalTCloseness,
    RecursiveLDiversity,
    TCloseness,
)
from sqldeid.tables.local.layers import holding, ordered
from sqldeid.tables.peel import LocalProblem, Partition, partition
from sqldeid.tables.peel.grid import Classes
from sqldeid.tables.peel.judge import Judge
from tests.support.local_problems import (
    above_m,
    concealing,
    histogram,
    known_rows,
    least_class,
    meets,
    price,
    problems,
    recounted,
    risk,
)

GROUPS = (tuple(range(9)), (0, 0, 1, 1, 2, 2, 2, 3, 3))
CRITERIA: list[ClassCriterion] = [
    DistinctLDiversity("x", 2),
    EntropyLDiversity("x", 2),
    RecursiveLDiversity("x", 2, Fraction(2)),
    TCloseness("x", Fraction(3, 10), "equal"),
    TCloseness("x", Fraction(3, 10), "ordered"),
    HierarchicalTCloseness("x", Fraction(3, 10), GROUPS),
    DeltaDisclosure("x", Fraction(3, 2)),
    BetaLikeness("x", Fraction(1), "basic"),
    BetaLikeness("x", Fraction(1), "enhanced"),
]
SOME = st.lists(st.sampled_from(CRITERIA), max_size=2)
HIDDEN = st.none() | concealing()


def found(problem: LocalProblem) -> Partition | None:
    try:
        return partition(problem)
    except NoSolutionError:
        return None


@settings(deadline=None)
@given(problems(SOME, hidden=HIDDEN))
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
@given(problems(SOME, most_combinations=5, most_columns=2, hidden=HIDDEN))
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
@given(problems(SOME, hidden=HIDDEN))
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
            least = least_class(problem)
            greatest = sorted((u for i in members for u in [share[i]] * rows[i]), reverse=True)[:least]
            assert sum(greatest) <= least * max(price(problem, node, i) for i in members)


def can_hold_a_class(problem: LocalProblem, members: Ints) -> bool:
    """Whether k rows can be released below these, as the certificates' formulas say."""
    least = least_class(problem)
    if int(problem.rows[members].sum()) - above_m(problem, members) < least:
        return False
    for judged in problem.criteria:
        counts = np.zeros((1, len(judged.whole)), dtype=np.int64)
        for value, n in histogram(judged, members).items():
            counts[0, value] += n
        if int(judged.criterion.passing_rows(counts, judged.whole)[0]) < least:
            return False
    return True


@settings(deadline=None)
@given(problems(SOME, hidden=HIDDEN), st.integers(1, 3))
def test_no_more_layers_are_used_than_allowed(problem: LocalProblem, layers: int) -> None:
    release = found(replace(problem, layers=layers))
    if release is None:
        assert found(problem) is None
    else:
        assert len(release.nodes) <= layers
        assert recounted(problem, release) == release.unit * release.units


@settings(deadline=None)
@given(problems(SOME, hidden=HIDDEN))
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


@settings(deadline=None)
@given(problems(hidden=concealing(), most_combinations=6), st.data())
def test_who_is_above_m_is_so_in_every_class_within(problem: LocalProblem, data: st.DataObject) -> None:
    """By the obvious count; so is what the judge says of a class with those, and of two that meet m together."""
    here = data.draw(st.lists(st.integers(0, len(problem.rows) - 1), min_size=1, unique=True))
    within = data.draw(st.lists(st.sampled_from(here), min_size=1, unique=True))
    assert problem.concealed is not None
    criterion = problem.concealed.criterion
    inner, outer = (known_rows(problem.concealed, np.array(members)) for members in (within, here))
    assert all(risk(criterion, row, outer) <= risk(criterion, row, inner) for row in inner)
    judge = Judge(replace(problem, k=1))
    classes = Classes(np.array(here), np.zeros(1, dtype=np.int64))
    left = int(problem.rows[here].sum()) - above_m(problem, np.array(here))
    assert judge.columns[-1].surviving(classes).tolist() == [left]
    assert judge.columns[-1].holding(classes).tolist() == [left == problem.rows[here].sum()]
    assert judge.passing(classes).tolist() == [meets(replace(problem, k=1), np.array(here))]
    assert judge.possible(classes)[0] or not judge.passing(Classes(np.array(within), np.zeros(1, dtype=np.int64)))[0]


@settings(deadline=None)
@given(problems(SOME, hidden=HIDDEN), st.data())
def test_what_meets_all_criteria_is_told_alike_where_rows_go_to_the_top(
    problem: LocalProblem, data: st.DataObject
) -> None:
    layer = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=len(problem.rows), max_size=len(problem.rows))))
    tops = tuple(a.height - 1 for a in problem.attributes)
    layers = ordered(problem, [tuple(0 for _ in tops), tops], layer)
    members = [np.flatnonzero(layers.owner == i) for i in range(len(layers.sizes))]
    assert holding(layers).tolist() == [meets(problem, m) for m in members]
