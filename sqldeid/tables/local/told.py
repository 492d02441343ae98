"""A table beside a release by local recoding that tells what each label says at each level that is no finer.

With it a reader who has the release alone brings a column to a level of choice, which `roll_up` does for those that the
job chose. It names labels that released rows show, and what the hierarchies say of these: never a value that no row
shows, whether the source holds it or not. So it tells nothing that the release and its hierarchies do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.publish import HIERARCHIES_KIND, Note, Staging
from sqldeid.sql import column, render
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.rollup import said_at, texts_at
from sqldeid.tables.model.lattice import Node

TOLD = ("column_name", "label", "level", "level_name", "says")
"""Columns of the table."""

COMMENTS = {
    "column_name": "a quasi-identifying column of the release",
    "label": "what its rows show; of a column with a type of its own the value as text",
    "level": "a level of the hierarchy, 0 as in the source",
    "level_name": "what the level is called",
    "says": "what the label says at that level; where it is coarser than the level there is no row",
}

_Row = tuple[str, str | None, int, str, str]


class Told:
    """What the labels of a release say."""

    def __init__(
        self, planned: LocalPlan, nodes: Sequence[Node], hierarchies: Sequence[Hierarchy], engine: Engine
    ) -> None:
        self.planned, self.nodes, self.hierarchies, self.engine = planned, nodes, hierarchies, engine

    def stage(self, written: exp.Expr, staging: Staging) -> exp.Expr:
        """Write the table beside the release; what was written."""
        found = [(place, *row) for place, row in enumerate(self._rows(written))]
        types = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.string(), pa.string())
        columns = zip(("place", *TOLD), types, strict=True)
        rows = {name: pa.array([row[i] for row in found], kind) for i, (name, kind) in enumerate(columns)}
        table = self.engine.put(f"{self.planned.name}_told", pa.table(rows))
        note = Note(self.planned.hierarchies_name, {"kind": HIERARCHIES_KIND, "of": self.planned.name}, COMMENTS)
        return staging.write(lambda target: render("tables/local/write_hierarchies", target=target, told=table), note)

    def check(self, written: exp.Expr, told: exp.Expr) -> None:
        """Refuse a table that is not what the release and the hierarchies say.

        Raises
        ------
        VerificationError
            With how many rows differ.
        """
        key, name = self.planned.key, self.planned.hierarchies_name
        if [c.name for c in self.engine.columns(told, key=key)] != list(TOLD):
            raise VerificationError.at(key, f"{name} has other columns than {', '.join(TOLD)}")
        there = [tuple(row.values()) for row in self.engine.rows("tables/local/read_hierarchies", told=told)]
        wanted = self._rows(written)
        differ = len(set(there) ^ set(wanted)) or abs(len(there) - len(wanted))
        if differ:
            raise VerificationError.at(key, f"{name}: {differ:,} rows are not what the release and hierarchies say")

    def _rows(self, written: exp.Expr) -> list[_Row]:
        """The rows by column, level and label."""
        found: list[_Row] = []
        for i, (q, hierarchy) in enumerate(zip(self.planned.table.qis, self.hierarchies, strict=True)):
            labels, used = self._shown(i, written), [node[i] for node in self.nodes]
            for level, named in enumerate(hierarchy.level_names):
                said = said_at(q, hierarchy, level, used)
                found += [(q.name, t, level, named, s) for t in labels if (s := said.get(t)) is not None]
        return found

    def _shown(self, index: int, written: exp.Expr) -> list[str | None]:
        """The labels that released rows show of a column, NULL last."""
        q, hierarchy, labels = self.planned.table.qis[index], self.hierarchies[index], None
        if self.planned.typed(self.nodes)[index]:
            texts, there = texts_at(q, hierarchy, 0), hierarchy.values.is_valid()
            shown = pa.array([texts[leaf] for leaf in hierarchy.leaf.tolist()], pa.string())
            rows = pa.table({"value": hierarchy.values, "label": shown}).filter(there)
            labels = self.engine.put(f"{self.planned.name}_texts_{index}", rows)
        read = self.engine.ask(
            "tables/local/list_labels", release=written, column=column(q.name, "s"), labels=labels, type=q.travel_type
        )
        return sorted(read.column("label").to_pylist(), key=lambda t: (t is None, t or ""))
