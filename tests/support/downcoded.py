"""What is certain of a release, by its definition: all source tables of so many rows that give the same one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np

from sqldeid.tables.attacks.base import SUPPRESSED, Recoded
from sqldeid.tables.attacks.certain import Sharpened, disagreeing, failing, shown_of
from sqldeid.tables.attacks.downcoding import lowest, needed
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.peel import Attribute, LocalProblem, partition
from tests.support.oracle import Table, exhaustive

Tree = tuple[tuple[int, ...], ...]
Rows = tuple[tuple[int, ...], ...]
Class = tuple[tuple[int, int], ...]
"""Level and group of each column: what a reader sees of a class."""


@dataclass(frozen=True)
class Released:
    """A source with what was released of it: the class of each row, None where it is suppressed."""

    rows: Rows
    classes: tuple[Class | None, ...]
    public: Hashable
    found: Recoded
    sharp: list[Sharpened]


@dataclass(frozen=True)
class Asked:
    """What is asked of every source."""

    trees: tuple[Tree, ...]
    k: int
    rows: int
    allowed: int = 0
    loss: str = "loss"
    sensitive: int = 0

    def sources(self) -> Iterator[Rows]:
        """Every table of so many rows over the leaves and sensitive values, if there are any; its rows in order."""
        sensitive = [range(self.sensitive)] if self.sensitive else []
        cells = list(product(*(range(len(tree[0])) for tree in self.trees), *sensitive))
        yield from combinations_with_replacement(cells, self.rows)


def full_domain(asked: Asked, rows: Rows) -> Released | None:
    """The best node of a source, by brute force, with what is certain of its classes by the fast attack."""
    table = Table(tuple(zip(*rows, strict=True)), asked.trees, _ones(asked), (0,) * len(rows), asked.k)
    node = exhaustive(table, asked.loss, asked.allowed)
    if node is None:
        return None
    shown = [tuple((x, t[x][v]) for t, x, v in zip(asked.trees, node, row, strict=True)) for row in rows]
    size = Counter(shown)
    classes = tuple(c if size[c] >= asked.k else None for c in shown)
    found = _recoded(asked, rows, classes)
    if not len(found.sizes):
        return None
    loss, columns = make_loss(asked.loss, table.marginals(), len(rows)), shown_of(found)
    spare = asked.allowed - int(len(rows) - found.sizes.sum())
    needs = [needed(loss, columns, j, found.sizes, spare) if x else 0 for j, x in enumerate(node)]
    sharp = [failing(c, found.sizes, asked.k, need) for c, need in zip(columns, needs, strict=True)]
    return Released(rows, classes, (node, _public(classes)), found, sharp)


def by_k(asked: Asked, rows: Rows, *, told: bool = True) -> Released | None:
    """The best node for k alone, of which classes of one sensitive value are suppressed, too.

    The last value of a row is sensitive: 0 or 1. The reader knows how many rows were suppressed so.

    Parameters
    ----------
    told
        Whether the fast attack takes these rows into account; false makes a wrong twin, which a test must catch.
    """
    known = tuple(row[:-1] for row in rows)
    table = Table(tuple(zip(*known, strict=True)), asked.trees, _ones(asked), (0,) * len(rows), asked.k)
    node = exhaustive(table, asked.loss, asked.allowed)
    if node is None:
        return None
    shown = [tuple((x, t[x][v]) for t, x, v in zip(asked.trees, node, row, strict=True)) for row in known]
    size, values = Counter(shown), {c: {r[-1] for r, own in zip(rows, shown, strict=True) if own == c} for c in shown}
    beyond = sum(size[c] >= asked.k and len(values[c]) < 2 for c in shown)
    classes = tuple(c if size[c] >= asked.k and len(values[c]) > 1 else None for c in shown)
    found = _recoded(asked, known, classes)
    if not len(found.sizes):
        return None
    loss, columns = make_loss(asked.loss, table.marginals(), len(rows)), shown_of(found)
    spare, hidden = asked.allowed - int(len(rows) - found.sizes.sum()), beyond if told else 0
    spare += 0 if told else beyond
    needs = [needed(loss, columns, j, found.sizes, spare, hidden) if x else 0 for j, x in enumerate(node)]
    sharp = [failing(c, found.sizes, asked.k, need) for c, need in zip(columns, needs, strict=True)]
    return Released(known, classes, (node, beyond, _public(classes)), found, sharp)


def local(asked: Asked, rows: Rows) -> Released:
    """The classes of a source by local recoding, with what is certain of them by the fast attack."""
    counts = sorted(Counter(rows).items())
    attributes = tuple(_attribute(tree) for tree in asked.trees)
    leaf, n = np.array([row for row, _ in counts]).T, np.array([times for _, times in counts])
    parts = partition(LocalProblem(leaf, n, attributes, asked.k, asked.allowed, asked.loss))  # type: ignore[arg-type]
    node_of = {
        row: parts.nodes[x] if x >= 0 else None for (row, _), x in zip(counts, parts.layer.tolist(), strict=True)
    }
    classes = tuple(_class(asked, node_of[row], row) for row in rows)
    found = _recoded(asked, rows, classes)
    told = lowest(found, blanked=False)
    sharp = [disagreeing(c, found.sizes, told) for c in shown_of(found)]
    return Released(rows, classes, (tuple(sorted(parts.nodes)), _public(classes)), found, sharp)


def compare(asked: Asked, release: Callable[[Asked, Rows], Released | None]) -> tuple[Counter[str], Counter[str]]:
    """What is certain by enumeration, and what of it the fast attack finds; it may find nothing else.

    Counted over classes and columns above level 0 of one source of each release.
    """
    alike: dict[Hashable, list[Released]] = defaultdict(list)
    for rows in asked.sources():
        if (found := release(asked, rows)) is not None:
            alike[found.public].append(found)
    true, fast = Counter[str](), Counter[str]()
    for releases in alike.values():
        one = releases[0]
        for mine, j in product(sorted({c for c in one.classes if c is not None}), range(len(asked.trees))):
            if not mine[j][0]:
                continue
            number = int(one.found.owner[_combination(one, mine)])
            counts = {_children(asked, r, mine, j) for r in releases}
            below = {
                t for t, g in zip(*(asked.trees[j][mine[j][0] + x] for x in (-1, 0)), strict=True) if g == mine[j][1]
            }
            certain = {"exact": len(counts) == 1, "present": all(len(c) == len(below) for c in counts)}
            for word, is_certain in certain.items():
                told = bool(getattr(one.sharp[j], word)[number])
                assert is_certain or not told, (word, one.rows, mine, j)
                true[word] += is_certain
                fast[word] += told
    return true, fast


def _children(asked: Asked, found: Released, mine: Class, j: int) -> tuple[tuple[int, int], ...]:
    """Rows of each group one level below a class's label."""
    below = asked.trees[j][mine[j][0] - 1]
    counts = Counter(below[row[j]] for row, c in zip(found.rows, found.classes, strict=True) if c == mine)
    return tuple(sorted(counts.items()))


def _combination(found: Released, mine: Class) -> int:
    rows = sorted(set(found.rows))
    return rows.index(found.rows[found.classes.index(mine)])


def _recoded(asked: Asked, rows: Rows, classes: tuple[Class | None, ...]) -> Recoded:
    numbers = {c: i for i, c in enumerate(sorted({c for c in classes if c is not None}))}
    counts, of = sorted(Counter(rows).items()), dict(zip(rows, classes, strict=True))
    leaf = np.array([row for row, _ in counts]).T
    owner = np.array([SUPPRESSED if (c := of[row]) is None else numbers[c] for row, _ in counts])
    level = np.array(
        [[SUPPRESSED] * leaf.shape[0] if (c := of[row]) is None else [x for x, _ in c] for row, _ in counts]
    )
    groups = tuple(tuple(np.array(x) for x in tree) for tree in asked.trees)
    return Recoded(leaf, np.array([n for _, n in counts]), level.T, owner, groups, (True,) * len(groups))


def _class(asked: Asked, node: Node | None, row: tuple[int, ...]) -> Class | None:
    return None if node is None else tuple((x, t[x][v]) for t, x, v in zip(asked.trees, node, row, strict=True))


def _public(classes: tuple[Class | None, ...]) -> Hashable:
    return tuple(sorted(Counter(c for c in classes if c is not None).items()))


def _ones(asked: Asked) -> tuple[Fraction, ...]:
    return (Fraction(1),) * len(asked.trees)


def _attribute(tree: Tree) -> Attribute:
    """Each level's labels are told apart from every other level's."""
    label = tuple(np.array(level) + 100 * x for x, level in enumerate(tree))
    leaves = tuple(np.array([level.count(g) for g in level]) for level in tree)
    return Attribute(label, leaves, Fraction(1))
