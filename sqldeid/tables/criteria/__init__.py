"""Privacy criteria: one a file, frozen, each with its guarantee; none has a default that means "no constraint"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn

from sqldeid.errors import UnknownKindError
from sqldeid.tables.criteria.base import ClassCriterion, Spec, Terms
from sqldeid.tables.criteria.beta_likeness import BetaLikeness, likeness_of
from sqldeid.tables.criteria.delta_disclosure import DeltaDisclosure, disclosure_of
from sqldeid.tables.criteria.k_anonymity import KAnonymity
from sqldeid.tables.criteria.l_diversity import (
    DistinctLDiversity,
    EntropyLDiversity,
    RecursiveLDiversity,
    diversity_of,
)
from sqldeid.tables.criteria.m_concealing import MConcealing
from sqldeid.tables.criteria.overall_risk import OverallRisk
from sqldeid.tables.criteria.t_closeness import HierarchicalTCloseness, TCloseness, closeness_of

if TYPE_CHECKING:  # who reckons from numbers alone needs no job
    from sqldeid.job import Privacy
    from sqldeid.job.privacy import AtRisk
    from sqldeid.tables.criteria.delta_presence import DeltaPresence

KINDS: tuple[type[ClassCriterion], ...] = (
    DistinctLDiversity,
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
    HierarchicalTCloseness,
    DeltaDisclosure,
    BetaLikeness,
)
"""The criteria about sensitive columns. There are no others: `known` refuses what is not here."""

_OF_ENTRY: Mapping[str, Callable[[Spec, Sequence[str]], ClassCriterion]] = {
    "l_diversity": diversity_of,
    "t_closeness": closeness_of,
    "delta_disclosure": disclosure_of,
    "beta_likeness": likeness_of,
}
"""What makes a criterion of an entry of the job, by the entry's key."""


def known(criterion: ClassCriterion) -> ClassCriterion:
    """The criterion, where it is one of `KINDS`: whoever judges must never fall back to "nothing is asked".

    Raises
    ------
    UnknownKindError
        For any other, and for one in a variant that it does not know itself.
    """
    if type(criterion) not in KINDS:
        refuse_unknown(criterion)
    _ = criterion.terms  # raises for a variant that is not known
    return criterion


def refuse_unknown(criterion: object) -> NoReturn:
    """Raise for a criterion that is not known where it is judged or told of: never a verdict by default.

    Raises
    ------
    UnknownKindError
        Always.
    """
    raise UnknownKindError(type(criterion).__name__, "criterion")


def terms_of(criterion: ClassCriterion) -> Terms:
    """What a criterion asks, for statements; `known` says what raises."""
    return known(criterion).terms


def others_of(criterion: ClassCriterion) -> tuple[str, ...]:
    """The other sensitive columns by whose values a criterion splits the classes; empty for classes as they are."""
    return known(criterion).others


def class_criteria(asked: Privacy, sensitive: Sequence[str]) -> tuple[ClassCriterion, ...]:
    """The criteria of a job beyond k-anonymity, in its order.

    Parameters
    ----------
    sensitive
        Every sensitive column of the release: joint criteria look at each beside the others.
    """
    return tuple(
        criterion_of(key, dict(entry), sensitive) for key, entries in asked.per_class.items() for entry in entries
    )


def criterion_of(key: str, entry: Spec, sensitive: Sequence[str]) -> ClassCriterion:
    """The criterion that one table of the job asks for, by its key; `sensitive` as for `class_criteria`.

    Raises
    ------
    UnknownKindError
        For a key that asks for no criterion.
    """
    if key not in _OF_ENTRY:
        raise UnknownKindError(key, "criterion")
    return _OF_ENTRY[key](entry, sensitive)


def concealing(asked: Privacy) -> MConcealing | None:
    """The job's m-concealing, if it asks for it."""
    entry = asked.m_concealing
    if entry is None:
        return None
    known_columns = tuple((column, float(p)) for column, p in entry.known.items())
    return MConcealing(Fraction(repr(float(entry.m))), known_columns, Fraction(repr(float(entry.inclusion))))


def overall_risk(asked: Privacy) -> OverallRisk | None:
    """What the job asks of all released classes together, if it does."""
    at_risk, average = asked.at_risk, asked.average_risk
    if at_risk is None and average is None:
        return None
    exact = (None if x is None else Fraction(repr(float(x))) for x in (average, *_of_rows(at_risk)))
    return OverallRisk(*exact)


def delta_presence(asked: Privacy) -> DeltaPresence | None:
    """What the job asks of the population's classes, if it does."""
    entry = asked.delta_presence
    if entry is None:
        return None
    from sqldeid.tables.criteria.delta_presence import DeltaPresence

    return DeltaPresence(*(Fraction(repr(float(x))) for x in (entry.least, entry.most)))


def _of_rows(at_risk: AtRisk | None) -> tuple[float | None, float | None]:
    return (None, None) if at_risk is None else (at_risk.threshold, at_risk.share)


__all__ = [
    "KINDS",
    "BetaLikeness",
    "ClassCriterion",
    "DeltaDisclosure",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "HierarchicalTCloseness",
    "KAnonymity",
    "MConcealing",
    "OverallRisk",
    "RecursiveLDiversity",
    "TCloseness",
    "Terms",
    "class_criteria",
    "concealing",
    "criterion_of",
    "delta_presence",
    "known",
    "others_of",
    "overall_risk",
    "refuse_unknown",
    "terms_of",
]
