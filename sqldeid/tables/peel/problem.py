"""What local recoding is asked, and what it answers, as arrays: no statement, no job, no engine. Pure.

A combination is a distinct tuple of quasi-identifying values. All rows of a combination are released alike, so that
the release depends on quasi-identifying values alone; a layer is a lattice node with the combinations released at it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.tables.criteria import ClassCriterion, MConcealing
from sqldeid.tables.model.lattice import Node


@dataclass(frozen=True, slots=True)
class Attribute:
    """One quasi-identifying column.

    Parameters
    ----------
    label
        Per level, the number of each leaf's label; shape (leaves,). Equal labels have one number, whatever their level.
    leaves
        Per level, how many leaves of the hierarchy have each leaf's group; shape (leaves,).
    weight
        In the loss.
    """

    label: tuple[Ints, ...]
    leaves: tuple[Ints, ...]
    weight: Fraction

    @property
    def height(self) -> int:
        """Number of levels."""
        return len(self.label)


@dataclass(frozen=True, slots=True)
class Judged:
    """A criterion beyond k with the sensitive values of each combination.

    Parameters
    ----------
    combination, value, rows
        Rows by combination and value, ordered by these; each of shape (cells,).
    whole
        Rows of the whole table by value; shape (values,).
    """

    criterion: ClassCriterion
    combination: Ints
    value: Ints
    rows: Ints
    whole: Ints


@dataclass(frozen=True, slots=True)
class Concealed:
    """m-concealing with the known values of each combination, which it judges together.

    Parameters
    ----------
    combination, value, rows
        Rows by combination and tuple of known values, ordered by these; each of shape (cells,).
    tuples
        Codes of the known columns in each tuple, in the criterion's order; shape (tuples, columns).
    """

    criterion: MConcealing
    combination: Ints
    value: Ints
    rows: Ints
    tuples: Ints


@dataclass(frozen=True, slots=True)
class LocalProblem:
    """A table to be recoded.

    Parameters
    ----------
    leaf
        Number of the leaf of each combination in each column; shape (columns, combinations). Combinations are distinct
        and ordered by these numbers, whatever the order of rows and the engine.
    rows
        Rows of each combination; shape (combinations,).
    k
        Least rows of a released class.
    allowed
        Most rows that may be suppressed.
    loss
        `loss`: mean over cells of (leaves - 1)/(leaves of the domain - 1); `prec`: of level/(height - 1). Weighted by
        column. In both, a suppressed row counts 1 in every column: else suppressing would cost nothing.
    layers
        Most nodes that may be used; None: any number.
    seconds
        Time that may be spent; None: as long as it pays.
    concealed
        m-concealing, where it is asked for.
    """

    leaf: Ints
    rows: Ints
    attributes: tuple[Attribute, ...]
    k: int
    allowed: int
    loss: Literal["loss", "prec"] = "loss"
    criteria: tuple[Judged, ...] = ()
    layers: int | None = None
    seconds: float | None = None
    concealed: Concealed | None = None

    @property
    def k_alone(self) -> LocalProblem:
        """The same with no criterion beyond k."""
        return replace(self, criteria=(), concealed=None)

    @property
    def least_rows(self) -> int:
        """Rows below which no class is released: k, and what m-concealing asks of any class, whoever is in it.

        A risk is never below the inclusion probability over the class's rows. One row more than there are stands for
        all greater numbers: no class has so many.
        """
        if self.concealed is None:
            return self.k
        return max(self.k, min(self.concealed.criterion.least_rows, int(self.rows.sum()) + 1))


@dataclass(frozen=True, slots=True)
class Partition:
    """A release with levels of its own for each class.

    Parameters
    ----------
    nodes
        The layers, in the order of their numbers, each used.
    layer
        Number of the layer of each combination, -1 where it is suppressed; shape (combinations,).
    units, bound, unit
        What is lost and what must be lost at least, in whole units; what one unit is worth in the published scale.
    parts, share
        What proves the bound, `sqldeid.tables.peel.shares` says how: sets of columns that share none, given by place,
        and for each set units that one row of each combination must lose in these columns at least, in the mean of any
        class; shape (parts, combinations). In each class of the whole source by these columns, at every node, from
        which k rows can be released (by the criteria's monotone cores, too), the k greatest shares of rows sum to at
        most k times what a row loses there in these columns; none exceeds what a suppressed row loses in them; `bound`
        is the sum of all over all rows. With one part, all columns are in it. For k stands `LocalProblem.least_rows`.
    stopped
        Whether the time of any step was over before it came to its end. Such a release may differ from run to run.
    """

    nodes: tuple[Node, ...]
    layer: Ints
    units: int
    bound: int
    unit: Fraction
    stopped: bool = False
    parts: tuple[tuple[int, ...], ...] = ()
    share: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @property
    def loss(self) -> float:
        """What is lost, from 0 to 1."""
        return float(self.unit * self.units)

    @property
    def least(self) -> float:
        """What every recoding by these hierarchies loses at least, from 0 to 1."""
        return float(self.unit * self.bound)
