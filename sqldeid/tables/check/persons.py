"""Classes whose persons may have many rows (`rows = "many"`): folded with their persons, and judged by them.

k counts the different persons of a class, which only grow when classes are merged, so a class with fewer than k of them
is suppressed at every finer node, too. Of criteria beyond k nothing of the kind holds: two classes that pass may share
persons, and fail as one; what fails them forces nothing out below (`privacy.persons`).

Cost: the fold has a row for each person in each combination. A person all of whose rows are in one combination needs
none of its own, which leaves those whose rows differ; the classes of a node take two groupings of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.errors import SqldeidError
from sqldeid.sql import Fixed, identifier
from sqldeid.tables.check.judge import Arms, Judge, Split, Verdicts
from sqldeid.tables.check.refold import Refold
from sqldeid.tables.criteria import ClassCriterion


@dataclass(frozen=True, slots=True)
class PersonJudge(Judge):
    """Judges classes by their persons: k of them, and every criterion among values that each person counts for once."""

    _settled: dict[str, Resettled] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def tables(self) -> list[exp.Table]:
        """Classes with their persons, those split by sensitive values, and what was folded from them."""
        pairs = [] if self.folded.pairs is None else [self.folded.pairs]
        spread = [s.spread_table for s in self.folded.sensitive if s.spread_table is not None]
        return [*pairs, *spread, *(t for kept in self._settled.values() for t in kept.rolled)]

    @property
    def units(self) -> int:
        """Persons of the whole table."""
        return self.folded.persons

    @property
    def sees_all(self) -> bool:
        """Never: its verdicts are by persons."""
        return False

    def verdicts(self, arms: Arms) -> Verdicts:
        """Judge every class of the nodes that the arms describe."""
        sized = self.sized(arms)
        judged = self._judged(arms, sized) if self.criteria else None
        words = list(self.folded.words)
        table = self.engine.make(
            "tables/check/judge_persons", f"{self.name}_verdicts", sized=sized, words=words, k=self.k, judged=judged
        )
        for made in filter(None, (sized, judged)):
            self._drop(made)
        return Verdicts(table, self.folded.words)

    def tightened(self, verdicts: Verdicts, arms: Arms) -> dict[int, int]:
        """Nothing: what fails a criterion beyond k may pass in parts, however small they are."""
        return {}

    def sized(self, arms: Arms) -> exp.Table:
        """Node, words, persons and size (rows) of every class of some nodes."""
        words = list(self.folded.words)
        nodes = [{**arm, "pairs": t} for arm, t in self._tables_for("", self.folded.pairs, arms)]
        return self.engine.make("tables/check/size_persons", f"{self.name}_sized", words=words, nodes=nodes)

    def histogram(self, arm: Mapping[str, Any]) -> dict[int, tuple[int, int]]:
        """Persons of a class → classes with so many, and rows in them; of one node."""
        sized = self.sized([arm])
        read = self.engine.rows("tables/check/count_persons_sizes", sized=sized)
        self._drop(sized)
        return {int(r["persons"]): (int(r["classes"]), int(r["size"])) for r in read}

    def rows_below(self, arms: Arms, limits: Sequence[int]) -> dict[int, list[int]]:
        """Node → rows in classes of fewer persons than each limit."""
        sized = self.sized(arms)
        read = self.engine.rows("tables/check/sum_persons_below", sized=sized, limits=list(limits))
        self._drop(sized)
        found = {int(str(arm["id"])): [0] * len(limits) for arm in arms}
        for row in read:
            found[int(row["node"])][int(row["place"])] = int(row["size"])
        return found

    def persons_of(self, arm: Mapping[str, Any], word: int) -> tuple[Ints, Ints]:
        """The masked codes in one word of a node's classes, and the persons of each class."""
        sized = self.sized([arm])
        read = self.engine.ask("tables/check/read_sized", sized=sized, word=self.folded.words[word])
        self._drop(sized)
        return read.column("code").to_numpy().astype(np.int64), read.column("persons").to_numpy().astype(np.int64)

    def _judged(self, arms: Arms, sized: exp.Table) -> exp.Table:
        """Every class as each criterion sees it: as large as it has persons."""
        stats: dict[ClassCriterion, exp.Table] = {}
        for split in self._splits():
            trimmed = self._trimmed(split, arms, sized)
            stats |= self._measured(split, arms, counted=trimmed)
            self._drop(trimmed)
        table = self._judge(stats, [])
        for made in dict.fromkeys(stats.values()):
            self._drop(made)
        return table

    def _trimmed(self, split: Split, arms: Arms, sized: exp.Table) -> exp.Table:
        words = list(self.folded.words)
        nodes = [{**arm, "spread": t} for arm, t in self._tables_for(split[0], self._spread(split), arms)]
        return self.engine.make(
            "tables/check/trim_spread", f"{self.name}_trimmed", sized=sized, words=words, nodes=nodes
        )

    def _tables_for(
        self, column: str, table: exp.Table | None, arms: Arms
    ) -> Iterator[tuple[Mapping[str, Any], Fixed]]:
        """Each arm with the smallest table of persons that holds its classes, split by a column where one is named."""
        if table is None:
            raise SqldeidError("the classes were not folded with their persons")
        if column not in self._settled:
            others = [identifier("s")] if column else []
            self._settled[column] = Resettled(self.engine, table, self.folded.words, others, f"{self.name}_settled")
        kept = self._settled[column]
        kept.prepare(arms)
        yield from ((arm, kept.table(arm)) for arm in arms)


class Resettled(Refold):
    """The tables of persons to judge nodes on; `others` is the sensitive column by which they are split, if any."""

    def _roll_up(self, table: exp.Table, source: exp.Table, groups: list[dict[str, object]]) -> None:
        every = [*groups, *({"word": o, "mask": -1} for o in self.others)]
        self.engine.run("tables/fold/settle_pairs", settled=table, pairs=source, groups=every, again=True)
