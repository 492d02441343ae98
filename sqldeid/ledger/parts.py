"""Decide which branches of the ledger's cells are released, on one row per cell, class and change. Pure.

A cell is the persons who went the same way through all releases so far; a branch is those of them who would go one way
now. Nobody is moved to another class or kept where he no longer is: a row is released as it is, or held back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Flags, Ints


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of all cells.

    Parameters
    ----------
    cell
        The cell of each, from 0; -1 for persons who were never released.
    n
        Its persons.
    k
        The greatest k under which its cell was released; 0 for persons who were never released.
    leaves
        Whether its persons have no class now: gone, or suppressed.
    """

    cell: Ints
    n: Ints
    k: Ints
    leaves: Flags

    @property
    def known(self) -> Flags:
        """Branches of persons who were released before."""
        return self.cell >= 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of each branch: withdrawn as a whole, or released but for so many companions of those who left."""

    withdrawn: Flags
    companions: Ints

    def parts(self, branches: Branches) -> tuple[Ints, Ints]:
        """Per branch the persons released, per cell those not released."""
        kept = np.where(self.withdrawn, 0, branches.n - self.companions)
        known = branches.known
        out = np.bincount(branches.cell[known], weights=(branches.n - kept)[known]).astype(np.int64)
        return kept, out

    def torn(self, branches: Branches) -> Ints:
        """The cells whose persons would no longer go the same way."""
        kept, out = self.parts(branches)
        known = branches.known & (kept > 0)
        ways = np.bincount(branches.cell[known], minlength=len(out)) + (out > 0)
        return np.flatnonzero(ways > 1)


def decide(branches: Branches, k: int, withdrawn: Flags, least_out: Ints) -> Decision:
    """Release as much as keeps every part of every cell at 0 or k persons.

    Of a cell that fewer than `least_out` persons would leave, some of its largest branch are held back with them; where
    it is too small for that, its smallest branch is withdrawn, and so on.

    Parameters
    ----------
    k
        Of the release that is made.
    withdrawn
        Branches that must not be released for other reasons.
    least_out
        Per cell, the persons that must leave it if any do: at least the k of its releases.
    """
    need = np.maximum(branches.k, k)
    out = withdrawn | branches.leaves | (branches.n < need)
    companions = np.zeros(len(branches.n), dtype=np.int64)
    at = np.flatnonzero(branches.known)
    if not len(at):
        return Decision(out, companions)
    order = at[np.lexsort((branches.n[at], branches.cell[at]))]
    settled = np.zeros(len(least_out), dtype=np.bool_)
    while True:
        gone = np.bincount(branches.cell[at], weights=(branches.n * out)[at], minlength=len(least_out)).astype(np.int64)
        few = (gone > 0) & (gone < least_out) & ~settled
        open_ = order[few[branches.cell[order]] & ~out[order]]
        if not len(open_):
            return Decision(out, companions)
        cells, first = np.unique(branches.cell[open_], return_index=True)
        last = np.append(first[1:], len(open_)) - 1
        largest, smallest = open_[last], open_[first]
        lacking = least_out[cells] - gone[cells]
        enough = branches.n[largest] - lacking >= need[largest]
        companions[largest[enough]] = lacking[enough]
        settled[cells[enough]] = True
        out[smallest[~enough]] = True
