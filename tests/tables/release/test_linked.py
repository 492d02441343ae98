"""Linked tables against a join in pandas and a search of the whole product lattice; and the attack that links meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from math import floor
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from sqldeid.errors import JobError, NoSolutionError
from sqldeid.job import Job
from sqldeid.run import Options, anonymize, verify

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"
SEEDS = range(12)
PSEUDONYM = {"role": "identifying", "pseudonym": True}
QIS = {"A": ("a1", "a2"), "B": ("b1", "b2")}
LEAVES = ["u", "v", "w", "x"]
LEVELS = {  # leaf → label at each level, of each column
    "a1": {v: (v, "uv" if v in "uv" else "wx", "*") for v in LEAVES},
    "a2": {v: (v, "*") for v in LEAVES},
    "b1": {v: (v, "uvw" if v in "uvw" else v, "*") for v in LEAVES},
    "b2": {v: (v, "u" if v == "u" else "vwx", "*") for v in LEAVES},
}


@dataclass(frozen=True)
class Case:
    """Two tables of some persons each, and what is asked of both."""

    tables: dict[str, pd.DataFrame]
    k: dict[str, int]
    limit: dict[str, float]
    diversity: dict[str, int]

    def job(self, folder: Path) -> Job:
        for column, levels in LEVELS.items():
            lines = [";".join(labels) for labels in levels.values()]
            (folder / f"{column}.csv").write_text("\n".join(lines) + "\n")
        return Job.parse({"tables": {name: self._part(name) for name in self.tables}}, folder=folder)

    def _part(self, name: str) -> dict[str, object]:
        columns: dict[str, object] = {"id": PSEUDONYM, f"true_{name}": {"role": "insensitive"}}
        columns |= {c: {"role": "quasi-identifying", "hierarchy": f"{c}.csv"} for c in QIS[name]}
        columns[f"s_{name}"] = {"role": "sensitive"}
        privacy: dict[str, object] = {"k": self.k[name], "suppression_limit": self.limit[name]}
        if self.diversity[name] > 1:
            privacy["l_diversity"] = {"column": f"s_{name}", "l": self.diversity[name]}
        link = {"link": "A"} if name == "B" else {}
        return {"source": f"t_{name}", "person": "id", "columns": columns, "privacy": privacy, **link}

    def connect(self) -> duckdb.DuckDBPyConnection:
        c = duckdb.connect()
        for name, frame in self.tables.items():
            c.register("frame", frame)
            c.execute(f"CREATE TABLE t_{name} AS SELECT * FROM frame")
            c.unregister("frame")
        return c


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    tables = {}
    for name, qis in QIS.items():
        ids = rng.permutation(60)[: int(rng.integers(25, 60))]
        p = rng.dirichlet(np.full(len(LEAVES), 2.0))
        frame = pd.DataFrame({"id": ids, f"true_{name}": ids})
        for c in qis:
            frame[c] = rng.choice(LEAVES, size=len(ids), p=p)
        frame[f"s_{name}"] = rng.integers(0, 4, size=len(ids))
        tables[name] = frame
    both = {name: int(rng.integers(1, 5)) for name in QIS}
    limits = {name: float(rng.choice([0.0, 0.1, 0.3])) for name in QIS}
    return Case(tables, both, limits, {name: int(rng.integers(1, 3)) for name in QIS})


def nodes() -> Iterator[tuple[int, ...]]:
    return product(*(range(len(next(iter(LEVELS[c].values())))) for qis in QIS.values() for c in qis))


def failing_of(case: Case, joined: pd.DataFrame, node: tuple[int, ...]) -> pd.Series:
    """Which persons are in a class of the join that is too small, or not diverse enough in either table's column."""
    columns = [c for qis in QIS.values() for c in qis]
    labels = [joined[c].map({v: up[x] for v, up in LEVELS[c].items()}) for c, x in zip(columns, node, strict=True)]
    classes = joined.groupby(labels)
    failing = classes["id"].transform("size") < max(case.k.values())
    for name, l in case.diversity.items():
        failing |= classes[f"s_{name}"].transform("nunique") < l
    return failing


def loss_of(joined: pd.DataFrame, failing: pd.Series, node: tuple[int, ...]) -> Fraction:
    """Share of a column's values that each cell may stand for; 1 for each suppressed cell."""
    columns = [c for qis in QIS.values() for c in qis]
    total = Fraction(0)
    for c, x in zip(columns, node, strict=True):
        label = {v: up[x] for v, up in LEVELS[c].items()}
        width = {v: sum(other == label[v] for other in label.values()) for v in LEAVES}
        for v, suppressed in zip(joined[c], failing, strict=True):
            total += 1 if suppressed else Fraction(width[v] - 1, len(LEAVES) - 1)
    return total / (len(joined) * len(columns))


@cache
def solved(seed: int) -> tuple[Case, pd.DataFrame, tuple[Fraction, int, tuple[int, ...]] | None]:
    """A case, its join, and the least lossy node with its loss and how many persons it suppresses."""
    case = random_case(seed)
    joined = case.tables["A"].merge(case.tables["B"], on="id")
    allowed = floor(Fraction(str(min(case.limit.values()))) * len(joined))
    found = []
    for node in nodes():
        failing = failing_of(case, joined, node)
        if failing.sum() <= allowed:
            found.append((loss_of(joined, failing, node), int(failing.sum()), node))
    return case, joined, min(found, default=None)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "key").write_text(KEY)
    return Options(key_file=tmp_path / "key")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_lossy_node_of_the_join(seed: int, tmp_path: Path, options: Options) -> None:
    case, joined, best = solved(seed)
    job = case.job(tmp_path)
    with case.connect() as c:
        if best is None:
            with pytest.raises((NoSolutionError, JobError)):
                anonymize(job, c, options=options)
            return
        result = anonymize(job, c, options=options)
        released = {name: c.execute(f"SELECT * FROM release.{name}").df() for name in QIS}
        assert set(verify(job, c, options=options)) == set(QIS)
    loss, suppressed, node = best
    for name in QIS:
        r = result.tables[name]
        assert tuple(r.linked["node"].values()) == node
        assert (r.rows, r.suppressed) == (len(joined), suppressed)
        assert r.loss["loss"] == pytest.approx(float(loss), rel=1e-12)
        assert r.search.optimal
    left = set(joined.loc[~failing_of(case, joined, node), "id"])
    assert set(released["A"]["true_A"]) == set(released["B"]["true_B"]) == left
    _assert_private(case, released)


def _assert_private(case: Case, released: dict[str, pd.DataFrame]) -> None:
    """The join, as whoever holds both tables makes it: right, whole, and of classes that meet every criterion."""
    both = released["A"].merge(released["B"], on="id", how="outer", indicator=True, validate="one_to_one")
    assert (both["_merge"] == "both").all()
    assert (both["true_A"] == both["true_B"]).all()
    classes = both.groupby([c for qis in QIS.values() for c in qis])
    assert classes.size().ge(max(case.k.values())).all()
    for name, l in case.diversity.items():
        assert classes[f"s_{name}"].nunique().ge(l).all()


@pytest.mark.deep
def test_cases_are_of_every_kind() -> None:
    """Some cases suppress persons, some do not, some have persons in one table only, and criteria of both."""
    found = [solved(seed) for seed in SEEDS]
    assert any(best is not None and best[1] and any(best[2]) for _, _, best in found)
    assert any(best is not None and any(best[2]) and not best[1] for _, _, best in found)
    assert any(len(joined) < len(case.tables[name]) for case, joined, _ in found for name in QIS)
    assert any(len(set(case.k.values())) > 1 and max(case.diversity.values()) > 1 for case, _, _ in found)


GRID = 5


def _grid(link: bool) -> tuple[Job, duckdb.DuckDBPyConnection]:
    """25 persons: each value of `a` is five persons', each value of `b` too, and each pair one person's."""
    c = duckdb.connect()
    c.execute(f"CREATE TABLE p AS SELECT i AS id, 'a' || i % {GRID} AS a, 'b' || i // {GRID} AS b FROM RANGE(25) r(i)")
    part = {"source": "p", "person": "id", "privacy": {"k": GRID}}
    qi = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    tables = {name: {**part, "columns": {"id": PSEUDONYM, name: qi}} for name in ("a", "b")}
    if link:
        tables["b"]["link"] = "a"
    return Job.parse({"tables": tables}), c


def test_unlinked_tables_cannot_be_joined(options: Options) -> None:
    """Each is 5-anonymous as it stands; their join would single everybody out, and their pseudonyms do not join."""
    job, c = _grid(link=False)
    result = anonymize(job, c, options=options)
    assert [r.node for r in result.tables.values()] == [{"a": 0}, {"b": 0}]
    assert c.execute("SELECT COUNT(*) FROM release.a JOIN release.b USING (id)").fetchone() == (0,)
    assert c.execute("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM p GROUP BY a, b)").fetchone() == (1,)


def test_linked_tables_single_nobody_out(options: Options) -> None:
    job, c = _grid(link=True)
    result = anonymize(job, c, options=options)
    assert {r.k for r in result.tables.values()} == {GRID}
    both = "release.a AS x JOIN release.b AS y USING (id)"
    assert c.execute(f"SELECT COUNT(*) FROM {both}").fetchone() == (25,)
    least = c.execute(f"SELECT MIN(n) FROM (SELECT COUNT(*) AS n FROM {both} GROUP BY x.a, y.b)").fetchone()
    assert least == (GRID,)
    assert verify(job, c, options=options)["b"].linked == ("a", "b")
