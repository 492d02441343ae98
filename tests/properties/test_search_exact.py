"""Every exact search equals exhaustive search: all losses, criteria, limits, boundaries and ties."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import NoSolutionError
from sqldeid.tables.loss import LOSSES, make_loss
from sqldeid.tables.search import STRATEGIES
from sqldeid.tables.search.base import Problem
from tests.oracle import Checker, Table, exhaustive, random_table

EXACT = ("frontier", "best-first")


def problem_of(table: Table, name: str, allowed: int, **options: object) -> Problem:
    loss = make_loss(name, table.marginals(), table.rows)
    checker = Checker(table, allowed)
    return Problem(table.lattice, table.marginals(), table.rows, allowed, loss, checker, **options)  # type: ignore[arg-type]


def assert_optimal(method: str, table: Table, name: str, allowed: int) -> None:
    expected = exhaustive(table, name, allowed)
    problem = problem_of(table, name, allowed)
    if expected is None:
        with pytest.raises(NoSolutionError):
            STRATEGIES[method](problem)
        return
    outcome = STRATEGIES[method](problem)
    assert outcome.node == expected
    assert outcome.optimal
    assert outcome.gap == 0
    assert outcome.loss == pytest.approx(float(table.loss(name, expected)), rel=1e-9, abs=1e-9)
    assert max(problem.evaluate.asked.values()) == 1  # type: ignore[attr-defined]
    assert outcome.checks == sum(problem.evaluate.asked.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), allowed=st.integers(0, 12), entropy=st.booleans())
def test_equals_exhaustive_search(method: str, name: str, seed: int, allowed: int, entropy: bool) -> None:
    table = random_table(seed, entropy=entropy)
    assert_optimal(method, table, name, min(allowed, table.rows))


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), pick=st.integers(0, 10**6), below=st.integers(0, 1), entropy=st.booleans())
def test_limit_boundaries(method: str, name: str, seed: int, pick: int, below: int, entropy: bool) -> None:
    """The limit is exactly what some node needs, or one row less."""
    table = random_table(seed, columns=3, entropy=entropy)
    nodes = list(table.lattice)
    needed = table.evaluation(nodes[pick % len(nodes)], table.rows).failing
    assert_optimal(method, table, name, max(0, needed - below))
