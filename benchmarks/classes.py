"""Real data as a table of distinct classes in DuckDB, checked by bit masks; for developing searches, not for releases.

Shape: one row per distinct combination of leaves, its code in one 63-bit word (`w`) and its rows (`n`).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log2
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from sqldeid.tables.model.evaluation import Evaluation, Marginal
from sqldeid.tables.model.lattice import Lattice, Node

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """One coded column: per level the bits that are kept, and per level and group its leaves."""

    marginal: Marginal
    shift: int
    bits: int
    masks: tuple[int, ...]
    leaves: tuple[Ints, ...]
    codes: Ints


def read_table(folder: Path, name: str, hierarchy: str, columns: int | None = None) -> list[Column]:
    """Columns of `folder/name` with `folder/hierarchy.format(column)`, coded so that a level is a bit prefix."""
    with (folder / name).open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=";"))
    heads, cells = rows[0][:columns], rows[1:]
    found, shift = [], 0
    for j, head in enumerate(heads):
        with (folder / hierarchy.format(head)).open(encoding="utf-8") as file:
            paths = [tuple(row) for row in csv.reader(file, delimiter=";") if row]
        column = _code(head, paths, [row[j] for row in cells], shift)
        shift += column.bits
        found.append(column)
    if shift > 63:
        raise SystemExit(f"{shift} bits do not fit one word")
    return found


def _code(head: str, paths: list[tuple[str, ...]], cells: list[str], shift: int) -> Column:
    """Number the leaves so that every ancestor is a prefix of the leaf's code."""
    height = len(paths[0])
    children: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
    for path in sorted(set(paths), key=lambda p: p[::-1]):
        for x in range(height - 1, -1, -1):
            here, above = path[x:], path[x + 1 :]
            children.setdefault(above, {}).setdefault(here, len(children.get(above, {})))
    width = [
        max(ceil(log2(max(len(c) for a, c in children.items() if len(a) == height - 1 - x))), 0) for x in range(height)
    ]
    codes = {}
    for path in set(paths):
        code, at = 0, 0
        for x in range(height):
            code |= children[path[x + 1 :]][path[x:]] << at
            at += width[x]
        codes[path[0]] = code
    bits = sum(width)
    masks = tuple(((1 << bits) - 1) ^ ((1 << sum(width[:x])) - 1) for x in range(height))
    coded = np.array([codes[c] for c in cells], dtype=np.int64)
    rows, groups, leaves = [], [], []
    every = np.array(sorted(codes.values()), dtype=np.int64)
    for mask in masks:
        count = np.bincount(every & mask, minlength=1 << bits)
        groups.append(np.bincount(coded & mask, minlength=1 << bits)[count > 0])
        rows.append(count[count > 0])
        leaves.append(count)
    marginal = Marginal(head, Fraction(1), tuple(groups), tuple(rows))
    return Column(marginal, shift, bits, masks, tuple(leaves), coded)


class Workbench:
    """`Evaluate` for k-anonymity over the folded classes: one statement for a batch, one more for suppressed rows."""

    def __init__(self, columns: Sequence[Column], k: int, allowed: int) -> None:
        self.columns, self.k, self.allowed = columns, k, allowed
        words = np.zeros(len(columns[0].codes), dtype=np.int64)
        for c in columns:
            words |= c.codes << c.shift
        self.words, self.counts = np.unique(words, return_counts=True)
        self.rows = len(words)
        self.lattice = Lattice(tuple(c.marginal.height for c in columns))
        self.marginals = [c.marginal for c in columns]
        self.connection = duckdb.connect()
        frame = {"w": self.words, "n": self.counts.astype(np.int64)}
        self.connection.execute("CREATE TABLE classes (w BIGINT, n BIGINT)")
        self.connection.register("frame", frame)
        self.connection.execute("INSERT INTO classes SELECT w, n FROM frame")
        self.checks = self.statements = 0

    def mask(self, node: Node) -> int:
        """The node as a bit mask."""
        return sum(c.masks[x] << c.shift for c, x in zip(self.columns, node, strict=True))

    def __call__(self, nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        """Check nodes: one statement for all, and one for the suppressed classes of the admissible ones."""
        self.checks += len(nodes)
        self.statements += 1
        sizes = self._sizes(nodes)
        passing = [i for i, s in enumerate(sizes) if s[0] <= self.allowed]
        lost = self._lost([nodes[i] for i in passing]) if passing else {}
        return [
            Evaluation(node, s[0], s[0], s[1], s[2], lost.get(node), self._histogram(node) if histogram else None)
            for node, s in zip(nodes, sizes, strict=True)
        ]

    def _sizes(self, nodes: Sequence[Node]) -> list[tuple[int, int, int]]:
        values = ",".join(f"({i},{self.mask(node)})" for i, node in enumerate(nodes))
        found = self.connection.execute(f"""
            SELECT i, sum(s) FILTER (s < {self.k}), count(*), sum(s * s)
            FROM (SELECT i, w & m AS e, sum(n)::BIGINT AS s FROM classes, (VALUES {values}) v(i, m) GROUP BY i, e)
            GROUP BY i""").fetchall()
        by = {i: (int(f or 0), int(c), int(q)) for i, f, c, q in found}
        return [by[i] for i in range(len(nodes))]

    def _lost(self, nodes: Sequence[Node]) -> dict[Node, tuple[int, ...]]:
        self.statements += 1
        values = ",".join(f"({i},{self.mask(node)})" for i, node in enumerate(nodes))
        found = self.connection.execute(f"""
            SELECT i, e, s FROM (SELECT i, w & m AS e, sum(n)::BIGINT AS s
            FROM classes, (VALUES {values}) v(i, m) GROUP BY i, e HAVING sum(n) < {self.k})""").fetchnumpy()
        which, e, s = (np.asarray(found[c]) for c in ("i", "e", "s"))
        lost = np.zeros((len(nodes), len(self.columns)), dtype=np.int64)
        for j, c in enumerate(self.columns):
            part = (e >> c.shift) & ((1 << c.bits) - 1)
            for i, node in enumerate(nodes):
                here = which == i
                lost[i, j] = ((c.leaves[node[j]][part[here]] - 1) * s[here]).sum()
        return {node: tuple(int(x) for x in row) for node, row in zip(nodes, lost, strict=True)}

    def _histogram(self, node: Node) -> dict[int, int]:
        _, where = np.unique(self.words & self.mask(node), return_inverse=True)
        sizes, times = np.unique(np.bincount(where, weights=self.counts).astype(np.int64), return_counts=True)
        return dict(zip(sizes.tolist(), times.tolist(), strict=True))
