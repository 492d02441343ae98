"""What is attacked, and what an attack is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Flags, Ints
from sqldeid.attacked import Achieved
from sqldeid.engine.base import Engine
from sqldeid.stages import Step
from sqldeid.tables.attacks.control import Controlled, Drawn
from sqldeid.tables.attacks.known import Known, Remake
from sqldeid.tables.fold.fold import Coded
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.plan import TablePlan

SUPPRESSED = -1

HELD_BACK = "a ledger or a link to series held rows back, so that its classes are not those that levels were chosen for"
"""Why an attack is left out that takes the released classes for those of the search."""

MOST_ROWS = 1_000_000
"""Rows beyond which an attack takes a sample."""


@dataclass(frozen=True, slots=True)
class Recoded:
    """The source's combinations of quasi-identifying values with what became of each; for the attacker's success alone.

    An attacker does not have these: he has classes. They tell how often he is right, and what classes look like.

    Parameters
    ----------
    leaf
        Leaf of the column's hierarchy; shape (columns, combinations).
    rows
        Rows of each combination; shape (combinations,).
    level
        Level at which it is released, `SUPPRESSED` where it is not; shape (columns, combinations).
    owner
        Number of its class from 0 on, `SUPPRESSED` where it has none; shape (combinations,).
    groups
        Per column and level, the group of each leaf of the hierarchy.
    public
        Per column, whether readers know all leaves: false where the hierarchy was made from the values that are there.
    """

    leaf: Ints
    rows: Ints
    level: Ints
    owner: Ints
    groups: tuple[tuple[Ints, ...], ...]
    public: tuple[bool, ...]

    @property
    def released(self) -> Flags:
        """Whether each combination is released."""
        return np.asarray(self.owner != SUPPRESSED)

    @property
    def sizes(self) -> Ints:
        """Rows of each class; shape (classes,)."""
        here = self.released
        return np.bincount(self.owner[here], weights=self.rows[here]).astype(np.int64)


def _no_control() -> Controlled | str:
    return "nobody was held out of it"


@dataclass(frozen=True, slots=True)
class Attacked:
    """A release that was written and verified, with its source.

    Parameters
    ----------
    plan
        As it was released: with the m that was found.
    source
        The rows that the plan names, after its filter; as they were folded, before anything was disguised.
    written
        The release: released columns as `plan.released` names them.
    rows, released
        Rows of the source and of the release.
    k
        That it was released by (greater than asked with `inverse-ola`).
    kind
        One node for all rows, or levels of each class's own.
    node
        The levels of a full-domain release; None for a local one.
    columns
        Each quasi-identifying column, with its hierarchy bound to the values that are there.
    whole
        Whether all that criteria let pass was released: false where a ledger held rows back, or a link to series.
    anew
        Whether levels were chosen from these rows: false where an earlier release's were used again.
    proven
        Whether levels are what the job's method always finds: for a full-domain release the proven optimum, for a local
        one that no time limit ended it.
    beyond
        Rows in classes of k and more that were suppressed, where the node is chosen by k alone.
    exact
        Its loss in units of `sqldeid.tables.model.loss`, of a full-domain release.
    known
        The source by quasi-identifying and attacked values; None where its classes cannot be brought to the bench. Read
        when first asked for, then kept. Cost: `sqldeid.tables.attacks.folding.fold_attacked`.
    remake
        Makes the release once more of fewer persons; None where that is not known.
    drawn
        Who is held out, where that was drawn before; else it is drawn when an attack asks for it.
    control
        What attacks with a control group achieve, or why they are not made; found when first asked for, then kept.
    far
        Whether its combinations stay in the source engine, for they are too many; then none of them is read.
    spared
        The attacks that are left out, each with the reason: they failed before.
    read
        The combinations; read from the bench when first asked for, then kept. Cost: one statement, of as many rows as
        there are combinations; none for a local release.
    """

    plan: TablePlan
    engine: Engine
    source: exp.Expr
    written: exp.Expr
    rows: int
    released: int
    k: int
    kind: Literal["full-domain", "local"]
    columns: tuple[Coded, ...]
    read: Callable[[], Recoded]
    node: Node | None = None
    whole: bool = True
    anew: bool = True
    proven: bool = True
    beyond: int = 0
    exact: int | None = None
    known: Callable[[], Known] | None = None
    remake: Remake | None = None
    drawn: Drawn | None = None
    control: Callable[[], Controlled | str] = _no_control
    far: bool = False
    spared: Mapping[str, str] = field(default_factory=dict)


def _no_steps(_: TablePlan) -> Iterator[Step]:
    return iter(())


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack.

    Parameters
    ----------
    name
        Its field in `sqldeid.attacked.Attacks`.
    left_out
        Why it is not made on a release, in words that hold no data value; empty where it is made.
    make
        What it achieves.
    steps
        The statements that it runs, for `--plan`.
    """

    name: str
    left_out: Callable[[Attacked], str]
    make: Callable[[Attacked], Achieved]
    steps: Callable[[TablePlan], Iterator[Step]] = _no_steps
