"""Losses against fractions over cells, hand-computed fixtures, and their bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import JobError, SqldeidError, UnknownKindError
from sqldeid.tables.model.evaluation import Evaluation, Marginal
from sqldeid.tables.model.lattice import below
from sqldeid.tables.model.loss import LOSSES, all_losses, make_loss
from tests.support.examples import examples
from tests.support.oracle import IRRATIONAL, Table, random_table

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(40), deadline=None)
@given(seeds, st.sampled_from(LOSSES))
def test_equals_the_cell_by_cell_loss(seed: int, name: str) -> None:
    table = random_table(seed, columns=3)
    loss = make_loss(name, table.marginals(), table.rows)
    for node in table.lattice:
        exact = loss.of(table.evaluation(node, table.rows))
        expected = table.loss(name, node)
        if name in IRRATIONAL:
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
    assert values["class_size"].of(bottom) == 5 - 3
    assert values["class_size"].value(values["class_size"].of(bottom)) == pytest.approx(2 / 5)
    assert values["height"].value(values["height"].of(higher)) == 1 + 2
    # Four rows in a group of two leaves, one alone; the second column has one leaf, the third its bottom alone.
    assert values["ambiguity"].value(values["ambiguity"].of(higher)) == pytest.approx(4 / 5)
    # Of the first column's entropy of 2·2·log2(5/2) + log2(5) bits 4 are lost; the others have none to lose.
    share = 4 / (4 * np.log2(2.5) + np.log2(5))
    assert values["normalised_entropy"].value(values["normalised_entropy"].of(higher)) == pytest.approx(share / 4)


def test_report_holds_every_loss() -> None:
    table = three_columns()
    report = all_losses(table.evaluation((1, 1, 0), 5), table.marginals(), 5, 9)
    assert report.loss == pytest.approx(0.3)
    assert report.prec == pytest.approx(0.625)
    assert report.dm_star == 17
    assert report.dm_star_original == 9
    assert report.entropy == pytest.approx(4.0)
    assert report.height == 3
    assert report.class_size == pytest.approx(1 - 2 / 5)
    assert report.ambiguity == pytest.approx(4 / 5)
    # Of the log2 3 + log2 2 bits that a row can lose, four rows lose one; the fifth is suppressed and loses all.
    assert report.payout == pytest.approx((4 / np.log2(6) + 1) / 5, abs=1e-6)
    assert report.normalised_entropy == pytest.approx(4 / (4 * np.log2(2.5) + np.log2(5)) / 4)
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


@settings(max_examples=examples(40), deadline=None)
@given(seeds)
def test_what_is_told_is_what_was_searched(seed: int) -> None:
    """The loss that a search makes least and the figure of the report come of two formulas."""
    table = random_table(seed, columns=3)
    marginals = table.marginals()
    for node in table.lattice:
        found = table.evaluation(node, table.rows)
        told = all_losses(found, marginals, table.rows, 0).totals
        assert set(told) == {*LOSSES, "dm_star_original"}
        for name in LOSSES:
            loss = make_loss(name, marginals, table.rows)
            assert told[name] == pytest.approx(loss.value(loss.of(found)), rel=1e-9, abs=1e-9), name


def test_groups_without_rows_and_single_leaves_cost_no_ambiguity() -> None:
    """A hierarchy of four leaves of which the data have one: at the top it could be any of the four."""
    rows = (np.array([7, 0, 0, 0]), np.array([7, 0]), np.array([7]))
    leaves = (np.array([1, 1, 1, 1]), np.array([2, 2]), np.array([4]))
    found = make_loss("ambiguity", [Marginal("a", Fraction(3), rows, leaves)], 7)
    assert [found.value(found.bound((x,))) for x in range(3)] == pytest.approx([0.0, 3.0, 6.0])
    flat = make_loss("normalised_entropy", [Marginal("a", Fraction(3), rows, leaves)], 7)
    assert [flat.value(flat.bound((x,))) for x in range(3)] == [0.0, 0.0, 0.0]


@settings(max_examples=examples(40), deadline=None)
@given(seeds, st.sampled_from(["dm_star", "class_size"]))
def test_whole_classes_that_lose_the_same_are_the_same(seed: int, name: str) -> None:
    """What the searches close by: of x ≼ y, y loses no less, and as much only where its classes are x's."""
    table = random_table(seed, columns=3)
    loss = make_loss(name, table.marginals(), table.rows)
    found = [table.evaluation(node, table.rows) for node in table.lattice]
    for x in found:
        for y in found:
            if below(x.node, y.node):
                assert loss.whole(x) <= loss.whole(y)
                same = sorted(table.classes(x.node).values()) == sorted(table.classes(y.node).values())
                assert (loss.whole(x) == loss.whole(y)) == same


def test_a_loss_with_parts_is_not_taken_for_one_of_whole_classes() -> None:
    table = three_columns()
    for name in set(LOSSES) - {"dm_star", "class_size"}:
        with pytest.raises(UnknownKindError):
            make_loss(name, table.marginals(), 5).whole(table.evaluation((0, 0, 0), 5))
