"""Small problems of local recoding, drawn at random, and the slow and obvious count of what was answered."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from sqldeid.arrays import Ints
from sqldeid.tables.criteria import ClassCriterion
from sqldeid.tables.peel import Attribute, Judged, LocalProblem, Partition

Draw = st.DrawFn


@st.composite
def attributes(draw: Draw, most_leaves: int = 5) -> Attribute:
    """A column with a random tree of groups; levels that only rename and leaves without data occur."""
    leaves = draw(st.integers(1, most_leaves))
    groups = [list(range(leaves))]
    for _ in range(draw(st.integers(0, 2))):
        to = [draw(st.integers(0, leaves - 1)) for _ in range(leaves)]
        groups.append([to[g] for g in groups[-1]])
    if leaves > 1 or draw(st.booleans()):
        groups.append([0] * leaves)
    names: dict[tuple[int, ...], int] = {}
    label, size = [], []
    for x, level in enumerate(groups):
        extents = [tuple(i for i, g in enumerate(level) if g == mine) for mine in level]
        same_name = draw(st.booleans())
        label.append([names.setdefault(e if same_name else (-x - 1, *e), len(names)) for e in extents])
        size.append([len(e) for e in extents])
    weight = draw(st.sampled_from([Fraction(1), Fraction(1), Fraction(2), Fraction(1, 3)]))
    return Attribute(tuple(np.array(x) for x in label), tuple(np.array(x) for x in size), weight)


@st.composite
def problems(
    draw: Draw,
    criteria: st.SearchStrategy[list[ClassCriterion]] | None = None,
    most_combinations: int = 12,
    most_columns: int = 3,
) -> LocalProblem:
    """A problem of few combinations; each criterion has values of its own."""
    columns = draw(st.lists(attributes(), min_size=1, max_size=most_columns))
    cells = [st.integers(0, len(a.label[0]) - 1) for a in columns]
    found = sorted(draw(st.sets(st.tuples(*cells), min_size=1, max_size=most_combinations)))
    rows = [draw(st.integers(1, 3)) for _ in found]
    judged = [_judged(draw, c, rows) for c in (draw(criteria) if criteria is not None else [])]
    return LocalProblem(
        np.array(found, dtype=np.int64).T.reshape(len(columns), len(found)),
        np.array(rows, dtype=np.int64),
        tuple(columns),
        draw(st.integers(1, 4)),
        draw(st.integers(0, max(sum(rows) // 4, 1))),
        draw(st.sampled_from(["loss", "prec"])),
        tuple(judged),
    )


def _judged(draw: Draw, criterion: ClassCriterion, rows: list[int]) -> Judged:
    """Sensitive values of each row, drawn from few."""
    values = draw(st.integers(1, 4))
    cells: dict[tuple[int, int], int] = defaultdict(int)
    for i, n in enumerate(rows):
        for _ in range(n):
            cells[i, draw(st.integers(0, values - 1))] += 1
    ordered = sorted(cells)
    whole = [sum(n for (_, v), n in cells.items() if v == value) for value in range(values)]
    return Judged(
        criterion,
        np.array([i for i, _ in ordered], dtype=np.int64),
        np.array([v for _, v in ordered], dtype=np.int64),
        np.array([cells[key] for key in ordered], dtype=np.int64),
        np.array(whole, dtype=np.int64),
    )


def histogram(judged: Judged, members: Ints) -> dict[int, int]:
    """Rows of some combinations by sensitive value."""
    found: dict[int, int] = defaultdict(int)
    for i, v, n in zip(judged.combination.tolist(), judged.value.tolist(), judged.rows.tolist(), strict=True):
        if i in set(members.tolist()):
            found[v] += n
    return dict(found)


def meets(problem: LocalProblem, members: Ints) -> bool:
    """Whether some combinations may be one class."""
    size = int(problem.rows[members].sum())
    return size >= problem.k and all(j.criterion.holds(histogram(j, members), size, j.whole) for j in problem.criteria)


def price(problem: LocalProblem, node: tuple[int, ...], combination: int) -> Fraction:
    """What one row of a combination loses at a node, from 0 to 1."""
    lost = Fraction(0)
    for a, leaf, x in zip(problem.attributes, problem.leaf[:, combination].tolist(), node, strict=True):
        if problem.loss == "prec":
            lost += a.weight * Fraction(x, max(a.height - 1, 1))
        else:
            domain = max(int(a.leaves[-1][leaf]) - 1, 1)
            lost += a.weight * Fraction(int(a.leaves[x][leaf]) - 1, domain)
    return lost / sum(a.weight for a in problem.attributes)


def recounted(problem: LocalProblem, found: Partition) -> Fraction:
    """What a release loses, counted row by row, once it was seen that classes by equal labels keep the promise."""
    rows = problem.rows.tolist()
    lost, suppressed = Fraction(0), 0
    classes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, layer in enumerate(found.layer.tolist()):
        if layer < 0:
            suppressed += rows[i]
            lost += rows[i]
            continue
        node, leaf = found.nodes[layer], problem.leaf[:, i].tolist()
        classes[tuple(int(a.label[x][v]) for a, x, v in zip(problem.attributes, node, leaf, strict=True))].append(i)
        lost += rows[i] * price(problem, node, i)
    assert suppressed <= problem.allowed
    assert sorted(set(found.layer.tolist()) - {-1}) == list(range(len(found.nodes)))
    assert all(meets(problem, np.array(members)) for members in classes.values())
    return lost / sum(rows)
