"""Minimality: what the choice of a node tells of sensitive values beside the classes.

`sqldeid.tables.attacks.minimal` computes it.

*What the reader knows* beside the release stands there. He gains where a finer node would have been chosen but for a
criterion on sensitive values: that it was not tells that some class of it failed. Chosen by k alone, a node tells
nothing of them, and local recoding chooses too many steps for this computation; both are left out by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Flags, Ints
from sqldeid.attacked import Achieved, Estimate, counted, percent, sampled
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Step
from sqldeid.tables.attacks.base import HELD_BACK, MOST_ROWS, SUPPRESSED, Attack, Attacked, Recoded
from sqldeid.tables.attacks.disclosure import classes_of
from sqldeid.tables.attacks.known import SEED, Known
from sqldeid.tables.attacks.minimal import (
    Belief,
    Finer,
    Reading,
    believe,
    believe_within,
    number_columns,
    predecessors,
    sharpened,
)
from sqldeid.tables.criteria import others_of, terms_of
from sqldeid.tables.model.evaluation import log_leaves
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import Loss, make_loss
from sqldeid.tables.plan.choosing import allowed_of, by_k
from sqldeid.tables.plan.plan import TablePlan

MOST_CELLS = 50_000_000
"""Combinations by values of a column, at most: what is counted of them must fit into memory."""


@dataclass(frozen=True, slots=True)
class Gained:
    """What a reader gains on one column.

    Parameters
    ----------
    criterion, column
        By which criterion.
    threshold
        1/l; None for a criterion without l.
    alone, exceeding
        Share of rows of which the class alone, or the belief of who knows the algorithm, gives some value more than
        that; None without one. `exceeding` is at least the share that is sure.
    told
        Share of rows of which some belief is sure to be another than the class's share; at least.
    """

    criterion: str
    column: str
    threshold: float | None
    alone: Estimate | None
    exceeding: Estimate | None
    told: Estimate

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        shares = {name: None if (e := getattr(self, name)) is None else e.to_dict() for name in ("alone", "exceeding")}
        found = {"criterion": self.criterion, "column": self.column, "threshold": self.threshold}
        return {**found, **shares, "told": self.told.to_dict()}


@dataclass(frozen=True, slots=True)
class Minimality:
    """What the choice of a node tells.

    Parameters
    ----------
    nodes
        Direct predecessors that sizes alone do not refuse: only these tell anything.
    kept, drawn
        Ways to give values that agree with the release, of those drawn; both 0 where nothing had to be drawn.
    farthest
        Between what is believed of anybody and the class's share, at most (with 97.5 %).
    """

    nodes: int
    kept: int
    drawn: int
    farthest: float
    columns: tuple[Gained, ...]

    @property
    def said(self) -> str:
        """In a few words, for the summary."""
        if self.drawn and not self.kept:
            return f"none of {self.drawn} ways to give values agrees with the choice of levels: what it tells is open"
        if not self.nodes:
            return "class sizes alone refuse each node one level finer, so these tell no sensitive value"
        return (
            "who knows all quasi-identifying values, and that each node one level finer was refused, believes at most "
            f"{percent(self.farthest)} % more or less of anybody than the class shows"
        )

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        told = [c.to_dict() for c in self.columns]
        return {"nodes": self.nodes, "kept": self.kept, "drawn": self.drawn, "farthest": self.farthest, "columns": told}


def _left_out(attacked: Attacked) -> str:
    plan = attacked.plan
    if not plan.criteria:
        return "no criterion of classes speaks of a sensitive value"
    if attacked.kind == "local":
        return "local recoding chooses levels in too many steps for what a reader learns of them to be computed"
    if plan.search.blunt:
        return "levels are drawn in secret, so that no node was refused for certain"
    if by_k(plan):
        return "the node is chosen by k alone, so that it tells nothing of sensitive values"
    if plan.overall is not None:
        return "what all classes must meet together is not computed"
    if plan.concealing is not None or any(others_of(c) for c in plan.criteria):
        return "criteria on several columns at once are not computed"
    if not attacked.anew or not attacked.proven or plan.search.method == "inverse-ola":
        return "the node is not what a search for the least loss always finds"
    if attacked.known is None or attacked.rows > MOST_ROWS:
        return f"there are more than {MOST_ROWS:,} rows, or more classes than the memory limit has room for"
    return _unread(attacked)


def _unread(attacked: Attacked) -> str:
    """Why a reader's belief is not told though it was drawn."""
    if not attacked.whole:
        return HELD_BACK
    loss = make_loss(attacked.plan.search.loss, [c.marginal for c in attacked.columns], attacked.rows)
    if loss.suppressed_row * attacked.rows >= 2**62:
        return "its loss counts in units too fine for the machine's integers"
    if attacked.known is None:
        raise ValueError("nothing is known of the source")
    codes = _codes(attacked.known(), [c.column for c in attacked.plan.criteria])
    widest = max(int(of.max(initial=-1)) + 1 for of in codes)
    return "a sensitive column has too many values" if widest * len(attacked.read().rows) > MOST_CELLS else ""


def _codes(known: Known, names: Sequence[str]) -> list[Ints]:
    """The codes of the known cells in some attacked columns; each of shape (cells,)."""
    read = known.bench.ask("tables/attacks/read_codes", cells=known.cells, codes=known.codes)
    of = {s.name: s.code.name for s in known.secrets}
    return [read.column(of[name]).to_numpy().astype(np.int64) for name in names]


def reading_of(attacked: Attacked) -> Reading:
    """What a reader has of a release, with what the holder has to judge it by."""
    if attacked.known is None or attacked.node is None:
        raise ValueError("nothing is known of the source, or there is no node")
    known, recoded, plan, node = attacked.known(), attacked.read(), attacked.plan, attacked.node
    combination, owner = classes_of(known, recoded)
    places = {name: i for i, name in enumerate(dict.fromkeys(c.column for c in plan.criteria))}
    values = _codes(known, list(places))
    here = np.flatnonzero(owner != SUPPRESSED)
    times = known.rows[here]
    order = np.lexsort((np.repeat(combination[here], times), np.repeat(owner[here], times)))
    shown = np.stack([np.repeat(v[here], times)[order] for v in values])
    wholes = [np.bincount(v, weights=known.rows).astype(np.int64) for v in values]
    criteria = tuple((places[c.column], c, wholes[places[c.column]]) for c in plan.criteria)
    loss = make_loss(plan.search.loss, [c.marginal for c in attacked.columns], attacked.rows)
    at = _of_node(attacked, recoded, loss, node)
    gone = int(recoded.rows[~recoded.released].sum())
    lost = at.units(~recoded.released)
    finer = tuple(_finer(attacked, recoded, loss, y) for y in predecessors(node))
    allowed = allowed_of(plan, attacked.rows)
    return Reading(
        np.repeat(combination[here], times)[order],
        np.repeat(owner[here], times)[order],
        shown,
        criteria,
        attacked.k,
        allowed,
        (lost, gone, node),
        finer,
    )


@dataclass(frozen=True, slots=True)
class _AtNode:
    """What rows lose at a node: the classes there, and units as `sqldeid.tables.model.loss` counts them."""

    owner: Ints
    size: Ints
    row_cost: Ints
    rows: Ints
    before: int
    suppressed_row: int

    def units(self, failing: Flags) -> int:
        """Units lost where some combinations are suppressed."""
        if not self.suppressed_row:
            return self.before
        gone = self.rows * failing
        return self.before + int((gone * (self.suppressed_row - self.row_cost)).sum())


def _of_node(attacked: Attacked, recoded: Recoded, loss: Loss, node: Node) -> _AtNode:
    shown = [of[level][leaf] for of, level, leaf in zip(recoded.groups, node, recoded.leaf, strict=True)]
    owner = number_columns(shown)
    size = np.bincount(owner, weights=recoded.rows).astype(np.int64)
    cost = np.zeros(len(recoded.rows), dtype=np.int64)
    if loss.suppressed_row:
        for c, unit, level, groups in zip(attacked.columns, loss.leaf, node, shown, strict=True):
            leaves = c.marginal.leaves[level][groups]
            cost += unit * (log_leaves(leaves) if loss.logs else leaves - 1)
    before = loss.bound(node) if loss.parts is not None else int((size**2).sum())
    return _AtNode(owner, size, cost, recoded.rows, before, loss.suppressed_row)


def _finer(attacked: Attacked, recoded: Recoded, loss: Loss, node: Node) -> Finer:
    at = _of_node(attacked, recoded, loss, node)
    inside = np.where(recoded.released, recoded.rows, 0)
    size = np.bincount(at.owner, weights=inside, minlength=len(at.size)).astype(np.int64)
    few = (at.size < attacked.k)[at.owner] | ~recoded.released
    cost = np.bincount(at.owner, weights=inside * at.row_cost, minlength=len(at.size)).astype(np.int64)
    suppressed = int(recoded.rows[few].sum())
    return Finer(node, at.owner, size, cost, at.units(few), suppressed, at.suppressed_row)


def _make(attacked: Attacked) -> Achieved:
    reading = reading_of(attacked)
    telling = reading.telling()
    belief = believe_within(reading, SEED) if telling else believe(reading, 0, SEED)
    farthest = 1 - sampled(belief.kept, belief.drawn).low if telling else 0.0
    return Minimality(len(telling), belief.kept, belief.drawn, farthest, tuple(_gained(reading, belief)))


def _gained(reading: Reading, belief: Belief) -> Iterator[Gained]:
    for place, criterion, _ in reading.criteria:
        least = terms_of(criterion).l
        found = sharpened(reading, belief, place, 1 / least)
        told = Estimate(found.told / max(found.rows, 1), found.told / max(found.rows, 1), 1.0, found.rows)
        if not belief.drawn:
            told = counted(0, found.rows)
        if least == 1:
            yield Gained(criterion.name, criterion.column, None, None, None, told)
            continue
        low, high = (x / max(found.rows, 1) for x in (found.least, found.most))
        exceeding = Estimate(low, low, high, found.rows)
        alone = counted(found.alone, found.rows)
        yield Gained(criterion.name, criterion.column, 1 / least, alone, exceeding, told)


def _steps(plan: TablePlan) -> Iterator[Step]:
    return as_needed("tables/attacks/read_codes")


ATTACK = Attack("minimality", _left_out, _make, _steps)
