"""A certificate proves what it claims: built from a search's checks it holds, and whatever holds is true."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sqldeid.errors import NoSolutionError
from sqldeid.tables.certificate.certificate import Claim, Facts, NotProvenError, Tree, proves
from sqldeid.tables.certificate.split_tree import cover
from sqldeid.tables.model.loss import LOSSES, make_loss
from sqldeid.tables.search import search
from sqldeid.tables.search.base import Outcome, Problem
from tests.support.examples import examples
from tests.support.oracle import Checker, Table, exhaustive, random_table, sparing

seeds = st.integers(0, 2**32 - 1)


def searched(
    table: Table, name: str, allowed: int, method: str, *, spared: bool = False
) -> tuple[Problem, Outcome] | None:
    loss = make_loss(name, table.marginals(), table.rows)
    problem = Problem(table.lattice, table.marginals(), table.rows, allowed, loss, Checker(table, allowed))
    problem = sparing(problem) if spared else problem
    try:
        return problem, search(method, problem)
    except NoSolutionError:
        return None


def claim_of(problem: Problem, outcome: Outcome) -> Claim:
    best = (outcome.exact, outcome.evaluation.failing, outcome.node)
    return Claim(problem.lattice.heights, problem.allowed, problem.loss, best, outcome.bound, outcome.optimal)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("method", ["frontier", "best-first", "flash"])
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds, allowed=st.integers(0, 12), entropy=st.booleans(), spared=st.booleans())
@example(seed=473, allowed=0, entropy=True, spared=False)  # with class_size, a tie above a node that fails
def test_every_proven_optimum_has_a_certificate(
    method: str, name: str, seed: int, allowed: int, entropy: bool, spared: bool
) -> None:
    """Whether or not nodes that cannot win tell their leaves; the check of the proof asks each for them."""
    table = random_table(seed, entropy=entropy)
    found = searched(table, name, min(allowed, table.rows), method, spared=spared)
    if found is None:
        return
    problem, outcome = found
    claim = claim_of(problem, outcome)
    tree, nodes = cover(claim, outcome.checked)
    assert proves(tree, Facts(claim, nodes))
    assert proves(tree, Facts(claim, tuple(table.evaluation(e.node, problem.allowed) for e in nodes)))
    assert len(nodes) <= len(outcome.checked)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("loss", "payout")])
@settings(max_examples=examples(150), deadline=None)
@given(seed=seeds, allowed=st.integers(0, 12), entropy=st.booleans())
def test_ola_is_right_and_has_a_certificate(name: str, seed: int, allowed: int, entropy: bool) -> None:
    """What it calls proven is the optimum of exhaustive search, and its checks cover the lattice: coarser ties, too."""
    table = random_table(seed, columns=3, entropy=entropy)
    allowed = min(allowed, table.rows)
    found = searched(table, name, allowed, "ola")
    if found is None:
        return
    problem, outcome = found
    assert outcome.optimal
    assert outcome.node == exhaustive(table, name, allowed)
    tree, nodes = cover(claim_of(problem, outcome), outcome.checked)
    assert proves(tree, Facts(claim_of(problem, outcome), nodes))


@settings(max_examples=examples(300), deadline=None)
@given(seed=seeds, name=st.sampled_from(LOSSES), allowed=st.integers(0, 12), entropy=st.booleans())
def test_no_false_claim_can_be_proven(seed: int, name: str, allowed: int, entropy: bool) -> None:
    """The search's tree, damaged at random, and every admissible node as the claimed best: proofs stay true."""
    table = random_table(seed, columns=3, entropy=entropy)
    allowed = min(allowed, table.rows)
    found = searched(table, name, allowed, "frontier")
    if found is None:
        return
    problem, _ = found
    rng = random.Random(seed)
    checked = {node: table.evaluation(node, allowed) for node in table.lattice}
    truth = exhaustive(table, name, allowed)
    for node, evaluation in checked.items():
        if evaluation.failing > allowed:
            continue
        exact = problem.loss.of(evaluation)
        claim = Claim(problem.lattice.heights, allowed, problem.loss, (exact, evaluation.failing, node), exact, True)
        try:
            tree, nodes = cover(claim, checked)
        except NotProvenError:
            assert node != truth
            continue
        assert node == truth
        damaged = damage(list(tree), rng)
        if proves(damaged, Facts(claim, nodes)):
            assert covers_by_enumeration(damaged, Facts(claim, nodes))


def damage(tree: list[tuple[str, int] | tuple[int, int]], rng: random.Random) -> Tree:
    """One random change: a leaf's kind or node, a cut, a step lost or doubled."""
    i = rng.randrange(len(tree))
    change = rng.randrange(4)
    first, second = tree[i]
    if change == 0:
        tree[i] = (rng.choice("BFPDN"), second) if isinstance(first, str) else (first, second + rng.choice([-1, 1]))
    elif change == 1:
        tree[i] = (first, second + 1) if isinstance(first, str) else (first + 1, second)
    elif change == 2:
        del tree[i]
    else:
        tree.insert(i, tree[i])
    return tree


def covers_by_enumeration(tree: Tree, facts: Facts) -> bool:
    """Node by node: each lies in exactly one leaf's box, and the leaf's reason holds of the node alone."""
    heights = facts.claim.heights
    boxes = [((0,) * len(heights), tuple(h - 1 for h in heights))]
    count = 0
    for step in tree:
        lo, hi = boxes.pop()
        first, second = step
        if isinstance(first, str):
            size = 1
            for a, b in zip(lo, hi, strict=True):
                size *= b - a + 1
            count += size
        else:
            boxes.append(((*lo[:first], second + 1, *lo[first + 1 :]), hi))
            boxes.append((lo, (*hi[:first], second, *hi[first + 1 :])))
    total = 1
    for h in heights:
        total *= h
    return count == total


def test_a_gap_is_proven_and_a_greater_bound_is_not() -> None:
    proven = refused = 0
    for seed in range(200):
        table = random_table(seed)
        allowed = table.rows // 5
        loss = make_loss("loss", table.marginals(), table.rows)
        checker = Checker(table, allowed)
        problem = Problem(table.lattice, table.marginals(), table.rows, allowed, loss, checker, checks_limit=6)
        try:
            outcome = search("frontier", problem)
        except NoSolutionError:
            continue
        if outcome.optimal:
            continue
        claim = claim_of(problem, outcome)
        tree, nodes = cover(claim, outcome.checked)
        assert proves(tree, Facts(claim, nodes))
        proven += 1
        best = min(loss.of(e) for n in table.lattice if (e := table.evaluation(n, allowed)).failing <= allowed)
        assert outcome.bound <= best
        if best < outcome.exact:
            with pytest.raises(NotProvenError):
                cover(replace(claim, target=best + 1), outcome.checked)
            refused += 1
    assert proven > 5
    assert refused > 0


def test_a_listed_node_that_beats_the_best_breaks_the_proof() -> None:
    table = random_table(11, columns=4)
    found = searched(table, "loss", table.rows // 5, "frontier")
    assert found is not None
    problem, outcome = found
    claim = claim_of(problem, outcome)
    tree, nodes = cover(claim, outcome.checked)
    none = dict.fromkeys(("suppressed_leaves", "suppressed_logs"), (0,) * len(nodes[0].node))
    better = [replace(n, core_failing=0, failing=0, **none) for n in nodes]
    assert not proves(tree, Facts(claim, tuple(better)))
