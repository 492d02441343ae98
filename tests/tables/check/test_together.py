"""Nodes that one pass answers get what each gets alone, on random classes of one word and of two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.sql import identifier, render, table_name
from sqldeid.tables.check.together import SMALL, together
from tests.support.examples import examples
from tests.support.sources import insert

K = 3


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def _cell(row: tuple[int, ...]) -> tuple[int, ...]:
    return row[:-1]


@st.composite
def checks(draw: st.DrawFn) -> tuple[int, list[tuple[int, ...]], list[list[int]]]:
    """Words, rows (words, s, n), and the masks of each node; negative codes and masks of all bits are among them."""
    words = draw(st.integers(1, 2))
    code, mask = st.integers(0, 15) | st.just(2**62 + 5), st.sampled_from([0, 1, 2, 3, 12, 15, 2**62, -1])
    row = st.tuples(*[code] * words, st.integers(0, 2), st.integers(1, 4))
    rows = draw(st.lists(row, min_size=1, max_size=12, unique_by=_cell))
    return words, rows, draw(st.lists(st.lists(mask, min_size=words, max_size=words), min_size=1, max_size=5))


def arms_of(asked: tuple[int, list[tuple[int, ...]], list[list[int]]], size: int) -> tuple[list[Any], list[Any]]:
    words, _, nodes = asked
    names = [identifier(f"w{i}") for i in range(words)]
    table = table_name("t")
    return names, [
        {
            "id": i,
            "groups": [{"word": w, "mask": m} for w, m in zip(names, masks, strict=True)],
            **{"classes": table, "spread": table, "size": size},
        }
        for i, masks in enumerate(nodes)
    ]


def load(connection: duckdb.DuckDBPyConnection, asked: tuple[int, list[tuple[int, ...]], list[list[int]]]) -> None:
    words, rows, _ = asked
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE t ({', '.join(f'w{i} BIGINT' for i in range(words))}, s BIGINT, n BIGINT)"
    )
    insert(connection, "t", rows)


@settings(deadline=None, max_examples=examples(100))
@given(checks())
def test_sizes_are_those_of_each_node_alone(connection: duckdb.DuckDBPyConnection, asked: Any) -> None:
    load(connection, asked)
    found = []
    for size in (SMALL - 1, SMALL):
        names, arms = arms_of(asked, size)
        nodes, crossed = together(arms, "classes")
        assert bool(crossed) == (size < SMALL and len(arms) > 1)
        told = render("tables/check/check_nodes", nodes=nodes, crossed=crossed, words=names, k=K)
        found.append(sorted(connection.execute(told).fetchall()))
    assert found[0] == found[1] == by_hand(asked)


def by_hand(asked: tuple[int, list[tuple[int, ...]], list[list[int]]]) -> list[tuple[int, ...]]:
    words, rows, nodes = asked
    found = []
    for number, masks in enumerate(nodes):
        sizes: dict[tuple[int, ...], int] = {}
        for row in rows:
            group = tuple(row[i] & masks[i] for i in range(words))
            sizes[group] = sizes.get(group, 0) + row[-1]
        failing = sum(n for n in sizes.values() if n < K)
        found.append((number, failing, len(sizes), sum(n * n for n in sizes.values())))
    return found


@settings(deadline=None, max_examples=examples(100))
@given(checks())
def test_cells_are_those_of_each_node_alone(connection: duckdb.DuckDBPyConnection, asked: Any) -> None:
    load(connection, asked)
    found = []
    for size in (SMALL - 1, SMALL):
        names, arms = arms_of(asked, size)
        nodes, crossed = together(arms, "spread")
        connection.execute("DROP TABLE IF EXISTS cells")
        cells = table_name("cells")
        connection.execute(
            render("tables/check/count_cells", cells=cells, nodes=nodes, crossed=crossed, words=names)
        ).fetchall()
        order = ", ".join(["node", *(f"w{i}" for i in range(asked[0])), "s"])
        found.append(connection.execute(f"SELECT {order}, c FROM cells ORDER BY {order}").fetchall())
    words, rows, masks = asked
    expected: dict[tuple[int, ...], int] = {}
    for number, own in enumerate(masks):
        for row in rows:
            cell = (number, *(row[i] & own[i] for i in range(words)), row[words])
            expected[cell] = expected.get(cell, 0) + row[-1]
    assert found[0] == found[1] == [(*cell, n) for cell, n in sorted(expected.items())]
