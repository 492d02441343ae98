"""Differential privacy per object: one budget, split over every statistic that the release is made from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.errors import JobError, SqldeidError
from sqldeid.events.domain import Domain

SHARES = {
    "transitions": Fraction(60, 100),
    "states": Fraction(20, 100),
    "gaps": Fraction(10, 100),
    "lengths": Fraction(5, 100),
    "start months": Fraction(25, 1000),
    "start hours": Fraction(25, 1000),
}
"""Of epsilon, where there are times (events.md, *laplace*)."""

ORDER_SHARES = {"transitions": Fraction(75, 100), "states": Fraction(20, 100), "lengths": Fraction(5, 100)}
"""Where there is only an order."""

CHOOSING = Fraction(5, 100)
"""What the lengths get on top, of the transitions, where they also say how many events are looked at."""

BY_FACTOR = Fraction(1, 2)
"""Of the transitions' part: for the factors' tables, the same for each."""

GROUPS = Fraction(5, 100)
"""Of epsilon, of the transitions' part, for how many objects each group has."""

BY_GROUP = "group"
"""Where a table of transitions is by group, not by a factor of time."""

SCALE_MOST = 1e12
"""Noise of more fills whole tables with numbers that 64 bits cannot add up, and tells nothing."""


def by(factor: str) -> str:
    """The statistic of a factor's table."""
    return f"transitions by {factor}"


@dataclass(frozen=True, slots=True)
class Spend:
    """What one statistic costs.

    Parameters
    ----------
    sensitivity
        The most by which one object, with all its events, changes the whole table: sum of absolute differences.
    epsilon
        Its part of the budget, exact.
    scale
        Of the discrete Laplace noise on each cell: at least sensitivity / epsilon.
    cells
        Of the whole public domain, empty ones included.
    """

    statistic: str
    sensitivity: int
    epsilon: Fraction
    scale: float
    cells: int

    def to_dict(self) -> dict[str, object]:
        """As the result has it; all of it is public."""
        return {
            "statistic": self.statistic,
            "sensitivity": self.sensitivity,
            "epsilon": float(self.epsilon),
            "epsilon_exact": str(self.epsilon),
            "scale": self.scale,
            "cells": self.cells,
        }


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every spend of one release. They add up to epsilon, exactly, or there is no ledger.

    Guarantee
        Epsilon-differential privacy for whole objects, under adding or removing one: whatever is released is at most
        e^epsilon times as likely with an object, and all its events, as without it.
    Assumes
        The object is whom it is about (per admission it protects an admission, not a patient). States, range, bins and
        the number of events looked at were chosen without looking at the data. The source gives each object's rows
        from that object alone, and nobody learns whether a run was refused, by SQL of the job that fails on a row.
        Nothing else of the data is published, and no other release of them: those add up, which a ledger of persons
        (``--ledger``) tells.
        Replacing an object by another costs twice epsilon.
    Does not protect
        What is true of many objects. Evaluation figures, plots of gaps and counts of the source are not noised and are
        for the data holder alone; to draw again and keep the release that they like best spends epsilon each time.
    Source
        events.md, *laplace* (with the proof); Dwork et al. 2006; Ghosh et al. 2012 for the discrete noise.
    """

    epsilon: Fraction
    spends: tuple[Spend, ...]

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise JobError("epsilon must be greater than 0", key="privacy.epsilon")
        if sum((s.epsilon for s in self.spends), Fraction(0)) != self.epsilon:
            raise SqldeidError("the parts of the budget do not add up to epsilon; this is a bug of sqldeid")

    @classmethod
    def split(cls, domain: Domain, epsilon: Fraction) -> Ledger:
        """One budget over every statistic of a domain; what has no cells leaves its part to the transitions.

        Where the number of events looked at is chosen from the noised lengths, epsilon is the sum all the same: the
        lengths change by 1 whatever is chosen, they are noised once and first, and given what they say, the other
        tables, each with the sensitivity of the number that was chosen, spend what is left (adaptive composition).
        """
        if epsilon <= 0:
            raise JobError("epsilon must be greater than 0", key="privacy.epsilon")
        sizes = cells_of(domain)
        shares = dict(SHARES if domain.timed else ORDER_SHARES)
        for name in [n for n in shares if sensitivity_of(n, domain.events_max) == 0]:
            shares["transitions"] += shares.pop(name)
        if domain.chosen:
            shares["transitions"] -= CHOOSING
            shares["lengths"] += CHOOSING
        if domain.groups:
            shares["transitions"] -= GROUPS
            shares["groups"] = GROUPS
        if tables := (*domain.factors, *((BY_GROUP,) if domain.groups else ())):
            shared = shares["transitions"] * BY_FACTOR
            shares["transitions"] -= shared
            shares |= {by(name): shared / len(tables) for name in tables}
        return cls(
            epsilon,
            tuple(
                _spend(name, sensitivity_of(name, domain.events_max), share * epsilon, sizes[name])
                for name, share in shares.items()
            ),
        )

    def of(self, statistic: str) -> Spend | None:
        """The spend of one statistic; None where it is not used."""
        return next((s for s in self.spends if s.statistic == statistic), None)


def sensitivity_of(statistic: str, events_max: int) -> int:
    """By how much one object changes a table at most, with at most `events_max` events looked at.

    k events make START → e₁, k − 1 steps between, and e_k → END unless cut off: k + 1 <= L + 1. A factor's table
    counts the same steps, each once, by the value at the event before (START: at e₁), which the object's own rows give.
    Groups compose in parallel: an object is in one group, that of its first event, whatever others are in the data. So
    it adds its at most L + 1 steps to one group's table and nothing to any other (the rest has no table), and 1 to one
    of the counts of objects by group and rest.
    """
    if statistic.startswith(by("")):
        return events_max + 1
    return {
        "transitions": events_max + 1,
        "states": events_max,
        "gaps": events_max - 1,
        "lengths": 1,
        "start months": 1,
        "start hours": 1,
        "groups": 1,
    }[statistic]


def cells_of(domain: Domain) -> dict[str, int]:
    """Number of cells of each statistic, over its whole public domain."""
    states = len(domain.states)
    return {
        "transitions": states * (states + 2),
        "states": states,
        "gaps": states * (len(domain.gap_bins_hours) + 1),
        "lengths": len(domain.length_bins) + 1,
        "start months": domain.months,
        "start hours": 7 * 24,
        "groups": domain.group_count + 1,
        by(BY_GROUP): domain.group_count * states * (states + 2),
        **{by(f): len(domain.values(f)) * states * (states + 2) for f in domain.factors},
    }


def _spend(statistic: str, sensitivity: int, epsilon: Fraction, cells: int) -> Spend:
    if sensitivity / epsilon > SCALE_MOST:
        raise JobError(
            f"epsilon is so small that the {statistic} would be nothing but noise; set a larger one",
            key="privacy.epsilon",
        )
    scale = float(Fraction(sensitivity) / epsilon)
    while Fraction(scale) < Fraction(sensitivity) / epsilon:
        scale = nextafter(scale, inf)
    return Spend(statistic, sensitivity, epsilon, scale, cells)


def noise(counts: Ints, spend: Spend) -> tuple[Ints, Spend]:
    """Discrete Laplace noise by OpenDP on every cell, and the spend with the scale that was used.

    The scale is raised by as little as rounding needs until OpenDP itself states that the spend is kept to.

    Raises
    ------
    JobError
        If OpenDP is not installed.
    SqldeidError
        If the table is not the whole domain, or OpenDP does not confirm the spend.
    """
    if counts.size != spend.cells:
        raise SqldeidError(f"{spend.statistic}: {counts.size} cells, {spend.cells} expected; this is a bug of sqldeid")
    dp = _opendp()
    space = dp.domains.vector_domain(dp.domains.atom_domain(T="i64")), dp.metrics.l1_distance(T="i64")
    scale = spend.scale
    for _ in range(64):
        measurement = dp.measurements.make_laplace(*space, scale=scale)
        if Fraction(measurement.map(spend.sensitivity)) <= spend.epsilon:
            break
        scale = nextafter(scale, inf)
    else:
        raise SqldeidError(f"{spend.statistic}: OpenDP does not confirm the spend; this is a bug of sqldeid")
    drawn = np.array(measurement(counts.ravel().tolist()), dtype=np.int64).reshape(counts.shape)
    return drawn, Spend(spend.statistic, spend.sensitivity, spend.epsilon, scale, spend.cells)


def _opendp() -> Any:
    """OpenDP without its prelude, which imports scikit-learn wherever that is installed: seconds for nothing."""
    try:
        import opendp
        import opendp.domains
        import opendp.measurements
        import opendp.metrics
        import opendp.mod
    except ImportError:
        raise JobError.at("privacy.method", "laplace needs OpenDP; install it with pip install 'sqldeid[dp]'") from None
    opendp.mod.enable_features("contrib")
    return opendp
