"""Random tables and lattices: every search that claims the optimum against all nodes, counted in plain Python."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid import Job
from tests.support.sources import insert

pytestmark = pytest.mark.deep

STEPS = {"a": (1, 2, 4), "b": (1, 3), "c": (1, 2, 6)}


def label(value: int | None, column: str, level: int) -> object:
    """What a level shows: level 0 the value, the last one a star."""
    if level == len(STEPS[column]):
        return "*"
    return None if value is None else value // STEPS[column][level]


def losses(rows: list[tuple[int | None, ...]], k: int, limit: float, l: int) -> list[float]:
    """`prec` of every node that is admissible: distinct l on the last column, whole classes suppressed."""
    found = []
    for node in itertools.product(*(range(len(s) + 1) for s in STEPS.values())):
        classes: dict[tuple[object, ...], list[object]] = {}
        for row in rows:
            shown = tuple(label(v, c, x) for v, c, x in zip(row, STEPS, node, strict=False))
            classes.setdefault(shown, []).append(row[-1])
        failing = sum(len(c) for c in classes.values() if len(c) < k or len(Counter(c)) < l)
        if failing <= limit * len(rows) and failing < len(rows):
            found.append(sum(x / len(s) for x, s in zip(node, STEPS.values(), strict=True)) / len(STEPS))
    return found


def job(k: int, limit: float, l: int, method: str) -> Job:
    columns: dict[str, Any] = {
        c: {"role": "quasi-identifying", "hierarchy": {"bands": list(s[1:])}} for c, s in STEPS.items()
    }
    columns["s"] = {"role": "sensitive"}
    privacy = {"k": k, "suppression_limit": limit, **({"l_diversity": {"column": "s", "l": l}} if l > 1 else {})}
    search = {"method": method, "loss": "prec"}
    part = {"source": "t", "person": "id", "columns": columns, "privacy": privacy, "search": search}
    return Job.parse({"tables": {"r": part}})


def test_the_optimum_is_the_optimum(tmp_path: Path, fuzz: tuple[int, float, bool]) -> None:
    first, minutes, alone = fuzz
    end, seed, none = time.monotonic() + 60 * minutes, first, 0
    while time.monotonic() < end:
        r = random.Random(seed)
        values = [*range(12), None]
        number = r.choice([6, 20, 60])
        rows = [(*(r.choice(values) for _ in STEPS), r.randrange(3)) for _ in range(number)]
        k, limit, l = r.choice([2, 3, 5]), r.choice([0.0, 0.1, 0.4]), r.choice([1, 1, 2])
        method = r.choice(["frontier", "best-first", "flash", "ola"][: 4 if not limit or l == 1 else 3])
        with duckdb.connect() as c:
            c.execute("CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER, c INTEGER, s INTEGER)")
            insert(c, "t", [(i, *row) for i, row in enumerate(rows)])
            wanted = losses(rows, k, limit, l)
            told = f"seed {seed}: {method}, k {k}, limit {limit}, l {l}"
            try:
                made = sqldeid.anonymize(job(k, limit, l, method), c).tables["r"]
            except sqldeid.NoSolutionError:
                assert not wanted, told
                none += 1
            else:
                assert wanted, told
                assert made.loss["prec"] == pytest.approx(min(wanted), abs=1e-12), told
                assert made.search.optimal, told
        seed += 1
        if alone:
            break
    print(f"\n{seed - first} tables from seed {first}, {none} without a solution")
