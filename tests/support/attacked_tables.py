"""Tables for attacks, and the attacks once more, person by person: slow and obvious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sqldeid.engine.base import Engine
from sqldeid.engine.opening import open_connection
from sqldeid.sql import identifier
from sqldeid.tables.attacks.known import Known, Parted, Released, Secret, known_of
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.plan import plan as planning
from tests.support.sources import SENSITIVE, job, qi

COLUMNS = {"a": qi({"bands": [2, 6]}), "b": qi({"mask": [1]}), "c": qi(), "s": SENSITIVE, "u": SENSITIVE}
QIS = ("a", "b", "c")


@dataclass(frozen=True)
class Person:
    """A person: labels per column and level, attacked values by code, and whether released (else held out)."""

    labels: tuple[tuple[str, ...], ...]
    secrets: tuple[int, ...]
    train: bool
    shown: tuple[tuple[str, ...], tuple[int, ...]] | None
    """The labels and levels by which the person is released; None where not."""


def people(rows: int, seed: int, *, spread: int = 12) -> dict[str, list[Any]]:
    """Columns of a random table."""
    rng = np.random.default_rng(seed)
    return {
        "a": rng.integers(0, spread, rows).tolist(),
        "b": [f"{'xy'[i]}{j}" for i, j in rng.integers(0, 2, (rows, 2))],
        "c": ["f" if x else None for x in rng.integers(0, 2, rows)],
        "s": [None if x == 3 else f"v{x}" for x in rng.integers(0, 4, rows)],
        "u": rng.integers(0, 2, rows).tolist(),
    }


@contextmanager
def folded_table(table: dict[str, list[Any]], k: int = 2) -> Iterator[tuple[Engine, Folded]]:
    """The table folded with both sensitive columns."""
    with duckdb.connect() as c:
        c.register("given", pa.table(table))
        c.execute("CREATE TABLE t AS SELECT ROW_NUMBER() OVER () AS id, * FROM given")
        c.unregister("given")
        entries = [{"column": name, "l": 1 + (len(set(table[name])) > 1)} for name in ("s", "u")]
        privacy = {"k": k, "l_diversity": entries}
        part = {
            "source": "t",
            "person": "id",
            "columns": {"id": {"role": "identifying"}, **COLUMNS},
            "privacy": privacy,
        }
        release = job({}, Path(), t=part).tables["t"]
        with open_connection(c) as engine:
            engine.begin()
            yield engine, fold(planning.plan("t", release, engine, Path()), engine)


def known_table(engine: Engine, folded: Folded) -> Known:
    """The table as attacks see it."""
    secrets = [Secret(s.column.name, identifier(f"s{i}")) for i, s in enumerate(folded.sensitive)]
    assert folded.cells is not None
    return known_of(folded, folded.cells, secrets, engine.bench, "t")


def label_of(folded: Folded, column: int, word: int, level: int) -> str:
    """What a column shows at a level of the value whose code a word holds."""
    c = folded.columns[column]
    leaf = int(np.flatnonzero(c.codes == (word & c.field.mask(0)))[0])
    return str(c.hierarchy.labels[level][c.hierarchy.groups[level][leaf]])


def random_release(engine: Engine, folded: Folded, people: Any, seed: int, layers: int) -> Released:
    """Each combination at a random layer, or not released; equal labels are one class. It promises nothing."""
    rng = np.random.default_rng(seed)
    heights = [c.hierarchy.height for c in folded.columns]
    nodes = tuple(tuple(int(rng.integers(0, h)) for h in heights) for _ in range(layers))
    names = [w.name for w in folded.words]
    rows = engine.query(
        f"SELECT DISTINCT {', '.join(names)} FROM {people.sql()} WHERE train > 0 ORDER BY ALL"
    ).to_pylist()
    classes: dict[tuple[str, ...], int] = {}
    found: dict[str, list[int]] = {name: [] for name in (*names, "layer", "class")}
    for row in rows:
        layer = int(rng.integers(0, layers + 1))
        if layer:
            words = [row[f"w{c.field.word}"] for c in folded.columns]
            labels = tuple(label_of(folded, i, w, nodes[layer - 1][i]) for i, w in enumerate(words))
            number = classes.setdefault(labels, len(classes))
            for name, x in {**row, "layer": layer, "class": number}.items():
                found[name].append(x)
    return Released(nodes, engine.put("assigned", pa.table({n: pa.array(x, pa.int64()) for n, x in found.items()})))


def persons_of(engine: Engine, folded: Folded, known: Known, parted: Parted, made: Released) -> list[Person]:
    """Every person of a draw, one by one."""
    assigned = {}
    names = [w.name for w in folded.words]
    for row in engine.query(f"SELECT * FROM {made.assigned.sql()}").to_pylist():
        assigned[tuple(row[n] for n in names)] = row["layer"]
    found = []
    cells = engine.query(f"SELECT * FROM {known.cells.sql()} ORDER BY id").to_pylist()
    for row, train, held in zip(cells, parted.train.tolist(), parted.held.tolist(), strict=True):
        words = [row[f"w{c.field.word}"] for c in folded.columns]
        labels = tuple(
            tuple(label_of(folded, i, w, x) for x in range(c.hierarchy.height))
            for i, (w, c) in enumerate(zip(words, folded.columns, strict=True))
        )
        layer = assigned.get(tuple(row[n] for n in names))
        shown = None
        if layer is not None:
            node = made.nodes[layer - 1]
            shown = (tuple(of[x] for of, x in zip(labels, node, strict=True)), node)
        secrets = tuple(row[s.code.name] for s in known.secrets)
        found += [Person(labels, secrets, True, shown)] * train + [Person(labels, secrets, False, None)] * held
    return found


Row = tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]


def rows_of(persons: Sequence[Person]) -> list[Row]:
    """The released rows: labels, levels, values."""
    return [(p.shown[0], p.shown[1], p.secrets) for p in persons if p.shown is not None and p.train]


def fits(person: Person, labels: Sequence[str], levels: Sequence[int], within: Sequence[int]) -> bool:
    """Whether a person's labels at some levels are these, in some columns."""
    return all(person.labels[i][levels[i]] == labels[i] for i in within)


def slow_singling_out(persons: Sequence[Person], rows: Sequence[Row], *, values: bool) -> tuple[float, float]:
    """Released and held-out persons whom a predicate isolates."""

    def predicate(row: Row) -> tuple[object, ...]:
        return (row[0], row[2]) if values else (row[0],)

    counts = Counter(map(predicate, rows))
    every = range(len(persons[0].labels))
    train = [p for p in persons if p.train]
    levels_of: dict[object, set[tuple[int, ...]]] = {}
    for row in rows:
        levels_of.setdefault(row[0], set()).add(row[1])

    def meets(p: Person, row: Row) -> bool:
        same = not values or p.secrets == row[2]
        return same and any(fits(p, row[0], levels, every) for levels in levels_of[row[0]])

    alone = [row for row in rows if counts[predicate(row)] == 1]
    main = control = 0.0
    for p in persons:
        chances = [0.0]
        for row in alone:
            if meets(p, row):
                others = sum(meets(q, row) for q in train)
                if p.train:
                    chances.append(float(others == 1))
                else:  # one of the released persons, at random, has gone in exchange
                    chances.append({0: 1.0, 1: 1 / len(train)}.get(others, 0.0))
        if p.train:
            main += max(chances)
        else:
            control += max(chances)
    return main, control


def slow_linkability(persons: Sequence[Person], rows: Sequence[Row]) -> tuple[float, float]:
    """Released and held-out persons whose two parts lead to one row."""
    columns = range(len(persons[0].labels))
    found = [0.0, 0.0]
    for p in persons:
        both, one, other = (
            sum(fits(p, r[0], r[1], within) for r in rows) for within in (columns, columns[::2], columns[1::2])
        )
        found[not p.train] += both / (one * other) if both else 0.0
    return found[0], found[1]


def slow_inference(persons: Sequence[Person], rows: Sequence[Row], secret: int) -> tuple[float, float]:
    """Released and held-out persons whose value is guessed."""
    every = range(len(persons[0].labels))
    levels_of: dict[object, set[tuple[int, ...]]] = {}
    for row in rows:
        levels_of.setdefault(row[0], set()).add(row[1])
    found = [0.0, 0.0]
    for p in persons:
        near = [r for r in rows if any(fits(p, r[0], levels, every) for levels in levels_of[r[0]])]
        counted = Counter(r[2][secret] for r in (near or rows))
        best = [v for v, n in counted.items() if n == max(counted.values())]
        found[not p.train] += (p.secrets[secret] in best) / len(best) if best else 0.0
    return found[0], found[1]
