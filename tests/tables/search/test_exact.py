"""Every exact search equals exhaustive search: all losses, criteria, limits, boundaries and ties."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import NoSolutionError
from sqldeid.tables.model.loss import LOSSES
from sqldeid.tables.search import search
from tests.support.examples import examples
from tests.support.oracle import Table, exhaustive, problem_of, random_table, sparing

FRONTIER = sys.modules["sqldeid.tables.search.frontier"]
REGION = sys.modules["sqldeid.tables.search.region"]
EXACT = ("frontier", "frontier without arrays", "frontier with rounded bounds", "best-first", "flash")
seeds = st.integers(0, 2**32 - 1)


def variant(method: str, patch: pytest.MonkeyPatch) -> str:
    """Make small lattices take the way of large ones; the method's name."""
    if method == "frontier without arrays":
        patch.setattr(FRONTIER, "_ARRAYS", 0)
        patch.setattr(FRONTIER, "_AT_ONCE", 20)
    if method == "frontier with rounded bounds":
        patch.setattr(REGION, "_EXACT", 0)
    return method.split()[0]


def assert_optimal(method: str, table: Table, name: str, allowed: int) -> None:
    """The search's node is the exhaustive search's; no node is checked twice."""
    expected = exhaustive(table, name, allowed)
    problem = problem_of(table, name, allowed)
    with pytest.MonkeyPatch.context() as patch:
        method = variant(method, patch)
        if expected is None:
            with pytest.raises(NoSolutionError):
                search(method, problem)
            return
        outcome = search(method, problem)
    assert outcome.node == expected
    assert outcome.optimal
    assert outcome.gap == 0
    assert outcome.loss == pytest.approx(float(table.loss(name, expected)), rel=1e-9, abs=1e-9)
    assert max(problem.evaluate.asked.values()) == 1  # type: ignore[attr-defined]
    assert outcome.checks == sum(problem.evaluate.asked.values())  # type: ignore[attr-defined]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, allowed=st.integers(0, 12), entropy=st.booleans())
def test_nodes_that_cannot_win_need_not_tell_their_leaves(
    method: str, name: str, seed: int, allowed: int, entropy: bool
) -> None:
    table = random_table(seed, entropy=entropy)
    allowed = min(allowed, table.rows)
    expected = exhaustive(table, name, allowed)
    problem = sparing(problem_of(table, name, allowed))
    with pytest.MonkeyPatch.context() as patch:
        method = variant(method, patch)
        if expected is None:
            with pytest.raises(NoSolutionError):
                search(method, problem)
            return
        outcome = search(method, problem)
    assert (outcome.node, outcome.optimal) == (expected, True)
    assert len(outcome.checked) == outcome.checks
    best = table.loss(name, expected)
    for evaluation in outcome.checked.values():
        if evaluation.failing <= allowed and problem.hopeless(evaluation.node, evaluation.failing):
            assert table.loss(name, evaluation.node) > best


@pytest.mark.sampled(20)
@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds, allowed=st.integers(0, 12), entropy=st.booleans())
def test_equals_exhaustive_search(method: str, name: str, seed: int, allowed: int, entropy: bool) -> None:
    table = random_table(seed, entropy=entropy)
    assert_optimal(method, table, name, min(allowed, table.rows))


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds, pick=st.integers(0, 10**6), below=st.integers(0, 1), entropy=st.booleans())
def test_limit_boundaries(method: str, name: str, seed: int, pick: int, below: int, entropy: bool) -> None:
    """The limit is exactly what some node needs, or one row less."""
    table = random_table(seed, columns=3, entropy=entropy)
    nodes = list(table.lattice)
    needed = table.evaluation(nodes[pick % len(nodes)], table.rows).failing
    assert_optimal(method, table, name, max(0, needed - below))


@pytest.mark.parametrize("method", EXACT)
@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds, name=st.sampled_from(LOSSES), allowed=st.integers(0, 10))
def test_ties_of_twin_columns(method: str, seed: int, name: str, allowed: int) -> None:
    """Columns that are copies of each other: many nodes lose the same, fewer suppressed rows and order decide."""
    one = random_table(seed, columns=2)
    table = Table(one.codes * 2, one.groups * 2, one.weights * 2, one.sensitive, one.k)
    assert_optimal(method, table, name, min(allowed, table.rows))


@pytest.mark.parametrize("method", EXACT)
@settings(max_examples=examples(25), deadline=None)
@given(seed=seeds, name=st.sampled_from(LOSSES), limit=st.integers(1, 30), allowed=st.integers(0, 8))
def test_a_limited_search_brackets_the_optimum(method: str, seed: int, name: str, limit: int, allowed: int) -> None:
    """With a limit on checks: never more checks, and the optimum lies between bound and loss."""
    table = random_table(seed)
    allowed = min(allowed, table.rows)
    expected = exhaustive(table, name, allowed)
    problem = problem_of(table, name, allowed, checks_limit=limit)
    try:
        with pytest.MonkeyPatch.context() as patch:
            outcome = search(variant(method, patch), problem)
    except NoSolutionError:
        assert problem.state.checks <= max(limit, 1)
        return
    assert expected is not None
    best = float(table.loss(name, expected))
    assert outcome.checks <= max(limit, 1)
    assert outcome.loss - outcome.gap <= best + 1e-9
    assert outcome.loss >= best - 1e-9
    assert not outcome.optimal or outcome.node == expected
