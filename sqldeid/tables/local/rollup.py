"""A release by local recoding with columns at one common level: what of it can be said there, else NULL.

Made of the released rows and the hierarchies alone, row by row, so it tells nothing that the release does not. A label
that is coarser than the level stays unsaid, whatever the source holds; so does a text that is a label of two levels
where these do not say the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.publish import ROLLED_UP_KIND, Note, Staging
from sqldeid.sql import column, identifier, literal, render
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.columns import QuasiIdentifier

Said = dict[str | None, str | None]
"""What each label of a column says at the common level; None where it cannot say."""


def said_at(q: QuasiIdentifier, hierarchy: Hierarchy, level: int, used: Sequence[int]) -> Said:
    """What each label that may be released says at a level.

    Parameters
    ----------
    used
        The levels of the column that layers use.
    """
    wanted = texts_at(q, hierarchy, level)
    readings: dict[str | None, set[str | None]] = {}
    for x in sorted(set(used)):
        for text, own in _by_text(texts_at(q, hierarchy, x), wanted).items():
            sure = len(own) == 1 and (x <= level or text in own)
            readings.setdefault(text, set()).add(next(iter(own)) if sure else None)
    return {text: next(iter(of)) if len(of) == 1 else None for text, of in readings.items()}


def texts_at(q: QuasiIdentifier, hierarchy: Hierarchy, level: int) -> list[str | None]:
    """The label of each leaf of a hierarchy at a level; shape (leaves,)."""
    labels = np.asarray(q.labels(hierarchy, level), dtype=object)[hierarchy.groups[level]]
    return [None if label is None else str(label) for label in labels.tolist()]


def _by_text(labels: Sequence[str | None], wanted: Sequence[str | None]) -> dict[str | None, set[str | None]]:
    found: dict[str | None, set[str | None]] = {}
    for text, at in zip(labels, wanted, strict=True):
        found.setdefault(text, set()).add(at)
    return found


class RollUp:
    """How the rows of a release are brought to common levels, as templates take it."""

    def __init__(
        self, planned: LocalPlan, nodes: Sequence[Node], hierarchies: Sequence[Hierarchy], engine: Engine
    ) -> None:
        self.planned, self.nodes, self.hierarchies, self.engine = planned, nodes, hierarchies, engine
        self.columns = [self._column(name) for name in planned.released]

    def stage(self, written: exp.Expr, staging: Staging) -> exp.Expr:
        """Write the rolled-up rows beside the release; what was written."""
        note = Note(self.planned.rolled_up_name, {"kind": ROLLED_UP_KIND, "of": self.planned.name}, self._comments())
        return staging.write(
            lambda target: render("tables/local/roll_up", target=target, release=written, columns=self.columns), note
        )

    def check(self, written: exp.Expr, rolled: exp.Expr) -> None:
        """Refuse rolled-up rows that are not those of the release.

        Raises
        ------
        VerificationError
            With how many differ.
        """
        key, name = self.planned.key, self.planned.rolled_up_name
        there = [c.name for c in self.engine.columns(rolled, key=key)]
        if there != self.planned.released:
            raise VerificationError.at(key, f"{name} has other columns than the release")
        found = self.engine.row("tables/local/compare_roll_up", rolled=rolled, release=written, columns=self.columns)
        if found["n"]:
            raise VerificationError.at(key, f"{name}: {found['n']:,} rows are not what the release says there")

    def _comments(self) -> dict[str, str]:
        levels = self.planned.roll_up
        return {name: f"at level {levels[name]}; NULL where the release is coarser and cannot say" for name in levels}

    def _column(self, name: str) -> dict[str, object]:
        """A released column, or what its label says at the common level."""
        shown = column(name, "s")
        made: dict[str, object] = {"name": identifier(name), "column": shown, "labels": None}
        if name not in self.planned.roll_up:
            return made
        index = next(i for i, q in enumerate(self.planned.table.qis) if q.name == name)
        q, hierarchy, level = self.planned.table.qis[index], self.hierarchies[index], self.planned.roll_up[name]
        if self.planned.typed(self.nodes)[index]:
            if level == 0:
                return made
            wanted = texts_at(q, hierarchy, level)
            values = {v: wanted[leaf] for v, leaf in zip(hierarchy.values.to_pylist(), hierarchy.leaf, strict=True)}
            there = hierarchy.values.filter(hierarchy.values.is_valid())
            rows = {"value": there, "label": pa.array([values[v] for v in there.to_pylist()], pa.string())}
            null, kind = values.get(None), q.travel_type
        else:
            said = said_at(q, hierarchy, level, [node[index] for node in self.nodes])
            named = [text for text in said if text is not None]
            rows = {"value": pa.array(named, pa.string()), "label": pa.array([said[t] for t in named], pa.string())}
            null, kind = said.get(None), exp.DataType.build("varchar", dialect="duckdb")
        labels = self.engine.put(f"{self.planned.name}_said_{index}", pa.table(rows))
        alias = identifier(f"m{index}")
        return {**made, "labels": labels, "alias": alias, "type": kind, "null_label": literal(null)}
