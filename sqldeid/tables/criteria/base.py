"""The protocol of a criterion about a sensitive column: all that the other rooms ask of one, in one place.

A criterion is one class in one file of this room, entered in `sqldeid.tables.criteria.KINDS`; `known` lets no other
pass. Two formulas judge it: the search's (`survivors`, the templates of `tables/check`) and the re-check's
(`passing_rows`, `holds`, `farthest`, the templates of `tables/verify` and `tables/certificate`), so that an error
cannot hide itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.errors import UnknownKindError
from sqldeid.tables.criteria.bounds import Bounds
from sqldeid.tables.criteria.histograms import Histograms

Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Terms:
    """A criterion as the templates take it.

    Parameters
    ----------
    kind
        The word that templates branch on, of the search and of the re-check; each raises for one it does not know.
    l
        Of l-diversity; 1 for criteria that ask for no number of values.
    number
        c of recursive l-diversity, t of t-closeness, delta; 0 for criteria with no such number.
    definition
        Where `kind` is ``bounded`` (`ClassCriterion.bounds`): the word by which the re-check, which knows no bounds,
        takes each class's distance from the whole table (`tables/verify/score_classes`).
    groups
        Where `kind` is ``hierarchical``: for each level below the top, the original's first, each value's group by
        place.
    """

    kind: str
    l: int = 1
    number: Fraction = Fraction(0)
    definition: str = ""
    groups: tuple[tuple[int, ...], ...] | None = None

    @property
    def recheck(self) -> dict[str, Any]:
        """As parameters of a re-check, which goes by the definition."""
        grouped = {} if self.groups is None else {"groups": self.groups}
        return {**self.sql, "kind": self.definition or self.kind, **grouped}

    @property
    def statement(self) -> str:
        """What the search's statement is called, of a kind that has one of its own; else empty: common statistics."""
        return {"bounded": "bound_classes", "hierarchical": "level_classes"}.get(self.kind, "")

    @property
    def sql(self) -> dict[str, Any]:
        """As parameters: kind, l, num and den."""
        return {"kind": self.kind, "l": self.l, "num": self.number.numerator, "den": self.number.denominator}

    @property
    def distance(self) -> str:
        """The distance of which the search keeps statistics per class, for this criterion."""
        return self.kind if self.kind in ("equal", "ordered") else "none"

    @property
    def greatest(self) -> int:
        """How many of a class's greatest counts the search keeps, for this criterion."""
        return self.l - 1 if self.kind == "recursive" else 0

    def steps(self, values: int) -> int:
        """Steps between the first and the last of `values`, in which the distance is told; 0 where none is."""
        return {"equal": 1, "ordered": max(values - 1, 1)}.get(self.kind, 0)


@dataclass(frozen=True, slots=True)
class Words:
    """A criterion in words.

    Parameters
    ----------
    name
        As results call it.
    asked
        The number asked for.
    told
        What is asked, as a plan tells it: ``l = 2``.
    promise, of_persons
        The guarantee in one sentence, and in another where a person may have many rows
        (`sqldeid.tables.criteria.persons`).
    """

    name: str
    asked: float
    told: str
    promise: str
    of_persons: str


class ClassCriterion(ABC):
    """What is judged per equivalence class, beyond its size.

    Subclasses are frozen dataclasses. One that states `bounds` says with them which classes pass; any other has its own
    `survivors`, `passing_rows` and `holds`. Their docstrings have the sections *Guarantee*, *Assumes*, *Does not
    protect* and *Source*, and say whether generalisation preserves the criterion.
    """

    __slots__ = ()

    key: ClassVar[str]
    """The key of `[tables.….privacy]` that asks for it."""
    against_whole: ClassVar[bool] = False
    """Whether a class is measured against the whole table, so that values of one person cannot count several times."""
    column: str
    others: tuple[str, ...] = ()
    """The other sensitive columns by whose values it splits the classes; empty for classes as they are."""

    @property
    @abstractmethod
    def words(self) -> Words:
        """What it is called, what is asked and what it promises."""

    @property
    def name(self) -> str:
        """As results call it."""
        return self.words.name

    @property
    def asked(self) -> float:
        """The number asked for."""
        return self.words.asked

    @property
    @abstractmethod
    def terms(self) -> Terms:
        """What it asks, for statements.

        Raises
        ------
        UnknownKindError
            For a variant that is not known.
        """

    def bounds(self, whole: Ints) -> Bounds:
        """Least and most of each value's share, of a criterion that states no more than these.

        Raises
        ------
        UnknownKindError
            For any other.
        """
        raise UnknownKindError(type(self).__name__, "criterion with bounds")

    def survivors(self, classes: Histograms, reference: Ints) -> Ints:
        """The search's core: the most rows of each class that can be released below it (`check.passing_rows`)."""
        return self.bounds(reference).survivors(classes)

    def passing_rows(self, counts: Ints, whole: Ints) -> Ints:
        """The same for a certificate, by other formulas, from counts of shape (classes, values)."""
        return self.bounds(whole).passing_rows(counts)

    def holds(self, by_place: Mapping[int, int], persons: int, whole: Ints) -> bool:
        """Whether a class meets it, in exact numbers where it is not a logarithm.

        Parameters
        ----------
        by_place
            Place of a value → persons of the class who have it.
        persons
            Of the class.
        whole
            Persons of the whole table by place.
        """
        return self.bounds(whole).holds(by_place, persons)

    def hold(self, classes: Histograms, whole: Ints) -> Flags:
        """Which of some classes meet it, as `holds` says of each; shape (classes,).

        Parameters
        ----------
        whole
            Rows of the whole table by value.
        """
        holding, sure = self.clearly(classes, whole)
        first = np.append(classes.first, len(classes.rows)).tolist()
        for i in np.flatnonzero(~sure).tolist():
            value, rows = (x[first[i] : first[i + 1]].tolist() for x in (classes.value, classes.rows))
            holding[i] = self.holds(dict(zip(value, rows, strict=True)), sum(rows), whole)
        return holding

    def clearly(self, classes: Histograms, whole: Ints) -> tuple[Flags, Flags]:
        """Which of some classes meet it, and of which this is sure by more than rounding."""
        return self.bounds(whole).clearly(classes)

    @abstractmethod
    def farthest(self, starts: Ints, code: Ints, n: Ints) -> tuple[float | None, bool]:
        """What the worst class achieves (None where that is no number), and whether all classes pass.

        Parameters
        ----------
        starts
            Where each class begins in `code` and `n`, of which there is at least one; counts fall within a class. All
            classes together are the whole table.
        """
