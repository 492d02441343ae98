"""Make the set of variables that a person lacks common to at least k persons (NULL mode `null-pattern`). Pure.

What is absent is never filled in; so a combination of variables that fewer than k persons have is made an intersection
with another one, the variables beyond it withheld, until every combination is that of at least k.
"""

from __future__ import annotations

import numpy as np

from sqldeid.arrays import Flags, Ints


def share_patterns(present: Flags, records: Ints, k: int, least: int = 0) -> Flags:
    """Which variables each person keeps.

    Parameters
    ----------
    present
        (persons, variables): what each has.
    records
        (persons, variables): how many records withholding it would cost.
    k
        Least number of persons of a combination.
    least
        Fewer persons with any variable left would all be lost: a step that leaves so few counts as losing everything.

    Returns
    -------
    (persons, variables)
        At most `present`. Every combination with any variable is kept by at least k persons.

    Notes
    -----
    Greedy: the rarest combination is joined with the one that costs the fewest records, or gives up everything where
    that costs least. It ends, since every step leaves one combination fewer. It depends on the rows' content, not on
    their order.
    """
    patterns, of_person = np.unique(present, axis=0, return_inverse=True)
    of_person = of_person.reshape(-1)
    size = np.bincount(of_person, minlength=len(patterns))
    cost = np.zeros(patterns.shape, dtype=np.int64)
    np.add.at(cost, of_person, np.where(present, records, 0))
    into = np.arange(len(patterns))
    while True:
        rare = np.flatnonzero((size > 0) & (size < k) & patterns.any(axis=1))
        if len(rare) == 0:
            break
        chosen = int(rare[np.argmin(size[rare])])
        _join(chosen, _partner(chosen, patterns, size, cost, least), patterns, size, cost, into)
    while not np.array_equal(into, into[into]):
        into = into[into]
    return np.asarray(patterns[into][of_person] & present)


def _partner(chosen: int, patterns: Flags, size: Ints, cost: Ints, least: int) -> int | None:
    """The combination to join with at the fewest records lost; None: give up all variables."""
    mine, its_cost = patterns[chosen], cost[chosen]
    lost = (~patterns & mine) @ its_cost + np.where(patterns & ~mine, cost, 0).sum(axis=1)
    left = size[patterns.any(axis=1)].sum() - size[chosen]  # with any variable, should this one give up all of its own
    emptied = ~(patterns & mine).any(axis=1)
    lost[emptied & (left - size < least)] += cost.sum()
    lost[chosen] = np.iinfo(np.int64).max
    lost[size == 0] = np.iinfo(np.int64).max
    best = int(np.lexsort((-size, lost))[0])
    alone = its_cost.sum() + (cost.sum() if left < least else 0)
    return None if lost[best] >= alone else best


def _join(chosen: int, other: int | None, patterns: Flags, size: Ints, cost: Ints, into: Ints) -> None:
    """Make one of two combinations, in place; it becomes another that is there where it equals that."""
    common = np.zeros_like(patterns[chosen]) if other is None else patterns[chosen] & patterns[other]
    same = np.flatnonzero((patterns == common).all(axis=1) & (size > 0))
    target = int(same[0]) if len(same) else chosen
    patterns[target] = common
    for source in {chosen, chosen if other is None else other} - {target}:
        size[target] += size[source]
        cost[target] += cost[source]
        size[source], into[source] = 0, target
    cost[target] = np.where(common, cost[target], 0)
