"""Small problems of local recoding, drawn at random, and the slow and obvious count of what was answered."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from hypothesis import strategies as st

from sqldeid.arrays import Ints
from sqldeid.tables.criteria import ClassCriterion, MConcealing
from sqldeid.tables.peel import Attribute, Judged, LocalProblem, Partition
from sqldeid.tables.peel.problem import Concealed

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
    hidden: st.SearchStrategy[MConcealing | None] | None = None,
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
        concealed=_concealed(draw, draw(hidden) if hidden is not None else None, rows),
    )


@st.composite
def concealing(draw: Draw) -> MConcealing:
    """m-concealing of up to two known columns."""
    m = Fraction(draw(st.sampled_from(["0.125", "0.2", "0.3", "0.35", "0.5", "0.6", "0.75", "1"])))
    chances = draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), max_size=2))
    inclusion = Fraction(draw(st.sampled_from(["1", "1", "0.5", "0.9"])))
    return MConcealing(m, tuple((f"c{i}", p) for i, p in enumerate(chances)), inclusion)


def _concealed(draw: Draw, criterion: MConcealing | None, rows: list[int]) -> Concealed | None:
    """Known values of each row, drawn from few."""
    if criterion is None:
        return None
    width, cells = len(criterion.known), defaultdict[tuple[int, tuple[int, ...]], int](int)
    for i, n in enumerate(rows):
        for _ in range(n):
            cells[i, tuple(draw(st.integers(0, 2)) for _ in range(width))] += 1
    ordered, tuples = sorted(cells), sorted({values for _, values in cells})
    return Concealed(
        criterion,
        np.array([i for i, _ in ordered], dtype=np.int64),
        np.array([tuples.index(values) for _, values in ordered], dtype=np.int64),
        np.array([cells[key] for key in ordered], dtype=np.int64),
        np.array(tuples, dtype=np.int64).reshape(len(tuples), width),
    )


def known_rows(concealed: Concealed, members: Ints) -> list[tuple[int, ...]]:
    """The known values of each row of some combinations, row by row."""
    mine = set(members.tolist())
    found = []
    for i, value, n in zip(
        concealed.combination.tolist(), concealed.value.tolist(), concealed.rows.tolist(), strict=True
    ):
        found += [tuple(concealed.tuples[value].tolist())] * (n if i in mine else 0)
    return found


def risk(criterion: MConcealing, row: tuple[int, ...], rows: list[tuple[int, ...]]) -> Fraction:
    """How likely a row is picked by who knows the class, and each value with its probability: formula 5.1."""
    found = Fraction(0)
    for state in product((False, True), repeat=len(row)):
        fitting = sum(all(a == b for a, b, s in zip(row, other, state, strict=True) if s) for other in rows)
        chances = [Fraction(repr(p)) for _, p in criterion.known]
        found += prod((p if s else 1 - p for p, s in zip(chances, state, strict=True)), start=Fraction(1)) / fitting
    return found * criterion.inclusion


def above_m(problem: LocalProblem, members: Ints) -> int:
    """Rows of some combinations, as one class, with a risk above m; what exceeds it by rounding does not."""
    if problem.concealed is None:
        return 0
    criterion, rows = problem.concealed.criterion, known_rows(problem.concealed, members)
    return sum(risk(criterion, row, rows) > criterion.m * (1 + Fraction(1, 10**12)) for row in rows)


def least_class(problem: LocalProblem) -> int:
    """Rows of the smallest class that k and m-concealing allow; one more than there are where none is allowed."""
    for n in range(problem.k, int(problem.rows.sum()) + 1):
        if problem.concealed is None or n * problem.concealed.criterion.m >= problem.concealed.criterion.inclusion:
            return n
    return max(problem.k, int(problem.rows.sum()) + 1)


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
    return (
        size >= problem.k
        and all(j.criterion.holds(histogram(j, members), size, j.whole) for j in problem.criteria)
        and not above_m(problem, members)
    )


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
