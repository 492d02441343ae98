"""What k and the suppression limit cost on one source, pair by pair: frozen results of `sqldeid tradeoff`.

For the data holder: losses and counts of suppressed rows are statistics about people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TradePoint:
    """The best node for one k and one suppression limit; `node` is None where no node is admissible.

    `loss` is in the job's loss; `bound` no node is below: they are equal where `optimal`. `checks` counts the nodes
    that this pair was the first to need.
    """

    k: int
    suppression_limit: float
    node: Mapping[str, int] | None
    loss: float | None
    bound: float | None
    optimal: bool
    suppressed: int | None
    classes: int | None
    checks: int
    seconds: float


@dataclass(frozen=True, slots=True)
class GreatestK:
    """The greatest k for one `max_loss` and one suppression limit (`inverse-ola`); None where even k = 1 loses more."""

    max_loss: float
    suppression_limit: float
    k: int | None
    node: Mapping[str, int] | None
    loss: float | None
    optimal: bool


@dataclass(frozen=True, slots=True)
class LocalPoint:
    """What local recoding reaches for one k and one suppression limit; nothing where no classes meet the criteria.

    Parameters
    ----------
    loss, bound
        In the job's loss, a suppressed row counting 1; no recoding by levels of single classes can lose less than the
        bound.
    stopped
        Whether the time was over before the search came to its end.
    """

    k: int
    suppression_limit: float
    loss: float | None
    bound: float | None
    suppressed: int | None
    classes: int | None
    layers: int | None
    stopped: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """What k and the suppression limit cost on one source (`sqldeid tradeoff`).

    Parameters
    ----------
    heights
        Levels of each quasi-identifying column.
    points
        One per pair, by k, then by limit.
    inverse
        One per `max_loss` and limit, where asked for.
    checks
        Nodes counted in all.
    local
        The same pairs by local recoding, where it was asked for.
    """

    name: str
    rows: int
    loss: str
    heights: Mapping[str, int]
    points: tuple[TradePoint, ...]
    inverse: tuple[GreatestK, ...]
    lattice_size: int
    checks: int
    seconds: float
    warnings: tuple[str, ...] = ()
    local: tuple[LocalPoint, ...] = ()

    def _repr_html_(self) -> str:
        """What a notebook shows; for the data holder."""
        from sqldeid.notebook import html_of_tradeoff

        return html_of_tradeoff(self)
