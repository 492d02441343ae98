"""Nodes → SQL → evaluations: many nodes in one statement, on the folded classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.sql import Fixed, fix, load
from sqldeid.tables.check.judge import Judge, Sums, Verdicts
from sqldeid.tables.check.overall import Sizes, under
from sqldeid.tables.check.rollup import Rollups
from sqldeid.tables.check.together import together
from sqldeid.tables.criteria import OverallRisk
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.model.evaluation import Evaluation, admissible, log_leaves
from sqldeid.tables.model.lattice import Node

NODES_PER_STATEMENT = 64
"""Longer statements cost more to plan than they save in round trips."""

GROUPED_CLASSES = 20_000_000
"""Classes, times nodes, that one statement groups: DuckDB groups them all at once, and would spill all of them."""

LISTED_ROWS = 3_000_000
"""Suppressed rows, times nodes, whose classes one statement lists: as many at most are in memory here."""

JUDGED_CLASSES = 3_000_000
"""Classes of the source, times nodes, that one statement about sensitive values takes: it holds them all at once."""

STRAIGHT = 0.9
"""Share of nodes with few enough classes below k from which all criteria are asked at once: the statement about k alone
would repeat what theirs tells. Under t-closeness it takes a quarter of their time: a node that k alone closes costs
four of it."""


Weighed = tuple[tuple[int, ...], tuple[int, ...]]
"""Of suppressed rows, by column: sum of leaves less one, and sum of their logarithms."""


@dataclass(slots=True)
class Checker:
    """`evaluate` of the search, answered by the engine; one statement for a batch, a second for what passes.

    Parameters
    ----------
    allowed
        Most rows that may be suppressed; only admissible nodes are asked for their suppressed leaves.
    hopeless
        Whether a node that suppresses so many rows cannot be the answer; it is not asked for its suppressed leaves.
    overall
        What all released classes must meet together; it is asked of nodes that the other criteria leave admissible.
    """

    engine: Engine
    folded: Folded
    k: int
    allowed: int
    name: str
    judge: Judge | None = None
    hopeless: Callable[[Node, int], bool] | None = None
    overall: OverallRisk | None = None
    _leaves: dict[tuple[int, int], tuple[Ints, Ints, Ints]] = field(default_factory=dict, init=False)
    """By column and level: the groups' prefixes, ascending, their leaves less one, and the logarithms of these."""
    _rollups: Rollups = field(init=False)
    _words: tuple[Fixed, ...] = field(init=False)
    _asked: float = field(default=0, init=False)
    _passed: float = field(default=0, init=False)
    """Of the nodes asked for, those that k alone leaves admissible; the last ones count most."""

    def __post_init__(self) -> None:
        self._rollups = Rollups(self.engine, self.folded, self.name)
        self._words = tuple(fix(w) for w in self.folded.words)
        for template in ("tables/check/check_nodes", "tables/check/list_failing"):
            load(template)  # parsed here, once, rather than between two answers

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        """Check nodes, in their order."""
        done: list[Evaluation] = []
        for start in range(0, len(nodes), NODES_PER_STATEMENT):
            done += self._batch(nodes[start : start + NODES_PER_STATEMENT], histogram)
        return done

    def prepare(self, nodes: Sequence[Node]) -> None:
        """Have smaller tables ready for a batch, where that pays."""
        self._rollups.prepare(nodes)

    def near(self, node: Node) -> Checker:
        """What has the node's classes at hand: this one, unless they are spread over several (`Bases`)."""
        return self

    def drop(self) -> None:
        """Drop the classes that were checked on, and all that was rolled up from them."""
        tables = [*self._rollups.tables, *([] if self.judge is None else self.judge.tables)]
        for table in tables:
            self.engine.drop(table)

    def _batch(self, nodes: Sequence[Node], histogram: bool) -> list[Evaluation]:
        if self.judge is not None and not histogram and self._goes_straight(self.judge):
            return self._judged_straight(nodes, self.judge)
        self.prepare(nodes)
        arms = [self.arm(i, node) for i, node in enumerate(nodes)]
        rows: list[dict[str, int]] = []
        sizes: dict[int, dict[int, int]] = {}
        for some in portions([self._rollups.size(node) for node in nodes], GROUPED_CLASSES):
            asked = [arms[i] for i in some]
            alone, crossed = together(asked, "classes")
            words = list(self.folded.words)
            rows += self.engine.rows("tables/check/check_nodes", nodes=alone, crossed=crossed, words=words, k=self.k)
            sizes |= self._histograms(asked) if histogram else {}
        found = {
            int(row["node"]): Evaluation(
                nodes[row["node"]],
                core_failing=int(row["failing"]),
                failing=int(row["failing"]),
                classes=int(row["classes"]),
                squares=int(row["squares"]),
                histogram=sizes.get(int(row["node"])),
            )
            for row in rows
        }
        ordered = [found[i] for i in range(len(nodes))]
        if self.judge is not None:
            return self._judged(ordered, nodes, self.judge)
        return self._weighed(self._overall(ordered, arms), arms)

    def _overall(self, found: list[Evaluation], arms: Sequence[dict[str, object]]) -> list[Evaluation]:
        """What the admissible nodes suppress for their released classes together, where these are judged by k alone."""
        ask = [i for i, e in enumerate(found) if admissible(e, self.allowed)]
        if self.overall is None or not ask:
            return found
        judged = list(found)
        sizes: dict[int, dict[int, int]] = {}
        for some in portions([self._rollups.size(found[i].node) for i in ask], GROUPED_CLASSES):
            sizes |= self._histograms([arms[ask[i]] for i in some])
        for i in ask:
            judged[i] = under(self.overall, found[i], Sizes(sizes.get(i, {}), sizes.get(i, {})), self.k)
        return judged

    def _judged(self, found: list[Evaluation], nodes: Sequence[Node], judge: Judge) -> list[Evaluation]:
        """Apply the criteria beyond k where k alone leaves a node in the running."""
        ask = [i for i, e in enumerate(found) if admissible(e, self.allowed)]
        self._note(len(found), len(ask))
        judged = list(found)
        for some in self._portions_judged(ask):
            verdicts = judge.verdicts([self.arm(i, nodes[i]) for i in some])
            self._apply(judged, some, judge, verdicts, judge.sums(verdicts))
        return judged

    def _judged_straight(self, nodes: Sequence[Node], judge: Judge) -> list[Evaluation]:
        """Apply all criteria at once; the evaluations are those of `_judged`, k alone closes the same nodes."""
        judged: list[Evaluation] = []
        for some in self._portions_judged(range(len(nodes))):
            verdicts = judge.verdicts([self.arm(i, nodes[i]) for i in some])
            sums = judge.sums(verdicts, self.k)
            judged += [Evaluation(nodes[i], s.few, s.few, s.classes, s.squares) for i in some for s in (sums[i],)]
            ask = [i for i in some if admissible(judged[i], self.allowed)]
            self._note(len(some), len(ask))
            self._apply(judged, ask, judge, verdicts, sums)
        return judged

    def _goes_straight(self, judge: Judge) -> bool:
        """Whether k alone has hardly closed a node so far."""
        known = self._asked > 0 and self.folded.size > 0
        return known and judge.sees_all and self._passed >= STRAIGHT * self._asked

    def _note(self, asked: int, passed: int) -> None:
        """Remember how many nodes k alone left admissible; of earlier statements half as much counts each time."""
        self._asked, self._passed = self._asked / 2 + asked, self._passed / 2 + passed

    def _portions_judged(self, numbers: Sequence[int]) -> Iterator[Sequence[int]]:
        """As many nodes as one statement about sensitive values takes."""
        at_once = max(1, JUDGED_CLASSES // max(self.folded.size, 1))
        return (numbers[start : start + at_once] for start in range(0, len(numbers), at_once))

    def _apply(
        self,
        judged: list[Evaluation],
        ask: Sequence[int],
        judge: Judge,
        verdicts: Verdicts,
        sums: Mapping[int, Sums],
    ) -> None:
        """Replace the evaluations of some nodes by those under all criteria."""
        ask = [i for i in ask if i in sums]  # without rows there are no classes
        nodes = {i: judged[i].node for i in ask}
        loose = [i for i in ask if sums[i].forced < sums[i].failing and sums[i].forced <= self.allowed]
        more = judge.tightened(verdicts, [self.arm(i, nodes[i]) for i in loose])
        for i in ask:
            forced = sums[i].forced + more.get(i, 0)
            judged[i] = replace(judged[i], failing=sums[i].failing, core_failing=forced)
        if self.overall is not None:
            sizes = judge.sizes(verdicts)
            for i in (i for i in ask if admissible(judged[i], self.allowed)):
                judged[i] = under(self.overall, judged[i], sizes.get(i, Sizes({}, {})), self.k)
        passing = [i for i in ask if self._may_win(judged[i])]
        least = {i: judged[i].least for i in passing}
        weighed = self.weigh_classes(passing, nodes, *judge.failing(verdicts, least)) if passing else {}
        judge.drop(verdicts)
        for i, leaves in weighed.items():
            judged[i] = replace(judged[i], suppressed_leaves=leaves[0], suppressed_logs=leaves[1])

    def nearest(self, checked: Iterable[Evaluation]) -> Evaluation | None:
        """Of checked nodes, one that suppresses fewest rows, counted by all criteria.

        A node that k alone closed was not judged, and its failing rows are too few: such ones are judged now, likeliest
        first, as long as they may be nearest.
        """
        best: Evaluation | None = None
        for e in sorted(checked, key=lambda e: e.failing)[:NODES_PER_STATEMENT]:
            if best is not None and e.failing >= best.failing:
                break
            found = e
            near = self if self.judge is None or admissible(e, self.allowed) else self.near(e.node)
            if near.judge is not None and not admissible(e, self.allowed):
                verdicts = near.judge.verdicts([near.arm(0, e.node)])
                found = replace(e, failing=near.judge.sums(verdicts)[0].failing)
                near.judge.drop(verdicts)
            if best is None or found.failing < best.failing:
                best = found
        return best

    def _histograms(self, arms: Sequence[dict[str, object]]) -> dict[int, dict[int, int]]:
        read = self.engine.ask("tables/check/histogram_nodes", nodes=arms)
        sizes: dict[int, dict[int, int]] = {}
        for node, size, classes in zip(*(read.column(c).to_pylist() for c in ("node", "size", "classes")), strict=True):
            sizes.setdefault(node, {})[size] = classes
        return sizes

    def _weighed(self, found: list[Evaluation], arms: Sequence[dict[str, object]]) -> list[Evaluation]:
        """The suppressed leaves of the admissible nodes."""
        none = ((0,) * len(self.folded.columns),) * 2
        ask = [i for i, e in enumerate(found) if e.failing and self._may_win(e)]
        weighed: dict[int, Weighed] = {}
        for portion in portions([found[i].failing for i in ask], LISTED_ROWS):
            some = [ask[i] for i in portion]
            listed = [{**arms[i], "least": found[i].least or self.k} for i in some]
            weighed |= self._weigh(listed, [found[i].node for i in some])
        return [
            replace(e, suppressed_leaves=weighed.get(i, none)[0], suppressed_logs=weighed.get(i, none)[1])
            if i in weighed or not e.failing
            else e
            for i, e in enumerate(found)
        ]

    def _may_win(self, found: Evaluation) -> bool:
        """Whether a node's suppressed leaves are asked for: it is admissible and may still be the answer."""
        if not admissible(found, self.allowed):
            return False
        return self.hopeless is None or not self.hopeless(found.node, found.failing)

    def _weigh(self, arms: Sequence[dict[str, object]], nodes: Sequence[Node]) -> dict[int, Weighed]:
        """Suppressed classes come back, NumPy looks their leaves up: as a join in SQL it took ten times as long."""
        read = self.engine.ask("tables/check/list_failing", nodes=arms)
        owner, size = read.column("node").to_numpy(), read.column("size").to_numpy()
        words = [read.column(w.name).to_numpy() for w in self.folded.words]
        numbers = [int(str(arm["id"])) for arm in arms]
        return self.weigh_classes(numbers, dict(zip(numbers, nodes, strict=True)), owner, size, words)

    def weigh_classes(
        self,
        numbers: Sequence[int],
        nodes: Sequence[Node] | Mapping[int, Node],
        owner: Ints,
        size: Ints,
        words: Sequence[Ints],
    ) -> dict[int, Weighed]:
        """Suppressed leaves by node number and column, and their logarithms.

        Parameters
        ----------
        numbers, nodes
            The nodes asked for, and each by its number.
        owner, size, words
            One entry per suppressed class: its node's number, its rows, its coded values (masked).
        """
        found = {}
        for number in numbers:
            mine = np.flatnonzero(owner == number)
            rows = size[mine].astype(np.int64)
            sums: list[tuple[int, int]] = []
            # One column after the other, for memory: half a million classes may be suppressed.
            for j, (c, level) in enumerate(zip(self.folded.columns, nodes[number], strict=True)):
                place = self._group_of(j, level, words[c.field.word][mine])
                _, leaves, logs = self._leaves[j, level]
                sums.append((int(rows @ leaves[place]), int(rows @ logs[place])))
            found[number] = tuple(plain for plain, _ in sums), tuple(logs for _, logs in sums)
        return found

    def leaves(self, node: Node, words: Sequence[Ints]) -> Ints:
        """(classes, columns): leaves, less one, of each class's values; `words` are its coded values (masked)."""
        columns = enumerate(zip(self.folded.columns, node, strict=True))
        return np.stack([self._leaves_of(j, level, words[c.field.word]) for j, (c, level) in columns], axis=1)

    def _leaves_of(self, column: int, level: int, words: Ints) -> Ints:
        """Leaves, less one, of the generalised values of one column; shape as `words`."""
        place = self._group_of(column, level, words)
        found: Ints = self._leaves[column, level][1][place]
        return found

    def _group_of(self, column: int, level: int, words: Ints) -> Ints:
        """Where in `_leaves` the generalised values of one column are; shape as `words`."""
        coded = self.folded.columns[column]
        if (column, level) not in self._leaves:
            prefixes = coded.prefixes(level)
            order = np.argsort(prefixes)
            leaves = coded.marginal.leaves[level][order]
            self._leaves[column, level] = prefixes[order], leaves - 1, log_leaves(np.maximum(leaves, 1))
        return np.searchsorted(self._leaves[column, level][0], words & np.int64(coded.field.mask(level)))

    def arm(self, number: int, node: Node) -> dict[str, object]:
        """One node's part of a statement: what to group by."""
        masks = self.folded.coding.masks(node)
        groups = [{"word": w, "mask": m} for w, m in zip(self._words, masks, strict=True)]
        return {"id": number, "groups": groups, "classes": self._rollups.table(node), "size": self._rollups.size(node)}


def portions(weights: Sequence[int], most: int) -> list[list[int]]:
    """Numbers of entries, in order, in portions that weigh at most so much together, or are of one entry."""
    found: list[list[int]] = []
    weight = 0
    for i, own in enumerate(weights):
        weight += own
        if not found or weight > most:
            found.append([])
            weight = own
        found[-1].append(i)
    return found
