"""Losses against fractions over cells, hand-computed fixtures, and their bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import JobError, SqldeidError
from sqldeid.tables.model.evaluation import Evaluation, Marginal
from sqldeid.tables.model.lattice import below
from sqldeid.tables.model.loss import LOSSES, all_losses, make_loss
from tests.support.examples import examples
from tests.support.oracle import Table, random_table

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(40), deadline=None)
@given(seeds, st.sampled_from(LOSSES))
def test_equals_the_cell_by_cell_loss(seed: int, name: str) -> None:
    table = random_table(seed, columns=3)
    loss = make_loss(name, table.marginals(), table.rows)
    for node in table.lattice:
        exact = loss.of(table.evaluation(node, table.rows))
        expected = table.loss(name, node)
        if name == "entropy":
            assert loss.value(exact) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
        else:
            assert loss.unit * exact == expected


@settings(max_examples=examples(25), deadline=None)
@given(seeds, st.sampled_from(LOSSES))
def test_bounds_hold_for_the_node_and_what_generalises_it(seed: int, name: str) -> None:
    table = random_table(seed, columns=3)
    loss = make_loss(name, table.marginals(), table.rows)
    found = [table.evaluation(node, table.rows) for node in table.lattice]
    for x in found:
        assert loss.bound(x.node) + loss.penalty(x.node, x.failing) <= loss.of(x)
        for y in found:
            if below(x.node, y.node):
                assert loss.bound(x.node) <= loss.of(y)


def three_columns() -> Table:
    """Five rows: classes of 2, 2 and 1 at node 0; the second column has one leaf, the third one level."""
    return Table(
        codes=((0, 0, 1, 1, 2), (0, 0, 0, 0, 0), (0, 0, 0, 0, 0)),
        groups=(((0, 1, 2), (0, 0, 1), (0, 0, 0)), ((0,), (0,)), ((0, 1),)),
        weights=(Fraction(1), Fraction(2), Fraction(1)),
        sensitive=(0,) * 5,
        k=2,
    )


def test_hand_computed() -> None:
    table = three_columns()
    values = {name: make_loss(name, table.marginals(), 5) for name in LOSSES}
    bottom = table.evaluation((0, 0, 0), 5)
    assert bottom.squares == 9
    assert values["dm_star"].of(bottom) == 9
    assert values["loss"].value(values["loss"].of(bottom)) == 1 / 5
    higher = table.evaluation((1, 1, 0), 5)
    assert values["loss"].value(values["loss"].of(higher)) == pytest.approx((4 * 0.5 * 1 + 1 * 4) / 20)
    assert values["prec"].value(values["prec"].of(higher)) == pytest.approx((0.5 + 2) / 4)
    assert values["entropy"].value(values["entropy"].of(higher)) == pytest.approx(4.0)


def test_report_holds_every_loss() -> None:
    table = three_columns()
    report = all_losses(table.evaluation((1, 1, 0), 5), table.marginals(), 5, 9)
    assert report.loss == pytest.approx(0.3)
    assert report.prec == pytest.approx(0.625)
    assert report.dm_star == 17
    assert report.dm_star_original == 9
    assert report.entropy == pytest.approx(4.0)
    assert report.columns == pytest.approx({"c0": 0.6, "c1": 0.2, "c2": 0.2})


def test_loss_of_an_inadmissible_node_is_refused() -> None:
    table = three_columns()
    loss = make_loss("loss", table.marginals(), 5)
    with pytest.raises(SqldeidError, match="not admissible"):
        loss.of(Evaluation((0, 0, 0), 1, 1, 3, 9))


@pytest.mark.parametrize("weight", [Fraction(0), Fraction(-1)])
def test_weights_are_positive(weight: Fraction) -> None:
    counts = (np.array([1]),)
    with pytest.raises(JobError, match="age"):
        make_loss("prec", [Marginal("age", weight, counts, counts)], 1)


def test_unknown_loss_is_refused() -> None:
    with pytest.raises(JobError, match="dm_star"):
        make_loss("dmstar", [], 1)
