"""The folded source as arrays: its combinations by leaf numbers, with the rows of each and what criteria look at.

Leaves and labels are numbered by their texts, whatever the order in which an engine gives values; combinations are
ordered by these numbers. So what is made of them depends on neither the order of rows nor the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.hierarchy.model import Labels
from sqldeid.sql import render
from sqldeid.tables.check.bases import CLASS_BYTES, most_classes
from sqldeid.tables.criteria import MConcealing, known
from sqldeid.tables.fold.fold import Coded, Folded
from sqldeid.tables.fold.sensitive import Sensitive, code_name
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.peel.problem import Attribute, Concealed, Judged, LocalProblem

COLUMN_BYTES, OWN_BYTES = 24, 160
"""Memory that a combination takes while classes are formed: for each column, and beside them."""


@dataclass(frozen=True, slots=True)
class Combinations:
    """The distinct combinations of a folded source, in the order of their leaves' numbers.

    Parameters
    ----------
    words
        Their words; shape (words, combinations).
    leaf
        Number of the leaf in each column, by the text of leaves; shape (columns, combinations).
    rows
        Rows of each.
    number
        Per column, the leaf of the hierarchy that each number stands for.
    attributes
        Per column, what its levels show.
    """

    words: Ints
    leaf: Ints
    rows: Ints
    number: tuple[Ints, ...]
    attributes: tuple[Attribute, ...]

    @property
    def leaves(self) -> Ints:
        """The leaves of the hierarchies, as the hierarchies number them; shape (columns, combinations)."""
        return np.stack([number[leaf] for number, leaf in zip(self.number, self.leaf, strict=True)])


def refuse_too_many(planned: LocalPlan, folded: Folded, bench: Engine) -> None:
    """Refuse combinations that the memory limit has no room for, before any of them is read.

    Raises
    ------
    JobError
        With what they need and what there is.
    """
    if not has_room(planned, folded.size, bench):
        limit, needed = most_classes(bench) * CLASS_BYTES, _needed(planned, folded.size)
        raise JobError.at(
            f"{planned.key}.search.method",
            f"local recoding takes all {folded.size:,} different combinations of quasi-identifying values into memory, "
            f"about {needed / 2**30:.1f} GiB, and the memory limit is {limit / 2**30:.1f} GiB; raise --memory-limit, "
            'name fewer columns, or use "frontier"',
        )


def has_room(planned: LocalPlan, combinations: int, bench: Engine) -> bool:
    """Whether the memory limit has room for so many combinations while classes are formed of them."""
    return _needed(planned, combinations) <= most_classes(bench) * CLASS_BYTES


def _needed(planned: LocalPlan, combinations: int) -> int:
    """Bytes that they take."""
    return combinations * (COLUMN_BYTES * len(planned.table.qis) + OWN_BYTES)


def read_combinations(folded: Folded, bench: Engine) -> Combinations:
    """The combinations of a folded source. Cost: its classes are read once."""
    read = bench.query(render("tables/local/read_combinations", classes=folded.table, words=list(folded.words)))
    words = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in folded.words])
    rows = read.column("n").to_numpy().astype(np.int64)
    numbers = [_by_text(c.hierarchy.labels[0]) for c in folded.columns]
    leaf = np.stack([_ranks(number)[_leaf_of(c, words)] for c, number in zip(folded.columns, numbers, strict=True)])
    order = np.lexsort(leaf[::-1])
    attributes = [_attribute(c, number) for c, number in zip(folded.columns, numbers, strict=True)]
    return Combinations(words[:, order], leaf[:, order], rows[order], tuple(numbers), tuple(attributes))


def problem_of(planned: LocalPlan, folded: Folded, found: Combinations, bench: Engine) -> LocalProblem:
    """The table as local recoding is asked of it.

    Cost: a statement for each sensitive column of a criterion, and one for m-concealing.
    """
    plan, search = planned.table, planned.table.search
    if search.loss not in ("loss", "prec"):
        raise ValueError("the job's rules let no other loss pass")
    cells = {s.column.name: (s, *_cells(s, folded, found, bench)) for s in folded.sensitive}
    judged = []
    for criterion in plan.criteria:
        sensitive, combination, value, rows = cells[known(criterion).column]
        judged.append(Judged(criterion, combination, value, rows, sensitive.rows))
    return LocalProblem(
        leaf=found.leaf,
        rows=found.rows,
        attributes=found.attributes,
        k=plan.demands.k,
        allowed=allowed_rows(plan.demands.suppression_limit, folded.rows),
        loss="prec" if search.loss == "prec" else "loss",
        criteria=tuple(judged),
        layers=planned.layers,
        seconds=search.time_limit,
        concealed=_concealed(plan.concealing, folded, found, bench),
    )


def _by_text(labels: Labels) -> Ints:
    """The leaves in the order of their texts, NULL last."""
    told = [(label is None, "" if label is None else str(label)) for label in labels.tolist()]
    return np.array(sorted(range(len(told)), key=told.__getitem__), dtype=np.int64)


def _ranks(number: Ints) -> Ints:
    """Number of each leaf."""
    ranks = np.empty_like(number)
    ranks[number] = np.arange(len(number))
    return ranks


def _leaf_of(coded: Coded, words: Ints) -> Ints:
    """The hierarchy's leaf of each combination, from its code in the word."""
    order = np.argsort(coded.codes, kind="stable")
    own = words[coded.field.word] & np.int64(coded.field.mask(0))
    return np.asarray(order[np.searchsorted(coded.codes[order], own)])


def _attribute(coded: Coded, number: Ints) -> Attribute:
    """What each level shows of each leaf: the number of its label among all labels of the column, and its leaves."""
    hierarchy = coded.hierarchy
    shown = [coded.qi.labels(hierarchy, level) for level in range(hierarchy.height)]
    texts = [[None if label is None else str(label) for label in labels] for labels in shown]
    every = sorted({text for labels in texts for text in labels if text is not None})
    numbered: dict[str | None, int] = {text: i for i, text in enumerate(every)} | {None: len(every)}
    label, leaves = [], []
    for level, labels in enumerate(texts):
        groups = hierarchy.groups[level][number]
        label.append(np.array([numbered[text] for text in labels], dtype=np.int64)[groups])
        leaves.append(hierarchy.group_sizes(level)[groups])
    return Attribute(tuple(label), tuple(leaves), coded.qi.weight)


def _cells(sensitive: Sensitive, folded: Folded, found: Combinations, bench: Engine) -> tuple[Ints, Ints, Ints]:
    """Combination, value and rows of the classes split by a sensitive column, ordered by the first two."""
    if sensitive.spread_table is None:
        raise ValueError("the classes are not split by the column")
    read = bench.query(render("tables/local/read_cells", cells=sensitive.spread_table, words=list(folded.words)))
    words = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in folded.words])
    value, rows = (read.column(c).to_numpy().astype(np.int64) for c in ("s", "n"))
    combination = positions(found.words, words)
    order = np.lexsort((value, combination))
    return combination[order], value[order], rows[order]


def _concealed(criterion: MConcealing | None, folded: Folded, found: Combinations, bench: Engine) -> Concealed | None:
    """The classes split by all columns that m-concealing calls known, together; None where it is not asked for."""
    if criterion is None:
        return None
    number = {s.column.name: i for i, s in enumerate(folded.sensitive)}
    codes = [code_name(number[name]) for name, _ in criterion.known]
    cells = folded.cells or folded.table
    read = bench.query(render("tables/local/read_known", cells=cells, columns=[*folded.words, *codes]))
    words = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in folded.words])
    tuples, value = np.zeros((1, 0), dtype=np.int64), np.zeros(words.shape[1], dtype=np.int64)
    if codes:
        values = np.stack([read.column(c.name).to_numpy().astype(np.int64) for c in codes], axis=1)
        tuples, at = np.unique(values, axis=0, return_inverse=True)
        value = at.reshape(-1).astype(np.int64)
    combination = positions(found.words, words)
    order = np.lexsort((value, combination))
    rows = read.column("n").to_numpy().astype(np.int64)
    return Concealed(criterion, combination[order], value[order], rows[order], tuples)


def positions(words: Ints, asked: Ints) -> Ints:
    """Where each of the asked words is among the words; both of shape (words, …), and each is there."""
    both = np.concatenate([words, asked], axis=1)
    _, owner = np.unique(both, axis=1, return_inverse=True)
    owner = owner.reshape(-1)
    size = words.shape[1]
    place = np.empty(int(owner.max(initial=-1)) + 1, dtype=np.int64)
    place[owner[:size]] = np.arange(size)
    return place[owner[size:]]
