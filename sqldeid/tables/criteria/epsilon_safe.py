"""The guarantee of `epsilon-safe`, from what a job asks for; and tables of parameters to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from itertools import product

from sqldeid.errors import JobError
from sqldeid.tables.criteria.rational import Real, exact
from sqldeid.tables.criteria.sampling import (
    Penalty,
    largest_epsilon_prime,
    largest_epsilon_prime_for,
    proven_delta,
    published_delta,
    smallest_k,
)

_KEY = "search.epsilon_safe"
WEAK = 1e-3
"""A δ from which on a warning says what it allows, whatever the population."""


@dataclass(frozen=True, slots=True)
class EpsilonSafe:
    """Classes of at least k rows of a secret random sample, at a node drawn at random; made by `promise`.

    Guarantee
        (β, ε, δ)-differential privacy under sampling: with or without any one row, each set of releases is as likely
        up to a factor e^ε and an addend δ. The proof is in `sqldeid.tables.criteria.sampling`.
    Assumes
        Every row is another person. Which rows were sampled stays secret, and no other release uses that sample.
        Columns, hierarchies, weights, k, limit and population do not depend on the rows, nor does the table's
        definition look across persons. All released columns are quasi-identifying. The release is the node and the
        classes of at least k sampled rows, nothing else. The random bits are secret.
    Does not protect
        What is true of people whether or not they are in the table, and someone whose row several releases use: ε and
        δ add up. Suppressed and sampled counts, losses and checks are outside the guarantee and for the data holder
        only.
    Source
        Li, Qardaji & Su 2012; Mazzone 2019, §4.5; the δ is proven here for the utility that is used.

    Parameters
    ----------
    k, beta, epsilon, epsilon_prime, delta
        As proven: `delta` is the proven one.
    published
        The sources' D(k, β, ε − ε′), for comparison with figures in print; not a guarantee.
    penalty, lattice_size
        What it was proven for.
    warnings
        What makes the guarantee weak.
    """

    k: int
    beta: Fraction
    epsilon: Fraction
    epsilon_prime: Fraction
    delta: float
    published: float
    penalty: Penalty
    lattice_size: int
    warnings: tuple[str, ...] = ()

    @property
    def promise(self) -> str:
        """The guarantee in one sentence, for whoever reads the release."""
        return (
            f"Whether or not any one person is in the source, each possible release is as likely up to a factor "
            f"exp({float(self.epsilon):g}) and a probability of {ceil_digits(self.delta)} "
            f"(rows sampled with probability {float(self.beta):g}, classes of at least {self.k} sampled rows)."
        )

    def to_dict(self) -> dict[str, object]:
        """The guarantee as a result holds it."""
        return {
            "name": "epsilon-safe",
            "k": self.k,
            "beta": float(self.beta),
            "epsilon": float(self.epsilon),
            "epsilon_prime": float(self.epsilon_prime),
            "delta": self.delta,
            "published_delta": self.published,
            "penalty": self.penalty,
            "guarantee": self.promise,
        }


@dataclass(frozen=True, slots=True)
class Draw:
    """What a δ is proven for: classes of k rows of a sample, and a node that is drawn by a utility.

    Parameters
    ----------
    k, beta, epsilon
        Least rows of a class, the chance by which a row is sampled, and ε.
    penalty, lattice_size
        The utility, and the nodes among which one is drawn.
    """

    k: int
    beta: Real
    epsilon: Real
    penalty: Penalty = "k-anonymity"
    lattice_size: int = 1

    def proven(self, spent: Real) -> float:
        """The δ that is proven where drawing the node spends ε′."""
        return proven_delta(self.k, self.beta, self.epsilon, spent, self.penalty, self.lattice_size)

    def largest(self, delta: Real) -> Fraction | None:
        """The greatest ε′ with which at most this δ is proven; None where none is."""
        return largest_epsilon_prime_for(delta, self.k, self.beta, self.epsilon, self.penalty, self.lattice_size)

    def least_k(self, delta: Real, spent: Real) -> int:
        """The least k in the place of this one with which at most this δ is proven."""
        return smallest_k(delta, self.beta, self.epsilon, spent, self.penalty, self.lattice_size)


def promise(
    draw: Draw, *, delta: Real | None = None, epsilon_prime: Real | None = None, population: int | None = None
) -> EpsilonSafe:
    """What can be promised for parameters; ε′ is the greatest that keeps the promise, unless it is given.

    Parameters
    ----------
    delta
        The most δ may be; None, for comparison with figures in print: whatever is proven, as long as it is below β. A
        job always states it, or a population.
    population
        A public number of persons; above one in so many, δ is warned about.

    Raises
    ------
    JobError
        If nothing, or not that much, can be promised; says what could be.
    """
    share = exact(draw.beta)
    spent = _spent(draw, delta, epsilon_prime)
    proven = draw.proven(spent)
    most = float(share) if delta is None else min(float(share), float(exact(delta)))
    if proven > most or proven >= float(share):
        raise JobError(_too_weak(draw, proven, most, spent), key=f"{_KEY}.delta")
    return EpsilonSafe(
        draw.k,
        share,
        exact(draw.epsilon),
        spent,
        proven,
        published_delta(draw.k, share, exact(draw.epsilon) - spent),
        draw.penalty,
        draw.lattice_size,
        tuple(_warnings(proven, population)),
    )


def _spent(draw: Draw, delta: Real | None, epsilon_prime: Real | None) -> Fraction:
    """ε′: as given, or the greatest with which δ is proven, or the greatest there is."""
    if epsilon_prime is not None:
        return exact(epsilon_prime)
    if delta is None:
        return largest_epsilon_prime(draw.beta, draw.epsilon)
    if not 0 < exact(delta) < 1:
        raise JobError(f"delta is {float(delta):g}; it must lie between 0 and 1", key=f"{_KEY}.delta")
    found = draw.largest(delta)
    return Fraction(0) if found is None else found


def _too_weak(draw: Draw, proven: float, most: float, spent: Fraction) -> str:
    return (
        f"with k {draw.k}, beta {float(draw.beta):g}, epsilon {float(draw.epsilon):g} and epsilon_prime "
        f"{float(spent):g}, delta {ceil_digits(proven)} is proven and {most:g} is the most allowed: take k at least "
        f"{draw.least_k(most, spent)}, a smaller beta or a greater epsilon"
    )


def _warnings(proven: float, population: int | None) -> Iterator[str]:
    if proven >= WEAK:
        yield (
            f"delta {ceil_digits(proven)} is no promise to any one person: with that probability the guarantee allows "
            "to publish somebody's row; state a population, or a delta far below one in it"
        )
    elif population is not None and proven * population >= 1:
        yield (
            f"delta {ceil_digits(proven)} is at least one in the population of {population:,}: the guarantee then "
            "allows to publish a person now and then; raise k or lower beta"
        )


UNSTATED = "a job states delta or population, and the proven delta is compared with it; state one here, too"


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One choice of parameters: what is proven, or why nothing is.

    Parameters
    ----------
    k, beta, epsilon
        As asked.
    epsilon_prime, delta, published
        The greatest ε′ (that keeps the δ asked for), the δ proven with it, the sources' D; None outside the theorem.
    admissible
        Whether δ is below β and at most what was asked for; never where nothing was.
    smallest_k
        The least k for the δ asked for, with the greatest ε′ of this β and ε.
    note
        Why it is not admissible, or what to mind.
    """

    k: int
    beta: float
    epsilon: float
    epsilon_prime: float | None
    delta: float | None
    published: float | None
    admissible: bool
    smallest_k: int | None
    note: str


def every_draw(
    ks: Sequence[int],
    betas: Sequence[Real],
    epsilons: Sequence[Real],
    penalty: Penalty = "k-anonymity",
    lattice_size: int = 1,
) -> list[Draw]:
    """All combinations, by β, then ε, then k."""
    return [Draw(k, beta, epsilon, penalty, lattice_size) for beta, epsilon, k in product(betas, epsilons, ks)]


def plan_table(draws: Sequence[Draw], delta: Real | None = None, population: int | None = None) -> list[PlanRow]:
    """What is proven for each; δ is held to what is asked for, else to one in the population.

    Without either nothing is admissible, for a job states one of them.

    Raises
    ------
    JobError
        For values that no combination could use (a β that is no probability, a k below 1).
    """
    if delta is not None and not 0 < exact(delta) < 1:
        raise JobError(f"delta is {float(delta):g}; it must lie between 0 and 1", key=f"{_KEY}.delta")
    if delta is None and population is not None:
        delta = Fraction(1, population)
    return [_row(draw, delta, population) for draw in draws]


def _row(draw: Draw, delta: Real | None, population: int | None) -> PlanRow:
    k, beta, epsilon = draw.k, draw.beta, draw.epsilon
    try:
        greatest = largest_epsilon_prime(beta, epsilon)
    except JobError as error:
        if error.key != f"{_KEY}.epsilon" or exact(epsilon) <= 0:
            raise
        return PlanRow(k, float(beta), float(epsilon), None, None, None, False, None, error.message)
    kept = None if delta is None else draw.largest(delta)
    spent = greatest if kept is None else kept
    proven = draw.proven(spent)
    most = exact(beta) if delta is None else min(exact(beta), exact(delta))
    admissible = delta is not None and proven < float(exact(beta)) and proven <= float(most)
    note = "" if admissible else UNSTATED if delta is None else f"delta must be at most {float(most):g}"
    return PlanRow(
        k,
        float(beta),
        float(epsilon),
        float(spent),
        proven,
        published_delta(k, beta, exact(epsilon) - spent),
        admissible,
        None if delta is None else draw.least_k(most, greatest),
        note or next(_warnings(proven, population), ""),
    )


def ceil_digits(delta: float) -> str:
    """A δ with three digits, rounded up: what is printed is proven, too."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(delta):.2e}"
