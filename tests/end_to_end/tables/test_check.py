"""Nodes checked in SQL equal nodes checked row by row: several words, NULLs, every level, histograms, limits."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sqldeid.engine.opening import open_connection
from sqldeid.tables.check.check import Checker
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.plan import plan as planning
from tests.support.oracle import Table, random_table
from tests.support.sources import insert, job, qi, release


def built(table: Table, c: duckdb.DuckDBPyConnection, folder: Path) -> dict[str, object]:
    """The coded table as a table of text, with a hierarchy file per column (it must have a top)."""
    columns = {}
    values = []
    for j, levels in enumerate(table.groups):
        with (folder / f"h{j}.csv").open("w", newline="") as file:
            out = csv.writer(file, delimiter=";")
            there = set(table.codes[j])  # first: a first line that alone no row has would be taken for a header
            for leaf in sorted(range(len(levels[0])), key=lambda leaf: leaf not in there):
                out.writerow([f"v{leaf}", *(f"{x}-{level[leaf]}" for x, level in enumerate(levels[1:], 1))])
        columns[f"c{j}"] = qi(f"h{j}.csv")
        values.append([f"v{code}" for code in table.codes[j]])
    c.execute(f"CREATE TABLE t ({', '.join(f'c{j} VARCHAR' for j in range(len(values)))})")
    insert(c, "t", list(zip(*values, strict=True)))
    return columns


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(24))
def test_sql_equals_the_oracle(seed: int, tmp_path: Path) -> None:
    table = next(
        t
        for s in range(seed * 1000, seed * 1000 + 1000)
        if (t := random_table(s)).rows and _has_tops(t) and t.rows >= t.k
    )
    rng = np.random.default_rng(seed)
    allowed = int(rng.integers(0, table.rows + 1))
    with duckdb.connect() as c:
        columns = built(table, c, tmp_path)
        part = job({}, tmp_path, r=release(columns, k=table.k)).tables["r"]
        with open_connection(c) as engine:
            engine.begin()
            folded = fold(planning.plan("r", part, engine, tmp_path), engine)
            assert folded.size == len(set(zip(*table.codes, strict=True)))
            nodes = list(table.lattice)
            rng.shuffle(nodes)
            found = Checker(engine, folded, table.k, allowed, "r")([tuple(n) for n in nodes], histogram=True)
    expected = [table.evaluation(tuple(n), allowed) for n in nodes]
    for got, want in zip(found, expected, strict=True):
        lost = ("suppressed_leaves", "suppressed_logs")
        for name in ("node", "core_failing", "failing", "classes", "squares", *lost, "histogram"):
            assert getattr(got, name) == getattr(want, name), name


def _has_tops(table: Table) -> bool:
    return all(len(levels) > 1 and len(set(levels[-1])) == 1 for levels in table.groups)


@pytest.mark.parametrize("seed", range(2))
def test_several_words_and_nulls(seed: int, tmp_path: Path) -> None:
    """24 columns of up to 60 distinct values in bands of bands: classes counted row by row."""
    rng = np.random.default_rng(seed)
    width, rows = 24, 300
    with duckdb.connect() as c:
        few = rng.integers(0, 12, size=rows)
        values = np.array(
            [(few * (2 * j + 1) + rng.integers(0, 2, size=rows) * (j % 3 == 0)) % 60 for j in range(width)]
        ).T
        nulls = rng.random(values.shape) < 0.02
        data = [[None if n else int(v) for v, n in zip(*row, strict=True)] for row in zip(values, nulls, strict=True)]
        c.execute(f"CREATE TABLE t ({', '.join(f'c{j} INTEGER' for j in range(width))})")
        insert(c, "t", data)
        columns = {f"c{j}": qi({"bands": [4, 16]}) for j in range(width)}
        part = job({}, tmp_path, r=release(columns, k=2)).tables["r"]
        with open_connection(c) as engine:
            engine.begin()
            folded = fold(planning.plan("r", part, engine, tmp_path), engine)
            assert folded.coding.words >= 2
            nodes = [tuple(int(x) for x in rng.integers(0, 4, size=width)) for _ in range(70)]
            nodes += [(0,) * width, (3,) * width]
            found = Checker(engine, folded, 2, rows, "r")(nodes, histogram=True)
    for node, got in zip(nodes, found, strict=True):
        classes: dict[tuple[object, ...], int] = {}
        for row in data:
            key = tuple(_banded(v, x) for v, x in zip(row, node, strict=True))
            classes[key] = classes.get(key, 0) + 1
        sizes = list(classes.values())
        assert got.classes == len(sizes)
        assert got.squares == sum(n * n for n in sizes)
        assert got.failing == sum(n for n in sizes if n < 2)
        assert got.histogram == {n: sizes.count(n) for n in set(sizes)}


def _banded(value: int | None, level: int) -> object:
    if level == 3:
        return "*"
    return None if value is None else value // (1, 4, 16)[level]
