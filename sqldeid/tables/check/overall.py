"""Apply what all released classes must meet together to a checked node, by the sizes of its classes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqldeid.tables.criteria import OverallRisk
from sqldeid.tables.model.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Sizes:
    """Class size → classes: of all classes of a node, and of those that pass every criterion of classes."""

    every: dict[int, int]
    passing: dict[int, int]


def under(overall: OverallRisk, found: Evaluation, sizes: Sizes, k: int) -> Evaluation:
    """A check under k and the criteria of classes, with what all released classes suppress besides.

    The core is the greater one of both: each alone is a lower bound at every specialisation. That of the whole release
    rests on the classes of k and more whether or not they pass, for which do is not inherited.
    """
    least = overall.least_size(sizes.passing, k)
    beside = sum(size * n for size, n in sizes.passing.items() if k <= size < least)
    core = overall.core(sizes.every, k)
    return replace(
        found,
        failing=found.failing + beside,
        core_failing=max(core, found.core_failing),
        core_moves=core > found.core_failing,
        least=least,
    )
