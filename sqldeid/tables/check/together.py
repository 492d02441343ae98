"""Nodes that one pass over a table answers, and nodes that are asked for one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SMALL = 40_000
"""Rows of a table below which its nodes are asked for in one pass: each row beside each node's masks, grouped by node.

A part of a statement for each node costs its planning, which is most of the time where tables are small: 35 nodes on
12,000 rows took 35 ms of CPU, in one pass 8. From some 70,000 rows on each node by itself is quicker.
"""

Arm = Mapping[str, Any]


def together(arms: Sequence[Arm], table: str) -> tuple[list[Arm], list[Arm]]:
    """Arms that stand alone, and sets of arms that one pass answers: the small tables, each with its nodes.

    Parameters
    ----------
    arms
        Nodes (`Checker.arm`), each with its table and the number of its rows, ``size``.
    table
        Key of an arm that holds the table.
    """
    sets: dict[object, list[Arm]] = {}
    alone = []
    for arm in arms:
        if arm["size"] < SMALL:
            sets.setdefault(arm[table], []).append(arm)
        else:
            alone.append(arm)
    crossed: list[Arm] = [{table: which, "nodes": nodes} for which, nodes in sets.items() if len(nodes) > 1]
    return [*alone, *(nodes[0] for nodes in sets.values() if len(nodes) == 1)], crossed
