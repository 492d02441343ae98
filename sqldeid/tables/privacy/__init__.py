"""Privacy criteria: one a file, frozen, each with its guarantee; none has a default that means "no constraint"."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqldeid.job import Privacy
from sqldeid.tables.privacy.k_anonymity import KAnonymity
from sqldeid.tables.privacy.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqldeid.tables.privacy.m_concealing import MConcealing
from sqldeid.tables.privacy.t_closeness import TCloseness

ClassCriterion = DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity | TCloseness
"""What is judged per equivalence class, beyond its size."""


def class_criteria(asked: Privacy, sensitive: Sequence[str]) -> tuple[ClassCriterion, ...]:
    """The criteria of a job beyond k-anonymity, in its order.

    Parameters
    ----------
    sensitive
        Every sensitive column of the release: joint criteria look at each beside the others.
    """
    found: list[ClassCriterion] = []
    for entry in asked.l_diversity:
        joint = entry.scope == "joint"
        others = tuple(name for name in sensitive if joint and name != entry.column)
        if entry.kind == "distinct":
            found.append(DistinctLDiversity(entry.column, entry.l, others))
        elif entry.kind == "entropy":
            found.append(EntropyLDiversity(entry.column, entry.l, others))
        else:
            found.append(RecursiveLDiversity(entry.column, entry.l, Fraction(repr(float(entry.c or 0))), others))
    for close in asked.t_closeness:
        found.append(TCloseness(close.column, Fraction(repr(float(close.t))), close.distance))
    return tuple(found)


def others_of(criterion: ClassCriterion) -> tuple[str, ...]:
    """The other sensitive columns by whose values a criterion splits the classes; empty for classes as they are."""
    return () if isinstance(criterion, TCloseness) else criterion.others


def concealing(asked: Privacy) -> MConcealing | None:
    """The job's m-concealing, if it asks for it."""
    entry = asked.m_concealing
    if entry is None:
        return None
    known = tuple((column, float(p)) for column, p in entry.known.items())
    return MConcealing(Fraction(repr(float(entry.m))), known, Fraction(repr(float(entry.inclusion))))


__all__ = [
    "ClassCriterion",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "KAnonymity",
    "MConcealing",
    "RecursiveLDiversity",
    "TCloseness",
    "class_criteria",
    "concealing",
    "others_of",
]
