"""Criteria beyond k on the folded classes: statistics per class in SQL, then verdicts, for many nodes at once.

Only nodes whose classes of fewer than k rows stay within the limit come here: what fails k alone is closed already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import SqldeidError
from sqldeid.tables.check.overall import Sizes
from sqldeid.tables.check.passing_rows import survivors
from sqldeid.tables.check.refold import Refold
from sqldeid.tables.check.together import together
from sqldeid.tables.criteria import ClassCriterion, MConcealing, others_of, terms_of
from sqldeid.tables.criteria.bounds import UNIT
from sqldeid.tables.criteria.histograms import Histograms
from sqldeid.tables.criteria.knowledge import Cells, Profile, decide, profile
from sqldeid.tables.criteria.t_closeness import levels_of
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.fold.sensitive import Sensitive, code_name

if TYPE_CHECKING:
    from sqldeid.tables.criteria.delta_presence import DeltaPresence

Arms = Sequence[Mapping[str, Any]]

Split = tuple[str, tuple[str, ...]]
"""A sensitive column, and the other ones by which classes are split for it, too (none but for joint criteria)."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The judged classes of some nodes: node, words, size, forced (rows forced out below; 0 where the class passes).

    `cells` has their rows by sensitive value, for each column that criteria look at.
    """

    table: exp.Table
    words: tuple[exp.Identifier, ...]
    cells: Mapping[Split, exp.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sums:
    """Of a node's classes: rows that fail, rows forced out below, rows in classes below k; classes, sum of squares."""

    failing: int
    forced: int
    few: int
    classes: int
    squares: int


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
    k_map: int | None = None
    presence: DeltaPresence | None = None
    _respreads: dict[Split, Refold] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def tables(self) -> list[exp.Table]:
        """Classes split by sensitive values, and what was folded from them."""
        spread = [t for s in self.folded.sensitive for t in (s.spread_table, s.joint_table) if t is not None]
        cells = [] if self.folded.cells is None else [self.folded.cells]
        return [*cells, *spread, *(t for r in self._respreads.values() for t in r.rolled)]

    @property
    def units(self) -> int:
        """What the whole table has of what criteria count in a class: rows."""
        return self.folded.rows

    def verdicts(self, arms: Arms) -> Verdicts:
        """Judge every class of the nodes that the arms describe (`Checker.arm`, on the source's own fold)."""
        stats: dict[ClassCriterion, exp.Table] = {}
        cells = {split: self._counted(split, self._on_smallest(split, arms)) for split in self._splits()}
        for split, counted in cells.items():
            stats |= self._measured(split, arms, counted)
        beside = [] if self.concealing is None else [self._conceal(self.concealing, arms)]
        beside += [] if self.k_map is None else [self._mapped(arms, "mapped", k_map=self.k_map)]
        beside += [] if self.presence is None else [self._mapped(arms, "presence", **self.presence.sql)]
        table = self._judge(stats, beside)
        for made in (*dict.fromkeys(stats.values()), *beside):
            self._drop(made)
        return Verdicts(table, self.folded.words, cells)

    def keep_failing(self, arm: Mapping[str, Any]) -> exp.Table:
        """The failing classes of one node, as a table of words."""
        verdicts = self.verdicts([arm])
        words = list(self.folded.words)
        failing = self.engine.make(
            "tables/check/keep_failing", f"{self.name}_failing", verdicts=verdicts.table, words=words
        )
        self.drop(verdicts)
        return failing

    def blanked_pass(self, kept: exp.Table, failing: exp.Table, words: Sequence[dict[str, object]]) -> bool:
        """Whether the blanked rows, as the one class that they become, meet every criterion."""
        if self.concealing is not None and not self._conceals(self.concealing, kept, failing, words):
            return False
        if not self.criteria:
            return True
        stats: dict[ClassCriterion, exp.Table] = {}
        arm = {"id": 0, "groups": [{"word": w, "mask": 0} for w in self.folded.words]}
        for split in self._splits():
            merged = self.engine.make(
                "tables/check/merge_blanked",
                f"{self.name}_blanked",
                spread=self._spread(split),
                kept=kept,
                failing=failing,
                words=list(words),
                others=self._others(split),
            )
            stats |= self._measured(split, [{**arm, "spread": merged}])
        verdicts = Verdicts(self._judge(stats, []), self.folded.words)
        found = self.sums(verdicts).get(0)
        return found is not None and found.failing == 0

    def _conceals(
        self, criterion: MConcealing, kept: exp.Table, failing: exp.Table, words: Sequence[dict[str, object]]
    ) -> bool:
        """Whether no blanked row, in the one class that they become, has a risk above m."""
        known = self._known(criterion)
        cells = self.folded.cells or self.folded.table
        read = self.engine.ask(
            "tables/check/merge_known", cells=cells, kept=kept, failing=failing, words=list(words), known=list(known)
        )
        rows = read.column("c").to_numpy().astype(np.int64)
        values = np.zeros((len(rows), len(known)), dtype=np.int64)
        for j, name in enumerate(known):
            values[:, j] = read.column(name.name).to_numpy()
        one = Cells(np.zeros(len(rows), dtype=np.int64), values, rows)
        return not decide(one, [p for _, p in criterion.known], criterion.most).any()

    def profiles(self, arms: Arms) -> dict[int, Profile]:
        """The risks of every class and row by m-concealing, whatever its m: by node."""
        criterion = self.concealing
        if criterion is None:
            return {}
        known = self._known(criterion)
        read = self._cells(known, arms, self.k)
        node = read.column("node").to_numpy()
        cells, words = _cells_of(read, self.folded.words, known)
        found = {}
        for number in (int(arm["id"]) for arm in arms):
            mine = np.flatnonzero(node == number)
            owner = np.unique(words[mine], axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
            own = Cells(owner, cells.values[mine], cells.rows[mine])
            found[number] = profile(own, [p for _, p in criterion.known], float(criterion.inclusion), self.k)
        return found

    def _conceal(self, criterion: MConcealing, arms: Arms) -> exp.Table:
        """Words, size and forced of every class, by m-concealing: the rows above m are forced out below."""
        known = self._known(criterion)
        least = max(criterion.least_rows, self.k)
        read = self._cells(known, arms, least)
        forced = forced_rows(read, [w.name for w in self.folded.words], [s.name for s in known], criterion, least)
        return self.engine.put(f"{self.name}_concealing", forced)

    def _known(self, criterion: MConcealing) -> list[exp.Identifier]:
        number = {s.column.name: i for i, s in enumerate(self.folded.sensitive)}
        return [code_name(number[name]) for name, _ in criterion.known]

    def _cells(self, known: Sequence[exp.Identifier], arms: Arms, least: int) -> pa.Table:
        return self.engine.ask(
            "tables/check/list_cells",
            cells=self.folded.cells or self.folded.table,
            words=list(self.folded.words),
            known=list(known),
            nodes=list(arms),
            least=least,
        )

    def _splits(self) -> list[Split]:
        """What the criteria look at."""
        return list(dict.fromkeys(split_of(c) for c in self.criteria))

    def _sensitive(self, split: Split) -> Sensitive:
        return next(s for s in self.folded.sensitive if s.column.name == split[0])

    def _spread(self, split: Split) -> exp.Table | None:
        sensitive = self._sensitive(split)
        return sensitive.joint_table if split[1] else sensitive.spread_table

    def _others(self, split: Split) -> list[exp.Identifier]:
        return list(self._sensitive(split).others) if split[1] else []

    def _mapped(self, arms: Arms, kind: str, **asked: int) -> exp.Table:
        """Words, size and forced of every class, by k-map or δ-presence."""
        if self.folded.both is None:
            raise SqldeidError("the classes were not folded with their population")
        return self.engine.make(
            f"tables/check/judge_{kind}",
            f"{self.name}_{kind}",
            both=self.folded.both,
            words=list(self.folded.words),
            nodes=list(arms),
            k=self.k,
            **asked,
        )

    def _judge(self, stats: Mapping[ClassCriterion, exp.Table], beside: Sequence[exp.Table]) -> exp.Table:
        criteria = [self._parameters(c, stats[c]) for c in self.criteria]
        words = list(self.folded.words)
        return self.engine.make(
            "tables/check/judge_classes",
            f"{self.name}_verdicts",
            words=words,
            k=self.k,
            criteria=criteria,
            beside=list(beside),
            several=len(criteria) + len(beside) > 1,
        )

    def _counted(self, split: Split, arms: Arms) -> exp.Table:
        """Node, words, others, s and c of every class of some nodes."""
        words, grouped = self._by_group(split, arms)
        nodes, crossed = together(grouped, "spread")
        return self.engine.make(
            "tables/check/count_cells", f"{self.name}_cells", words=words, nodes=nodes, crossed=crossed
        )

    def _by_group(self, split: Split, arms: Arms) -> tuple[list[exp.Identifier], Arms]:
        """The words of classes and of the groups within them, and the arms that group by both."""
        others = self._others(split)
        whole = [{"word": o, "mask": -1} for o in others]
        return [*self.folded.words, *others], [{**arm, "groups": [*arm["groups"], *whole]} for arm in arms]

    def _on_smallest(self, split: Split, arms: Arms) -> Arms:
        """The arms with the table to judge each on."""
        if split not in self._respreads:
            spread = self._spread(split)
            if spread is None:
                raise SqldeidError("the classes were not split by a column that a criterion names")
            self._respreads[split] = Refold(
                self.engine, spread, self.folded.words, self._others(split), f"{self.name}_spread"
            )
        respread = self._respreads[split]
        respread.prepare(arms)
        return [{**arm, **respread.smallest(arm)} for arm in arms]

    def _measured(self, split: Split, arms: Arms, counted: exp.Table | None = None) -> dict[ClassCriterion, exp.Table]:
        """What every criterion of a split is judged by: common statistics, or a statement of its own."""
        mine = [c for c in self.criteria if split_of(c) == split]
        found = {c: self._by_itself(c, arms, counted) for c in mine if terms_of(c).statement}
        if len(found) < len(mine):
            stats = self._stats(split, arms, counted)
            found |= {c: stats for c in mine if c not in found}
        return found

    def _by_itself(self, criterion: ClassCriterion, arms: Arms, counted: exp.Table | None) -> exp.Table:
        """Node, words, size and forced of every class, by least and most shares of values, or by groups of them."""
        asked, whole = terms_of(criterion), self._sensitive(split_of(criterion)).rows
        common = {"words": list(self.folded.words), "nodes": list(arms), "counted": counted, "k": self.k}
        if asked.groups is None:
            bounds = criterion.bounds(whole)
            put = self.engine.put(f"{self.name}_bounds", pa.table(bounds.columns()))
            own: dict[str, object] = {"bounds": put, "needed": bounds.needed, "unit": UNIT}
        else:
            put = self.engine.put(f"{self.name}_levels", pa.table(levels_of(asked.groups, whole)))
            scale = self.units * len(asked.groups)
            own = {"levels": put, "num": asked.number.numerator, "den": asked.number.denominator, "scale": scale}
        statement = f"tables/check/{asked.statement}"
        judged = self.engine.make(statement, f"{self.name}_judged", rows=self.units, **common, **own)
        self._drop(put)
        return judged

    def _stats(self, split: Split, arms: Arms, counted: exp.Table | None = None) -> exp.Table:
        """Statistics of every class; of every group of it where the split is joint.

        Parameters
        ----------
        counted
            Node, words, s and c, where they were counted already; the arms then only name the nodes.
        """
        mine = [terms_of(c) for c in self.criteria if split_of(c) == split and not terms_of(c).statement]
        distances = {t.distance for t in mine} - {"none"}
        sensitive = self._sensitive(split)
        words, nodes = self._by_group(split, arms)
        return self.engine.make(
            "tables/check/count_spread",
            f"{self.name}_stats",
            words=words,
            nodes=nodes,
            most=max((t.greatest for t in mine), default=0),
            distance=distances.pop() if distances else "none",
            reference=sensitive.reference,
            rows=self.units,
            last=sensitive.values - 1,
            entropy=any(t.kind == "entropy" for t in mine),
            counted=counted,
        )

    def _parameters(self, criterion: ClassCriterion, stats: exp.Table) -> dict[str, object]:
        asked, joint = terms_of(criterion), bool(others_of(criterion))
        return {
            **asked.sql,
            "stats": stats,
            "fewer": asked.l - 1,
            "scale": self.units * asked.steps(self._sensitive(split_of(criterion)).values),
            "joint": joint,
            "k": 1 if joint else self.k,
        }

    @property
    def sees_all(self) -> bool:
        """Whether its verdicts have every class of a node, by rows."""
        return bool(self.criteria) and self.concealing is None and self.k_map is None and self.presence is None

    def sums(self, verdicts: Verdicts, k: int | None = None) -> dict[int, Sums]:
        """What the classes of each node come to; `k` is the judge's own unless another is asked for."""
        read = self.engine.rows("tables/check/sum_verdicts", verdicts=verdicts.table, k=self.k if k is None else k)
        return {row["node"]: Sums(**{f.name: int(row[f.name]) for f in fields(Sums)}) for row in read}

    def tightened(self, verdicts: Verdicts, arms: Arms) -> dict[int, int]:
        """Node → further rows forced out of every specialisation: all but the largest part of a class that can pass."""
        if not self.criteria or not arms:
            return {}
        node, size, before = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        forced = before
        for split in self._splits():
            read = self.engine.ask(
                "tables/check/list_spread",
                verdicts=verdicts.table,
                cells=verdicts.cells[split],
                words=list(self.folded.words),
                others=self._others(split),
                nodes=[int(str(arm["id"])) for arm in arms],
            )
            words = [w.name for w in self.folded.words]
            first, classes = _boundaries(read, ["node", *words], [o.name for o in self._others(split)])
            if not len(classes):
                return {}
            node, size, before = (read.column(c).to_numpy()[classes] for c in ("node", "size", "forced"))
            forced = before if len(forced) != len(before) else forced
            value, rows = (read.column(c).to_numpy().astype(np.int64) for c in ("s", "c"))
            groups, reference = Histograms(first, value, rows), self._sensitive(split).rows
            for criterion in (c for c in self.criteria if split_of(c) == split):
                lost = groups.size - survivors(criterion, groups, reference)
                forced = np.maximum(forced, np.add.reduceat(lost, np.searchsorted(first, classes)))
        forced = np.where(size - forced < self.k, size, forced)
        more = np.bincount(node, weights=forced - before)
        return {int(i): int(more[i]) for i in np.unique(node)}

    def sizes(self, verdicts: Verdicts) -> dict[int, Sizes]:
        """Node → how many classes have each size, and how many of these pass every criterion."""
        found: dict[int, Sizes] = {}
        for row in self.engine.rows("tables/check/size_verdicts", verdicts=verdicts.table):
            sizes = found.setdefault(row["node"], Sizes({}, {}))
            sizes.every[int(row["size"])], sizes.passing[int(row["size"])] = int(row["classes"]), int(row["passing"])
        return found

    def failing(self, verdicts: Verdicts, nodes: Mapping[int, int]) -> tuple[Ints, Ints, list[Ints]]:
        """The suppressed classes of some nodes: node, size, and one array per word.

        Parameters
        ----------
        nodes
            Number of each node → rows of a class that is released, where the criteria ask for no less.
        """
        asked = [{"id": number, "least": least} for number, least in nodes.items()]
        read = self.engine.ask(
            "tables/check/list_verdicts", verdicts=verdicts.table, nodes=asked, words=list(verdicts.words)
        )
        words = [read.column(w.name).to_numpy() for w in verdicts.words]
        owner, size = (read.column(c).to_numpy().astype(np.int64) for c in ("node", "size"))
        return owner, size, words

    def drop(self, verdicts: Verdicts) -> None:
        """Forget verdicts that were read."""
        for table in (verdicts.table, *verdicts.cells.values()):
            self._drop(table)

    def _drop(self, table: exp.Table) -> None:
        self.engine.drop(table)


def split_of(criterion: ClassCriterion) -> Split:
    """What a criterion looks at."""
    return criterion.column, others_of(criterion)


def _boundaries(read: pa.Table, classes: Sequence[str], others: Sequence[str]) -> tuple[Ints, Ints]:
    """Where groups, and where classes, begin among cells that are ordered by both."""
    new = np.zeros(len(read), dtype=np.bool_)
    new[:1] = True
    for name in classes:
        column = read.column(name).to_numpy()
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    for name in others:
        column = read.column(name).to_numpy()
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new), first


def _cells_of(read: pa.Table, words: Sequence[exp.Identifier], known: Sequence[exp.Identifier]) -> tuple[Cells, Ints]:
    """Cells (`list_cells`) of all nodes, without their owners, and the words of each."""
    rows = read.column("c").to_numpy().astype(np.int64)
    values = np.zeros((len(rows), len(known)), dtype=np.int64)
    for j, name in enumerate(known):
        values[:, j] = read.column(name.name).to_numpy()
    keys = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in words], axis=1)
    return Cells(np.zeros(len(rows), dtype=np.int64), values, rows), keys


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
