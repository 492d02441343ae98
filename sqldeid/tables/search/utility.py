"""How good a node is for `epsilon-safe`, by how much one row can change that, and the probabilities that follow."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sqldeid.arrays import Floats, Ints
from sqldeid.errors import JobError
from sqldeid.tables.criteria.mechanism import log_sum_exp_probabilities
from sqldeid.tables.criteria.sampling import PENALTIES, Penalty
from sqldeid.tables.model.evaluation import Evaluation
from sqldeid.tables.model.lattice import Lattice, Node

MOST_NODES = 1 << 22
"""Largest lattice that a node is drawn from."""

_KEY = "search.epsilon_safe"


@dataclass(frozen=True, slots=True)
class Utility:
    """u(x) = -(prec(x) + factor·share(x)), and the exponent ε′·u/(2·Δu) that a node is drawn by.

    share(x) is 1 where more rows than `allowed` would be suppressed and else 0 ("k-anonymity"), or suppressed rows per
    `population` ("suppression"): always a number of `steps`, which a check tells, times a constant.

    Guarantee
        One row more or less changes u by at most Δu, so the draw alone is ε′-differentially private; u depends on the
        rows only through the sizes of x's classes, as the proof in `sqldeid.tables.criteria.sampling` asks.
    Assumes
        Levels, weights, factor and population were chosen without looking at the rows.
    Source
        Mazzone 2019, §4.5.4 and §6.2.2, with a utility whose sensitivity is known.

    Parameters
    ----------
    heights, weights
        Levels of each quasi-identifier and its weight in `prec`.
    penalty, factor
        What is punished, and by how much.
    epsilon_prime
        What the draw spends.
    k
        Least class size released.
    allowed
        Rows that may be suppressed without penalty ("k-anonymity" only).
    population
        N₀, a public constant of the job, never a count of rows ("suppression" only).
    """

    heights: tuple[int, ...]
    weights: tuple[Fraction, ...]
    penalty: Penalty
    factor: Fraction
    epsilon_prime: Fraction
    k: int
    allowed: int = 0
    population: int | None = None

    def __post_init__(self) -> None:
        if self.penalty not in PENALTIES:
            raise JobError(f"penalty is {self.penalty!r}; choose {' or '.join(PENALTIES)}", key=f"{_KEY}.penalty")
        if self.factor <= 0:
            raise JobError(
                f"penalty_factor is {float(self.factor):g}; it must be above 0 (to draw without looking at data, set "
                "epsilon_prime = 0)",
                key=f"{_KEY}.penalty_factor",
            )
        if self.epsilon_prime < 0 or self.k < 1 or self.allowed < 0:
            raise JobError("epsilon_prime, k and the suppression limit must not be negative", key=_KEY)
        if self.penalty == "suppression" and (self.population is None or self.population < 1):
            raise JobError(
                "the penalty suppression needs population, a public number of persons of at least 1; the number of "
                "rows will not do, it is a secret",
                key=f"{_KEY}.population",
            )
        if len(self.weights) != len(self.heights) or any(w <= 0 for w in self.weights):
            raise JobError("every quasi-identifying column needs a weight above 0", key="columns")
        if not 0 < self.lattice.size <= MOST_NODES:
            raise JobError(
                f"the lattice has {self.lattice.size:,} nodes; a node is drawn from at most {MOST_NODES:,}. Name fewer "
                "columns, or hierarchies with fewer levels",
                key="search.method",
            )

    @property
    def lattice(self) -> Lattice:
        """The nodes."""
        return Lattice(self.heights)

    @property
    def step(self) -> Fraction:
        """What one step of the penalty takes from u."""
        return self.factor if self.penalty == "k-anonymity" else self.factor / self._population

    @property
    def sensitivity(self) -> Fraction:
        """Δu: the most by which one row more or less changes u at any node.

        A row changes the indicator by 1 at most. It takes at most k - 1 rows in or out of suppression; k is charged.
        """
        return self.factor if self.penalty == "k-anonymity" else self.factor * self.k / self._population

    @property
    def nats(self) -> Fraction:
        """Nats per unit of u: ε′/(2·Δu)."""
        return self.epsilon_prime / (2 * self.sensitivity)

    @property
    def _population(self) -> int:
        return self.population or 1

    def steps(self, evaluation: Evaluation) -> int:
        """Steps of the penalty at a checked node; never fewer at its specialisations."""
        return int(evaluation.failing > self.allowed) if self.penalty == "k-anonymity" else evaluation.failing

    def cost(self, node: Node, steps: int) -> Fraction:
        """-ε′·u/(2·Δu), exactly."""
        terms = (w * x / max(1, h - 1) for w, x, h in zip(self.weights, node, self.heights, strict=True) if x)
        return self.nats * (sum(terms, Fraction(0)) / sum(self.weights) + self.step * steps)

    def prec(self) -> Floats:
        """Normalised Prec of every node, one axis per quasi-identifier."""
        whole, total = sum(self.weights), np.zeros(())
        for w, h in zip(self.weights, self.heights, strict=True):
            total = total[..., None] + float(w / whole) * (np.arange(h) / max(1, h - 1))
        return total

    def costs(self, steps: Ints) -> Floats:
        """`cost` of every node as floats."""
        return float(self.nats) * self.prec() + float(self.nats * self.step) * steps


def probabilities(utility: Utility, steps: Ints) -> Floats:
    """With what probability each node is drawn, in floats: for figures; the draw itself is exact.

    Parameters
    ----------
    steps
        Steps of the penalty at every node, one axis per quasi-identifier.
    """
    return log_sum_exp_probabilities(-utility.costs(steps))


def reciprocal_probabilities(utility: Utility, steps: Ints, rows: int) -> Floats:
    """The source's probabilities, u = 1/(prec + factor·share): **not proven private**.

    The source takes the penalty's step for the sensitivity of the reciprocal, which it is not, and a share of one row,
    though one row can move k of them. For comparison with its figures only.

    Parameters
    ----------
    steps
        As in `probabilities`.
    rows
        Rows of the sample, which the source's shares and sensitivity are taken of.

    Source
        Mazzone 2019, §6.2.2.
    """
    share = 1 if utility.penalty == "k-anonymity" else 1 / max(1, rows)
    lost = utility.prec() + float(utility.factor) * share * steps
    with np.errstate(divide="ignore"):
        scores = float(utility.epsilon_prime) / (2 * float(utility.factor) * share) / lost
    return log_sum_exp_probabilities(np.asarray(scores))
