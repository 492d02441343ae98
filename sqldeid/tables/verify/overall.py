"""What all released classes must meet together, re-checked by its definition, by no formula of the search. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqldeid.errors import UnknownKindError, VerificationError
from sqldeid.result import Criterion, Measured
from sqldeid.tables.criteria import OverallRisk
from sqldeid.tables.criteria.overall_risk import AT_RISK, AVERAGE
from sqldeid.tables.plan.plan import TablePlan


@dataclass(frozen=True, slots=True)
class Together:
    """What classes achieve together: the average of 1/size over their rows, and the share of rows at risk.

    Both are 0 where there is no class; `meets` says whether the demands are met.
    """

    average: Fraction
    at_risk: Fraction
    meets: Mapping[str, bool]


def together(overall: OverallRisk, sizes: Mapping[int, int]) -> Together:
    """What classes of these sizes (size → classes) achieve together.

    Raises
    ------
    UnknownKindError
        For demands that are not an `OverallRisk`.
    """
    if type(overall) is not OverallRisk:
        raise UnknownKindError(type(overall).__name__, "criterion of the whole release")
    rows = sum(size * n for size, n in sizes.items())
    risks = [(Fraction(1, size), size * n) for size, n in sizes.items() if n]
    average = sum((risk * n for risk, n in risks), Fraction(0)) / max(rows, 1)
    above = sum(n for risk, n in risks if overall.threshold is not None and risk > overall.threshold)
    at_risk = Fraction(above, max(rows, 1))
    meets = {
        AVERAGE: overall.average is None or average <= overall.average,
        AT_RISK: overall.share is None or at_risk <= overall.share,
    }
    return Together(average, at_risk, meets)


def least_size(overall: OverallRisk, sizes: Mapping[int, int], k: int) -> int:
    """The least number, k or more, such that the classes of so many rows meet all demands together.

    Parameters
    ----------
    sizes
        Of the classes that pass every criterion of classes: size → classes.

    Sizes are tried from the greatest on. What holds of the greater classes need not hold with smaller ones; once it
    does not, it does with no still smaller one: what made a share too much is small, and what is smaller adds to it.
    """
    kept: dict[int, int] = {}
    for size in sorted((s for s in sizes if s >= k), reverse=True):
        kept[size] = sizes[size]
        if not all(together(overall, kept).meets.values()):
            return size + 1
    return k


def measured_together(plan: TablePlan, sizes: Mapping[int, int]) -> tuple[Measured, ...]:
    """What classes of these sizes achieve, met or not; empty where nothing is asked of them together."""
    if plan.overall is None:
        return ()
    found = together(plan.overall, sizes)
    achieved = {AVERAGE: float(found.average), AT_RISK: float(found.at_risk)}
    return tuple(
        Measured(w.name, None, w.asked, achieved[w.name] if sizes else None, found.meets[w.name])
        for w in plan.overall.words
    )


def achieved_together(plan: TablePlan, sizes: Mapping[int, int]) -> tuple[Criterion, ...]:
    """The same of what was written.

    Raises
    ------
    VerificationError
        If it does not meet what is asked.
    """
    found = []
    for measured, words in zip(measured_together(plan, sizes), plan.overall.words if plan.overall else (), strict=True):
        if not measured.met:
            raise VerificationError.at(plan.key, f"the release failed its re-check: it fails {measured.name}")
        found.append(Criterion(words.name, None, words.asked, measured.achieved or 0.0, words.promise))
    return tuple(found)
