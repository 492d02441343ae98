"""Privacy criteria: one a file, frozen, each with its guarantee; none has a default that means "no constraint"."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqldeid.errors import UnknownKindError
from sqldeid.job import Privacy
from sqldeid.tables.criteria.k_anonymity import KAnonymity
from sqldeid.tables.criteria.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqldeid.tables.criteria.m_concealing import MConcealing
from sqldeid.tables.criteria.t_closeness import TCloseness
from sqldeid.tables.criteria.terms import ClassCriterion, Terms, refuse_unknown, terms_of


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
        match entry.kind:
            case "distinct":
                found.append(DistinctLDiversity(entry.column, entry.l, others))
            case "entropy":
                found.append(EntropyLDiversity(entry.column, entry.l, others))
            case "recursive":
                found.append(RecursiveLDiversity(entry.column, entry.l, Fraction(repr(float(entry.c or 0))), others))
            case unknown:
                raise UnknownKindError(unknown, "kind of l-diversity")
    for close in asked.t_closeness:
        found.append(TCloseness(close.column, Fraction(repr(float(close.t))), close.distance))
    return tuple(found)


def others_of(criterion: ClassCriterion) -> tuple[str, ...]:
    """The other sensitive columns by whose values a criterion splits the classes; empty for classes as they are."""
    match criterion:
        case DistinctLDiversity() | EntropyLDiversity() | RecursiveLDiversity():
            return criterion.others
        case TCloseness():
            return ()
        case _:
            refuse_unknown(criterion)


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
    "Terms",
    "class_criteria",
    "concealing",
    "others_of",
    "refuse_unknown",
    "terms_of",
]
