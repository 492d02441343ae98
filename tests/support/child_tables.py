"""Child tables: jobs, what whoever holds parent and child can count, and the best release by looking at all of them.

Everything here is slow and obvious; nothing of `sqldeid.tables.itemset` is used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from sqldeid.job import Job
from tests.support.sources import IDENTIFYING, INSENSITIVE, insert, qi

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"
PSEUDONYM = {**IDENTIFYING, "pseudonym": True}
TREE = {
    "a1": ("a", "x"),
    "a2": ("a", "x"),
    "b1": ("b", "x"),
    "b2": ("b", "x"),
    "c1": ("c", "y"),
    "c2": ("c", "y"),
}
"""Items with their labels at levels 1 and 2; at level 3 all are ``*``."""

Items = Mapping[int, frozenset[str]]
"""The items of each person."""

Node = tuple[int, str]
"""A label and its level."""


def write_tree(folder: Path, tree: Mapping[str, tuple[str, ...]] = TREE) -> Path:
    """A file of the tree, and a key."""
    (folder / "key").write_text(KEY)
    lines = [";".join((item, *above, "*")) for item, above in tree.items()]
    (folder / "items.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def child_job(folder: Path, *, k: int = 2, known: int = 2, limit: float = 0.5, **more: Any) -> Job:
    """People with classes by `group`, and codes of them; `parent` and `child` change a table, `release` the place."""
    parent = {
        "source": "people",
        "person": "id",
        "columns": {"id": PSEUDONYM, "group": qi(), "true_id": INSENSITIVE},
        "privacy": {"k": k, "suppression_limit": 0.5},
        "attacks": False,
        **more.get("parent", {}),
    }
    child = {
        "source": "codes",
        "person": "id",
        "parent": "people",
        "items": "code",
        "known": known,
        "columns": {"code": qi("items.csv")},
        "privacy": {"k": k, "suppression_limit": limit},
        **more.get("child", {}),
    }
    release = more.get("release", {})
    return Job.parse({"release": release, "tables": {"people": parent, "codes": child}}, folder=folder)


def database(groups: Mapping[int, str], items: Mapping[int, Sequence[str]]) -> duckdb.DuckDBPyConnection:
    """People with their group, and one row for each code as often as it is listed."""
    c = duckdb.connect()
    c.execute('CREATE TABLE people (id INTEGER, "group" VARCHAR, true_id INTEGER)')
    c.execute("CREATE TABLE codes (id INTEGER, code VARCHAR, seq INTEGER)")
    insert(c, "people", [(i, g, i) for i, g in groups.items()])
    rows = [(person, code, at) for person, codes in items.items() for at, code in enumerate(codes)]
    if rows:
        insert(c, "codes", rows)
    return c


def read_release(c: duckdb.DuckDBPyConnection, schema: str = "release") -> tuple[dict[int, str], dict[int, set[Node]]]:
    """By true person: the group that the parent shows, and the labels that the child shows."""
    people = c.execute(f'SELECT id, "group", true_id FROM {schema}.people').fetchall()
    true = {pseudonym: person for pseudonym, _, person in people}
    shown: dict[int, set[Node]] = {person: set() for person in true.values()}
    rows = c.execute(f"SELECT id, code, code_level FROM {schema}.codes").fetchall()
    assert len(set(rows)) == len(rows)
    for pseudonym, label, level in rows:
        shown[true[pseudonym]].add((level, label))
    return {person: group for _, group, person in people}, shown


def chains(tree: Mapping[str, tuple[str, ...]] = TREE) -> dict[str, list[Node]]:
    """All labels of each item."""
    return {item: list(enumerate((item, *above, "*"))) for item, above in tree.items()}


def fewest(groups: Mapping[int, str], shown: Mapping[int, set[Node]], known: int) -> int | None:
    """The fewest persons of a class with a set of at most `known` labels that somebody there has."""
    counted = Counter[tuple[str, tuple[Node, ...]]]()
    for person, labels in shown.items():
        for some in subsets(sorted(labels), known):
            counted[groups[person], some] += 1
    return min(counted.values(), default=None)


def subsets(items: Sequence[Any], known: int) -> Iterator[tuple[Any, ...]]:
    """All sets of 1 to `known` items."""
    return chain.from_iterable(combinations(items, size) for size in range(1, known + 1))


def attack(
    groups: Mapping[int, str],
    shown: Mapping[int, set[Node]],
    true: Items,
    known: int,
    tree: Mapping[str, tuple[str, ...]] = TREE,
) -> int | None:
    """The fewest persons who fit, over whoever knows a released person's class and up to `known` of his true items.

    The attacker reads each item as the one label of it that the release shows; labels that nobody of the class shows
    tell nothing. Fails if the person whom the attacker means is not among those who fit.
    """
    of, there = chains(tree), set(chain.from_iterable(shown.values()))
    found = []
    for person, group in groups.items():
        for some in subsets(sorted(true.get(person, frozenset())), known):
            labels = set(chain.from_iterable([n for n in of[item] if n in there] for item in some))
            members = [p for p, g in groups.items() if g == group]
            labels = {n for n in labels if any(n in shown[p] for p in members)}
            fitting = [p for p in members if labels <= shown[p]]
            assert person in fitting, "somebody's own row does not fit"
            found.append(len(fitting))
    return min(found, default=None)


def cuts(tree: Mapping[str, tuple[str, ...]] = TREE) -> Iterator[dict[str, Node]]:
    """Every way to show each item as one of its labels so that no label lies below another one."""
    of = chains(tree)
    for choice in product(*(of[item] for item in of)):
        cut = dict(zip(of, choice, strict=True))
        if all(node not in of[item] or cut[item] == node for node in set(choice) for item in of):
            yield cut


def best_loss(
    groups: Mapping[int, str],
    true: Items,
    *,
    k: int,
    known: int,
    limit: float,
    tree: Mapping[str, tuple[str, ...]] = TREE,
) -> float | None:
    """The least loss of all cuts and suppressions of whole cells within the limit; None where none is admissible."""
    pairs = [(p, item) for p in groups for item in sorted(true.get(p, frozenset()))]
    leaves = sorted({item for _, item in pairs})
    kept_tree = {item: tree[item] for item in leaves}
    best = None
    for cut in cuts(kept_tree):
        sizes = Counter(cut[item] for item in leaves)
        loss = {n: (size - 1) / max(len(leaves) - 1, 1) for n, size in sizes.items()}
        cells = sorted({(groups[p], cut[item]) for p, item in pairs})
        for gone in chain.from_iterable(combinations(cells, n) for n in range(len(cells) + 1)):
            left = [(p, item) for p, item in pairs if (groups[p], cut[item]) not in gone]
            suppressed = len(pairs) - len(left)
            if suppressed > limit * len(pairs) + 1e-9:
                continue
            shown: dict[int, set[Node]] = defaultdict(set)
            for p, item in left:
                shown[p].add(cut[item])
            low = fewest(groups, shown, known)
            if low is not None and low < k:
                continue
            lost = (suppressed + sum(loss[cut[item]] for _, item in left)) / len(pairs)
            best = lost if best is None else min(best, lost)
    return best


def fewest_who_fit(joined: pd.DataFrame, person: str, item: str, columns: list[str]) -> int:
    """Of all labels, and pairs of labels, that a person of a class shows, the fewest persons of the class who do."""
    joined = joined.assign(shown=list(zip(joined[item], joined[f"{item}_level"], strict=True)))
    counts: list[int] = []
    for _, own in joined.groupby(columns, dropna=False):
        sets = [sorted(set(shown)) for _, shown in own.groupby(person)["shown"]]
        for size in (1, 2):
            counts += pd.Series([some for one in sets for some in combinations(one, size)]).value_counts().tolist()
    return min(counts)
