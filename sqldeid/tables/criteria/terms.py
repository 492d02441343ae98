"""What a criterion about a sensitive column asks, in the words of the statements that judge it.

The one place that tells criteria apart for SQL. A criterion that is not known here raises: whoever judges must never
fall back to "nothing is asked".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from sqldeid.errors import UnknownKindError
from sqldeid.tables.criteria.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqldeid.tables.criteria.t_closeness import TCloseness

ClassCriterion = DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity | TCloseness
"""What is judged per equivalence class, beyond its size."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A criterion as the templates take it.

    Parameters
    ----------
    kind
        `distinct`, `entropy`, `recursive`, `equal` or `ordered`.
    l
        Of l-diversity; 1 for t-closeness, which asks for no number of values.
    number
        c of recursive l-diversity, t of t-closeness; 0 for the others.
    """

    kind: str
    l: int
    number: Fraction


def terms_of(criterion: ClassCriterion) -> Terms:
    """What a criterion asks.

    Raises
    ------
    UnknownKindError
        For one that is not known here, or has a distance that is not.
    """
    match criterion:
        case DistinctLDiversity():
            return Terms("distinct", criterion.l, Fraction(0))
        case EntropyLDiversity():
            return Terms("entropy", criterion.l, Fraction(0))
        case RecursiveLDiversity():
            return Terms("recursive", criterion.l, criterion.c)
        case TCloseness(distance="equal" | "ordered" as distance):
            return Terms(distance, 1, criterion.t)
        case _:
            refuse_unknown(criterion)


def refuse_unknown(criterion: object) -> NoReturn:
    """Raise for a criterion that is not known where it is judged or told of: never a verdict by default.

    Raises
    ------
    UnknownKindError
        Always.
    """
    if isinstance(criterion, TCloseness):
        raise UnknownKindError(criterion.distance, "distance of t-closeness")
    raise UnknownKindError(type(criterion).__name__, "criterion")
