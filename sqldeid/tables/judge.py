"""Criteria beyond k on the folded classes: statistics per class in SQL, then verdicts, for many nodes at once.

Only nodes whose classes of fewer than k rows stay within the limit come here: what fails k alone is closed already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.sql import identifier, render
from sqldeid.tables.concealing import Cells, decide
from sqldeid.tables.evaluation import Counts
from sqldeid.tables.fold import Folded
from sqldeid.tables.privacy import ClassCriterion, MConcealing
from sqldeid.tables.privacy.l_diversity import RecursiveLDiversity
from sqldeid.tables.privacy.t_closeness import TCloseness
from sqldeid.tables.sensitive import Sensitive

Arms = Sequence[dict[str, object]]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The judged classes of some nodes: node, words, size, forced (rows forced out below; 0 where the class passes)."""

    table: exp.Table
    words: tuple[exp.Identifier, ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """Applies all criteria of a release to classes.

    Parameters
    ----------
    criteria
        Beyond k-anonymity; combined by AND, a class that fails one is suppressed as a whole.
    """

    engine: Engine
    folded: Folded
    k: int
    criteria: tuple[ClassCriterion, ...]
    name: str
    concealing: MConcealing | None = None

    def verdicts(self, arms: Arms) -> Verdicts:
        """Judge every class of the nodes that the arms describe (`Checker.arm`, on the source's own fold)."""
        asked = {c.column for c in self.criteria}
        stats = {
            s.column.name: self._stats(s, s.spread_table, arms) for s in self.folded.sensitive if s.column.name in asked
        }
        hidden = None if self.concealing is None else self._conceal(self.concealing, arms)
        table = self._judge(stats, hidden)
        for made in (*stats.values(), *([] if hidden is None else [hidden])):
            self._drop(made)
        return Verdicts(table, self.folded.words)

    def keep_failing(self, arm: dict[str, object]) -> exp.Table:
        """The failing classes of one node, as a table of words."""
        verdicts = self.verdicts([arm])
        failing = self.engine.workbench(f"{self.name}_failing")
        words = list(self.folded.words)
        self.engine.execute(render("tables/keep_failing", failing=failing, verdicts=verdicts.table, words=words))
        self.drop(verdicts)
        return failing

    def blanked_pass(self, kept: exp.Table, failing: exp.Table, words: Sequence[dict[str, object]]) -> bool:
        """Whether the blanked rows, as the one class that they become, meet every criterion."""
        if self.concealing is not None:
            return False  # dropping them is sound, whatever they would be together
        stats = {}
        arm = {"id": 0, "groups": [{"word": w, "mask": 0} for w in self.folded.words]}
        for s in self.folded.sensitive:
            merged = self.engine.workbench(f"{self.name}_blanked")
            self.engine.execute(
                render(
                    "tables/merge_blanked",
                    merged=merged,
                    spread=s.spread_table,
                    kept=kept,
                    failing=failing,
                    words=list(words),
                )
            )
            stats[s.column.name] = self._stats(s, merged, [arm])
        verdicts = Verdicts(self._judge(stats, None), self.folded.words)
        return self.sums(verdicts).get(0, (1, 1))[0] == 0

    def _conceal(self, criterion: MConcealing, arms: Arms) -> exp.Table:
        """Words, size and forced of every class, by m-concealing: the rows above m are forced out below."""
        number = {s.column.name: i for i, s in enumerate(self.folded.sensitive)}
        known = [identifier(f"s{number[name]}") for name, _ in criterion.known]
        least = max(criterion.least_rows, self.k)
        read = self.engine.query(
            render(
                "tables/list_cells",
                cells=self.folded.cells or self.folded.table,
                words=list(self.folded.words),
                known=known,
                nodes=list(arms),
                least=least,
            )
        )
        forced = forced_rows(read, [w.name for w in self.folded.words], [s.name for s in known], criterion, least)
        return self.engine.put(f"{self.name}_concealing", forced)

    def _judge(self, stats: dict[str, exp.Table], hidden: exp.Table | None) -> exp.Table:
        table = self.engine.workbench(f"{self.name}_verdicts")
        by_name = {s.column.name: s for s in self.folded.sensitive}
        criteria = [self._parameters(c, by_name[c.column], stats[c.column]) for c in self.criteria]
        words = list(self.folded.words)
        self.engine.execute(
            render("tables/judge_classes", verdicts=table, words=words, k=self.k, criteria=criteria, hidden=hidden)
        )
        return table

    def _stats(self, sensitive: Sensitive, spread: exp.Table | None, arms: Arms) -> exp.Table:
        mine = [c for c in self.criteria if c.column == sensitive.column.name]
        distances = {c.distance for c in mine if isinstance(c, TCloseness)}
        stats = self.engine.workbench(f"{self.name}_stats")
        self.engine.execute(
            render(
                "tables/count_spread",
                stats=stats,
                words=list(self.folded.words),
                nodes=list(arms),
                spread=spread,
                most=max((c.l - 1 for c in mine if isinstance(c, RecursiveLDiversity)), default=0),
                distance=distances.pop() if distances else "none",
                reference=sensitive.reference,
                rows=self.folded.rows,
                last=sensitive.values - 1,
            )
        )
        return stats

    def _parameters(self, criterion: ClassCriterion, sensitive: Sensitive, stats: exp.Table) -> dict[str, object]:
        number, scale, least = Fraction(0), 0, 0
        if isinstance(criterion, TCloseness):
            steps = max(sensitive.values - 1, 1) if criterion.distance == "ordered" else 1
            number, scale = criterion.t, self.folded.rows * steps
        else:
            least = criterion.l
        if isinstance(criterion, RecursiveLDiversity):
            number = criterion.c
        num, den = number.numerator, number.denominator
        return {
            "stats": stats,
            "kind": criterion.kind,
            "l": least,
            "fewer": least - 1,
            "num": num,
            "den": den,
            "scale": scale,
        }

    def sums(self, verdicts: Verdicts) -> dict[int, tuple[int, int]]:
        """Node → rows in failing classes, and rows forced out of every specialisation."""
        read = self.engine.query(render("tables/sum_verdicts", verdicts=verdicts.table)).to_pylist()
        return {row["node"]: (int(row["failing"]), int(row["forced"])) for row in read}

    def failing(self, verdicts: Verdicts, nodes: Sequence[int]) -> tuple[Counts, Counts, list[Counts]]:
        """The failing classes of some nodes: node, size, and one array per word."""
        read = self.engine.query(
            render("tables/list_verdicts", verdicts=verdicts.table, nodes=list(nodes), words=list(verdicts.words))
        )
        words = [read.column(w.name).to_numpy() for w in verdicts.words]
        owner, size = (read.column(c).to_numpy().astype(np.int64) for c in ("node", "size"))
        return owner, size, words

    def drop(self, verdicts: Verdicts) -> None:
        """Forget verdicts that were read."""
        self._drop(verdicts.table)

    def _drop(self, table: exp.Table) -> None:
        self.engine.execute(render("engine/drop_table", table=table))


def forced_rows(
    read: pa.Table, words: Sequence[str], known: Sequence[str], criterion: MConcealing, least: int
) -> pa.Table:
    """Node, words, size and forced of every class, from its cells (`list_cells`)."""
    names = ["node", *words]
    keys = np.stack([read.column(n).to_numpy().astype(np.int64) for n in names], axis=1)
    classes, owner = np.unique(keys, axis=0, return_inverse=True)
    owner = owner.reshape(-1).astype(np.int64)
    size, rows = (read.column(n).to_numpy().astype(np.int64) for n in ("size", "c"))
    sizes = np.zeros(len(classes), dtype=np.int64)
    sizes[owner] = size
    at = np.flatnonzero(size >= least)
    values = np.zeros((len(at), len(known)), dtype=np.int64)
    for j, name in enumerate(known):
        values[:, j] = read.column(name).to_numpy()[at]
    above = decide(Cells(owner[at], values, rows[at]), [p for _, p in criterion.known], criterion.most)
    forced = np.bincount(owner[at], weights=rows[at] * above, minlength=len(classes)).astype(np.int64)
    forced = np.where(sizes < least, sizes, forced)
    columns = {name: classes[:, i] for i, name in enumerate(names)}
    return pa.table({**columns, "size": sizes, "forced": forced})
