"""The classes of a release from those that were found: within the limits of the job, and as it chooses levels."""

from __future__ import annotations

from dataclasses import dataclass
from random import SystemRandom

from sqldeid.errors import NoSolutionError
from sqldeid.tables.local.layers import Layers, layers_of, topped, without_failing
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.peel.problem import LocalProblem, Partition
from sqldeid.tables.plan.choosing import allowed_beyond, by_k


@dataclass(frozen=True, slots=True)
class Formed:
    """The layers of a release.

    Parameters
    ----------
    beyond
        Rows of classes of k and more that fail another criterion, where levels are chosen by k alone; else None.
    """

    layers: Layers
    beyond: int | None = None


def asked_of(planned: LocalPlan, problem: LocalProblem) -> LocalProblem:
    """What classes are formed by: k alone where levels are chosen so, else all that the job asks for."""
    return problem.k_alone if by_k(planned.table) else problem


def formed(planned: LocalPlan, problem: LocalProblem, parts: Partition) -> Formed:
    """The layers of a partition of `asked_of`; refused where more rows than allowed are in none.

    Where levels are chosen by k alone, those that fail another criterion are suppressed now.

    Raises
    ------
    NoSolutionError
        If more rows than allowed are in no class that meets the criteria.
    """
    plan, alone = planned.table, by_k(planned.table)
    layers = layers_of(problem, parts, blank=plan.demands.blanks and not alone)
    if amount := plan.search.blunt:
        from sqldeid.tables.local.blunt import blunted

        layers = blunted(layers, amount, SystemRandom())
    lost = int(problem.rows[~layers.released].sum())
    if lost > problem.allowed:
        raise NoSolutionError.at(
            f"{planned.key}.privacy",
            f"{lost:,} rows are in no class that meets the criteria, even with every column at its top; "
            f"{problem.allowed:,} may be suppressed. Raise privacy.suppression_limit or ask for less",
        )
    return _meeting(planned, layers, lost) if alone else Formed(layers)


def _meeting(planned: LocalPlan, chosen: Layers, few: int) -> Formed:
    """The layers that k alone has chosen, without the classes that fail another criterion.

    Parameters
    ----------
    few
        Rows that are in no class of k.

    Raises
    ------
    NoSolutionError
        If these classes have more rows than may be suppressed for them.
    """
    plan, problem = planned.table, chosen.problem
    layers = without_failing(chosen)
    beyond = int(problem.rows[~layers.released].sum()) - few
    allowed = allowed_beyond(plan, int(problem.rows.sum()))
    if beyond > allowed:
        raise NoSolutionError.at(
            f"{plan.key}.privacy",
            f"{beyond:,} rows are in classes of k and more that fail another criterion; {allowed:,} may be "
            'suppressed for that. Raise privacy.criteria_limit, ask for less, or leave search.choose = "by-k" out',
        )
    return Formed(topped(layers) if plan.demands.blanks else layers, beyond)
