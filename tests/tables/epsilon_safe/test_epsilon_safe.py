"""Nodes are drawn as claimed, and releases of neighbouring tables stay within the proven (epsilon, delta), enumerated.

A tiny table is a number of rows for each leaf of one column; its samples are all vectors of smaller numbers. For every
sample the node's probabilities and the released classes are computed in the most obvious way, without the package.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from sqldeid.errors import JobError
from sqldeid.tables.criteria.mechanism import SeededRandomness
from sqldeid.tables.criteria.sampling import PENALTIES, proven_delta
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.search.epsilon_safe import draw_node, steps_everywhere
from sqldeid.tables.search.utility import MOST_NODES, Utility, probabilities, reciprocal_probabilities
from tests.support.examples import examples
from tests.support.oracle import Checker, random_table

Levels = tuple[tuple[int, ...], ...]
"""Group of each leaf, level by level."""

Costs = Callable[[list[list[int]], int], list[float]]
"""Class sizes at each level, and rows of the *table* -> nats that each level costs."""


def classes(sample: tuple[int, ...], levels: Levels) -> list[dict[int, int]]:
    """Per level: group -> rows of the sample."""
    found = []
    for level in levels:
        sizes: dict[int, int] = defaultdict(int)
        for group, rows in zip(level, sample, strict=True):
            sizes[group] += rows
        found.append({g: n for g, n in sizes.items() if n})
    return found


def outputs(table, levels, k, beta, costs: Costs, *, show_suppressed=False) -> dict[object, float]:
    """Every release with its probability."""
    found: dict[object, float] = defaultdict(float)
    laws = [binom.pmf(np.arange(n + 1), n, beta) for n in table]
    for sample in product(*(range(n + 1) for n in table)):
        chance = float(np.prod([law[j] for law, j in zip(laws, sample, strict=True)]))
        at = classes(sample, levels)
        nats = np.array(costs([list(c.values()) for c in at], sum(table)))
        weights = np.exp(nats.min() - nats)
        for x, p in enumerate(weights / weights.sum()):
            shown = frozenset((g, n) for g, n in at[x].items() if n >= k)
            hidden = sum(n for n in at[x].values() if n < k) if show_suppressed else None
            found[x, shown, hidden] += chance * float(p)
    return found


def true_delta(one, other, epsilon) -> float:
    """The least delta with which the two distributions are within epsilon, in both directions."""
    keys = one.keys() | other.keys()

    def exceeds(p, q):
        return sum(max(0.0, p.get(o, 0.0) - exp(epsilon) * q.get(o, 0.0)) for o in keys)

    return max(exceeds(one, other), exceeds(other, one))


def sound(penalty, k, spent, factor, allowed, population, height) -> Costs:
    """The default utility, written down once more."""

    def costs(sizes: list[list[int]], _: int) -> list[float]:
        found = []
        for x, level in enumerate(sizes):
            failing = sum(n for n in level if n < k)
            prec = x / (height - 1)
            if penalty == "k-anonymity":
                found.append(spent * (prec + factor * (failing > allowed)) / (2 * factor))
            else:
                found.append(spent * (prec + factor * failing / population) / (2 * factor * k / population))
        return found

    return costs


def neighbours(table, levels, k, beta, epsilon, costs, **options) -> float:
    """The true delta of a table and the table with one row more in its first leaf."""
    more = (table[0] + 1, *table[1:])
    one = outputs(table, levels, k, beta, costs, **options)
    return true_delta(one, outputs(more, levels, k, beta, costs, **options), epsilon)


LEVELS = [
    ((0, 1, 2), (0, 0, 1), (0, 0, 0)),
    ((0, 1, 2), (0, 1, 0)),
    ((0, 1, 1), (0, 0, 0)),
]


@settings(max_examples=examples(60), deadline=None)
@given(
    table=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 7)),
    levels=st.sampled_from(LEVELS),
    k=st.integers(2, 5),
    beta=st.sampled_from([0.1, 0.25, 0.5]),
    spent=st.sampled_from([0.0, 0.25, 1.0, 2.0]),
    slack=st.sampled_from([0.001, 0.4]),
    factor=st.sampled_from([0.1, 0.5, 2.0]),
    allowed=st.integers(0, 3),
    penalty=st.sampled_from(PENALTIES),
)
def test_releases_stay_within_what_is_proven(table, levels, k, beta, spent, slack, factor, allowed, penalty):
    epsilon = round(spent - log(1 - beta) + slack, 4)
    costs = sound(penalty, k, spent, factor, allowed, 12, len(levels))
    true = neighbours(table, levels, k, beta, epsilon, costs)
    assert true <= proven_delta(k, beta, epsilon, spent, penalty, len(levels)) + 1e-12


@pytest.mark.parametrize(
    ("k", "beta", "epsilon", "spent"), [(5, 0.25, 1.0, 0.7), (8, 0.25, 1.0, 0.5), (4, 0.1, 0.5, 0.3)]
)
def test_what_is_proven_is_not_far_from_the_truth(k, beta, epsilon, spent):
    """At the worst class size the true delta is within a factor of 20: the bound is no empty one."""
    proven = proven_delta(k, beta, epsilon, spent)
    costs = sound("k-anonymity", k, spent, 0.5, 0, None, 2)
    true = max(neighbours((n, 1), ((0, 1), (0, 0)), k, beta, epsilon, costs) for n in range(k, 4 * k))
    assert proven / 20 < true <= proven


def test_sampling_and_suppression_are_both_needed():
    """Without suppression below k the same draw exceeds the delta proven for it: the enumeration does see breaches."""
    costs = sound("k-anonymity", 5, 0.7, 0.5, 0, None, 2)
    proven = proven_delta(5, 0.25, 1.0, 0.7)
    assert neighbours((0, 9), ((0, 1), (0, 0)), 5, 0.25, 1.0, costs) <= proven

    def unsuppressed(table):
        return outputs(table, ((0, 1), (0, 0)), 1, 0.25, costs)

    assert true_delta(unsuppressed((0, 9)), unsuppressed((1, 9)), 1.0) > 4 * proven


def test_the_suppressed_count_breaks_it():
    """Published beside the release, it shows whether a row that nobody shares is in the sample."""
    costs = sound("k-anonymity", 5, 0.7, 0.5, 0, None, 2)
    proven = proven_delta(5, 0.25, 1.0, 0.7)
    levels = ((0, 1), (0, 0))
    assert neighbours((0, 40), levels, 5, 0.25, 1.0, costs) <= proven
    assert neighbours((0, 40), levels, 5, 0.25, 1.0, costs, show_suppressed=True) > 4 * proven


def test_the_reciprocal_breaks_it():
    """1/(prec + penalty) changes by far more than the penalty where prec is small."""
    k, beta, epsilon, spent, factor = 5, 0.25, 1.0, 0.7, 0.5

    def reciprocal(sizes, _):
        steps = np.array([any(n < k for n in level) for level in sizes], dtype=np.int64)
        utility = Utility((5,), (Fraction(1),), "k-anonymity", Fraction(factor), Fraction(spent), k)
        with np.errstate(divide="ignore"):
            return list(-np.log(np.maximum(reciprocal_probabilities(utility, steps, 1), 1e-300)))

    levels = (*([(0, 1)] * 4), (0, 0))
    proven = proven_delta(k, beta, epsilon, spent)
    assert neighbours((0, 60), levels, k, beta, epsilon, sound("k-anonymity", k, spent, factor, 0, None, 5)) <= proven
    assert neighbours((0, 60), levels, k, beta, epsilon, reciprocal) > 5 * proven


def test_the_true_count_in_the_sensitivity_breaks_it():
    """With N for the population the draw's scale tells how many rows there are."""
    k, beta, epsilon, spent, factor = 5, 0.01, 1.1, 1.0, 0.05
    proven = proven_delta(k, beta, epsilon, spent, "suppression", 2)
    assert proven < 1e-6

    def counted(sizes, rows):
        return sound("suppression", k, spent, factor, 0, rows, 2)(sizes, rows)

    levels = ((0, 1), (0, 0))
    public = sound("suppression", k, spent, factor, 0, 4, 2)
    assert neighbours((2, 1), levels, k, beta, epsilon, public) <= proven
    assert neighbours((2, 1), levels, k, beta, epsilon, counted) > 100 * proven


def utility_of(table, penalty, spent, factor, allowed=3) -> Utility:
    return Utility(
        table.lattice.heights,
        table.weights,
        penalty,
        Fraction(factor).limit_denominator(100),
        Fraction(spent),
        table.k,
        allowed,
        30 if penalty == "suppression" else None,
    )


def expected(table, utility) -> np.ndarray:
    """Probabilities by the definition, node by node."""
    scores = []
    for node in table.lattice:
        failing = sum(len(rows) for rows in table.classes(node).values() if len(rows) < table.k)
        prec = float(table.loss("prec", node))
        if utility.penalty == "k-anonymity":
            scores.append(-(prec + float(utility.factor) * (failing > utility.allowed)) / float(utility.factor))
        else:
            step = float(utility.factor) / 30
            scores.append(-(prec + step * failing) / (step * table.k))
    weights = np.exp(float(utility.epsilon_prime) * (np.array(scores) - max(scores)) / 2)
    return weights / weights.sum()


def middling(seed: int):
    """A random table of some size whose k fails somewhere."""
    tables = (random_table(s, columns=3) for s in range(seed, seed + 1000))
    return next(t for t in tables if 8 <= t.lattice.size <= 60 and t.k > 1 and t.rows > 15)


def drawn(table, utility, draws, seed) -> np.ndarray:
    random, counts = SeededRandomness(seed), Counter()
    marginals = table.marginals()
    known = {node: table.evaluation(node, table.rows) for node in table.lattice}

    def evaluate(nodes, *, histogram=False):
        return [known[node] for node in nodes]

    for _ in range(draws):
        found = draw_node(utility, evaluate, random, marginals, table.rows)
        assert found.checks <= found.lattice_size
        counts[found.node] += 1
    return np.array([counts[node] for node in table.lattice])


@pytest.mark.deep
@pytest.mark.parametrize(("penalty", "seed"), [("k-anonymity", 1), ("suppression", 40)])
def test_nodes_follow_the_exponential_mechanism(penalty, seed):
    """Few nodes are checked, and yet the law is exact; an epsilon' that is 30 % off is rejected by the same test.

    By the noncentral chi-square law 2,000 draws on these tables tell 30 % apart with probability 0.9999 or more.
    """
    table = middling(seed)
    spent, draws = 6.0, 2000
    law = expected(table, utility_of(table, penalty, spent, 0.5)) * draws
    rare = law < 5

    def fits(actual: float) -> float:
        observed = drawn(table, utility_of(table, penalty, actual, 0.5), draws, seed)
        pairs = list(zip(observed[~rare], law[~rare], strict=True))
        pairs.append((observed[rare].sum(), max(law[rare].sum(), 1e-9)))
        seen, wanted = zip(*pairs, strict=True)
        return float(chisquare(seen, np.array(wanted) * draws / sum(wanted)).pvalue)

    assert fits(spent) > 1e-4
    assert fits(spent * 1.3) < 1e-4
    assert fits(spent * 0.7) < 1e-4


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), penalty=st.sampled_from(PENALTIES), allowed=st.integers(0, 10))
def test_steps_everywhere_equal_those_of_every_node(seed, penalty, allowed):
    table = random_table(seed)
    utility = utility_of(table, penalty, 1, 0.5, allowed)
    checker = Checker(table, table.rows)
    found = steps_everywhere(utility, checker, table.marginals(), table.rows)
    slow = np.array([utility.steps(table.evaluation(n, table.rows)) for n in table.lattice])
    assert (found.steps.ravel() == slow).all()
    assert max(checker.asked.values()) == 1
    assert found.checks == sum(checker.asked.values()) <= table.lattice.size
    assert probabilities(utility, found.steps).ravel() == pytest.approx(expected(table, utility), abs=1e-12)


def test_reciprocal_probabilities_are_the_sources():
    """Three levels, the first two not k-anonymous, penalty 0.5, epsilon' 2: scores 2·u/(2·0.5)."""
    utility = Utility((3,), (Fraction(1),), "k-anonymity", Fraction(1, 2), Fraction(2), 5)
    scores = [2 / 0.5, 2 / 1.0, 2 / 1.0]
    weights = np.exp(scores)
    found = reciprocal_probabilities(utility, np.array([1, 1, 0]), 100)
    assert found == pytest.approx(weights / weights.sum())
    assert reciprocal_probabilities(utility, np.array([0, 0, 0]), 100).tolist() == [1, 0, 0]
    share = Utility((2,), (Fraction(1),), "suppression", Fraction(1, 2), Fraction(1), 5, population=99)
    scores = [100 * 1 / (0.5 * 20 / 100), 100 * 1 / 1.0]
    assert reciprocal_probabilities(share, np.array([20, 0]), 100) == pytest.approx(
        np.exp(np.array(scores) - max(scores)) / np.exp(np.array(scores) - max(scores)).sum()
    )


def test_an_empty_sample_still_gives_a_node():
    """No refusal may depend on the rows."""
    for penalty in PENALTIES:
        utility = Utility((3, 2), (Fraction(1),) * 2, penalty, Fraction(1, 2), Fraction(1), 5, 0, 10)

        def empty(nodes, *, histogram=False):
            return [Evaluation(node, 0, 0, 0, 0) for node in nodes]

        assert draw_node(utility, empty, SeededRandomness(1), [], 0).node in utility.lattice


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factor": Fraction(0)}, "penalty_factor is 0; it must be above 0"),
        ({"penalty": "suppression"}, "a public number"),
        ({"penalty": "loss"}, "choose k-anonymity or suppression"),
        ({"heights": (MOST_NODES + 1,)}, "at most 4,194,304"),
        ({"weights": (Fraction(0),)}, "weight above 0"),
        ({"epsilon_prime": Fraction(-1)}, "must not be negative"),
    ],
)
def test_utilities_that_prove_nothing_are_refused(change, message):
    given_ = {
        "heights": (3,),
        "weights": (Fraction(1),),
        "penalty": "k-anonymity",
        "factor": Fraction(1, 2),
        "epsilon_prime": Fraction(1),
        "k": 5,
    }
    with pytest.raises(JobError, match=message):
        Utility(**{**given_, **change})
