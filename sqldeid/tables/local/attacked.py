"""A release by local recoding as attacks see it (`sqldeid.tables.attacks`)."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from sqlglot import exp

from sqldeid.tables.attacks.base import Attacked, Recoded
from sqldeid.tables.attacks.folding import fold_attacked
from sqldeid.tables.attacks.run import hierarchies_of
from sqldeid.tables.local.layers import SUPPRESSED, Layered
from sqldeid.tables.local.remade import Remade


def attacked_of(layered: Layered, written: exp.Expr, remade: Remade | None) -> Attacked:
    """A release that was written and verified. Cost: no statement.

    Parameters
    ----------
    remade
        The release of fewer persons on its way; None beside a ledger, or where it failed before.
    """
    plan, folded, layers, engine = layered.planned.table, layered.folded, layered.layers, layered.engine
    rows = layers.problem.rows

    def read() -> Recoded:
        level = np.where(layers.released, layers.levels, SUPPRESSED)
        return Recoded(layered.found.leaves, rows, level, layers.owner, *hierarchies_of(folded.columns))

    return Attacked(
        plan=plan,
        engine=engine,
        source=folded.source,
        written=written,
        rows=int(rows.sum()),
        released=int(rows[layers.released].sum()),
        k=plan.demands.k,
        kind="local",
        columns=folded.columns,
        read=cache(read),
        known=cache(partial(fold_attacked, plan, folded, engine)) if remade is None else lambda: remade.known,
        remake=None if remade is None else remade.released,
        drawn=None if remade is None else remade.drawn,
    )
