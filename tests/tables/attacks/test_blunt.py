"""Blunted levels: k and criteria hold, every admissible node may be drawn, and nothing finer is certain any more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from itertools import product
from math import prod
from pathlib import Path
from random import Random

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.tables.local.blunt import blunted as raised
from sqldeid.tables.local.layers import holding, layers_of
from sqldeid.tables.peel import partition
from sqldeid.tables.search import search
from sqldeid.tables.search.blunt import RARE, blunted
from tests.support.downcoded import Asked, Class, Released, Rows, local
from tests.support.local_problems import problems
from tests.support.oracle import problem_of, random_table
from tests.tables.attacks.test_downcoding import AGE, SEX, WARD


class Script:
    """Bits that were written down: numbers in order, then 0."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    def randrange(self, stop: int, /) -> int:
        return min(self.numbers.pop(0), stop - 1) if self.numbers else 0


@pytest.mark.parametrize("seed", range(12))
def test_each_admissible_node_is_drawn_by_some_bits_and_no_other(seed: int) -> None:
    table = random_table(seed, columns=2)
    allowed = table.rows // 5
    problem = problem_of(table, "loss", allowed)
    if all(table.evaluation(n, allowed).failing > allowed for n in product(*map(range, table.lattice.heights))):
        return
    found = search("frontier", problem)
    drawn = set()
    for node in product(*(range(h) for h in table.lattice.heights)):
        passes = table.evaluation(node, allowed).failing <= allowed
        outcome = blunted(problem_of(table, "loss", allowed), found, 0.5, Script(0, *node, 0))
        assert (outcome.node == node) or not passes
        assert table.evaluation(outcome.node, allowed).failing <= allowed
        assert outcome.loss == pytest.approx(float(table.loss("loss", outcome.node))) and not outcome.optimal
        assert outcome.gap == pytest.approx(outcome.loss - problem.loss.value(found.bound))
        drawn.add(outcome.node)
    assert drawn >= {
        n for n in product(*map(range, table.lattice.heights)) if table.evaluation(n, allowed).failing <= allowed
    }
    usual = blunted(problem_of(table, "loss", allowed), found, 0.5, Script(0, *found.node, 1))
    assert usual.loss <= found.loss * 1.05 + 1e-12 and RARE > 1


@given(problem=problems(), amount=st.sampled_from([0.1, 0.5, 0.9]), seed=st.integers(0, 9))
def test_classes_that_are_raised_keep_k_and_all_rows(problem, amount, seed) -> None:  # type: ignore[no-untyped-def]
    try:
        layers = layers_of(problem, partition(problem), blank=False)
    except sqldeid.SqldeidError:
        return
    found = raised(layers, amount, Random(seed))
    assert (found.released == layers.released).all() and holding(found).all()
    assert (found.levels >= layers.levels).all()


Outcome = tuple[Class | None, ...]


def outcomes(asked: Asked, found: Released, amount: float) -> Iterator[tuple[Outcome, float]]:
    """Every way in which the classes of a release may be raised, with its probability."""
    classes = sorted({c for c in found.classes if c is not None})
    ways = [ends(asked, tuple(x for x, _ in c), found.classes.count(c), amount) for c in classes]
    for nodes in product(*(way.items() for way in ways)):
        node_of = {c: node for c, (node, _) in zip(classes, nodes, strict=True)}
        shown = tuple(
            None if c is None else tuple((x, t[x][v]) for x, t, v in zip(node_of[c], asked.trees, row, strict=True))
            for row, c in zip(found.rows, found.classes, strict=True)
        )
        yield shown, prod(p for _, p in nodes)


def ends(asked: Asked, node: tuple[int, ...], rows: int, amount: float) -> dict[tuple[int, ...], float]:
    """The nodes that a class may end at, each with its probability."""
    below = [j for j, (x, tree) in enumerate(zip(node, asked.trees, strict=True)) if x < len(tree) - 1]
    on = amount ** (rows - asked.k + 1) if below else 0.0
    found = defaultdict(float, {node: 1 - on})
    for j in below if on else ():
        raised_ = (*node[:j], node[j] + 1, *node[j + 1 :])
        for end, p in ends(asked, raised_, rows, amount).items():
            found[end] += on * p / len(below)
    return found


def certain(asked: Asked, amount: float) -> dict[str, float]:
    """Columns above level 0 of classes, by what is certain of them by enumeration, in the mean of sources and draws."""
    weight: dict[Hashable, float] = defaultdict(float)
    seen: dict[Hashable, dict[tuple[Class, int], set[tuple[tuple[int, int], ...]]]] = {}
    sources = list(asked.sources())
    for rows in sources:
        for classes, p in outcomes(asked, local(asked, rows), amount):
            public = tuple(sorted(Counter(c for c in classes if c).items()))
            weight[public] += p / len(sources)
            _count(asked, rows, classes, seen.setdefault(public, defaultdict(set)))
    found = dict.fromkeys(("all", "exact", "present"), 0.0)
    for public, of in seen.items():
        for (mine, j), counts in of.items():
            level, group = mine[j]
            below = {t for t, g in zip(asked.trees[j][level - 1], asked.trees[j][level], strict=True) if g == group}
            found["all"] += weight[public]
            found["exact"] += weight[public] * (len(counts) == 1)
            found["present"] += weight[public] * all(len(c) == len(below) for c in counts)
    return found


def _count(asked, rows: Rows, classes, seen) -> None:  # type: ignore[no-untyped-def]
    for mine in {c for c in classes if c is not None}:
        for j, (level, _) in enumerate(mine):
            if level:
                below = asked.trees[j][level - 1]
                own = Counter(below[r[j]] for r, c in zip(rows, classes, strict=True) if c == mine)
                seen[mine, j].add(tuple(sorted(own.items())))


TABLES = [Asked((SEX, WARD), 2, 5), Asked((SEX, WARD), 2, 5, allowed=2), Asked((AGE,), 2, 6), Asked((SEX, SEX), 3, 7)]


@pytest.mark.deep
@pytest.mark.parametrize("asked", TABLES)
def test_blunted_local_classes_do_not_tell_which_finer_values_are_there(asked: Asked) -> None:
    """What the attack rests on is gone; some counts stay certain, of fewer classes."""
    plain, blunt = certain(asked, 0.0), certain(asked, 0.5)
    assert plain["present"] > 0 and blunt["present"] == 0
    assert blunt["exact"] / blunt["all"] < plain["exact"] / plain["all"] / 9


def job(folder: Path, blunt: object = True, **search: object) -> Job:
    columns = {c: {"role": "quasi-identifying", "hierarchy": "two.csv"} for c in "ab"}
    asked = {"blunt": blunt, **search}
    table = {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 3}, "search": asked}
    return Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "two.csv").write_text("x;*\ny;*\n")
    path = tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, CASE WHEN i % 3 = 0 THEN 'x' ELSE 'y' END AS a, "
            "CASE WHEN i % 7 < 2 THEN 'x' ELSE 'y' END AS b FROM range(40) AS r(i)"
        )
    return path


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_a_blunted_release_is_verified_and_has_no_certificate(method: str, source: Path) -> None:
    asked = job(source.parent, method=method)
    result = sqldeid.anonymize(asked, source, options=sqldeid.Options(certificate=True))
    release = result.releases["people"]
    assert release.k >= 3 and release.certificate is None
    assert any("there is no certificate" in w for w in release.warnings)
    assert any("each run draws others" in w for w in release.warnings)
    assert "certain" in dict(release.attacks.facts())["Undone"]
    sqldeid.verify(asked, source)


def test_what_blunting_is_not_proven_with_is_refused(source: Path, tmp_path: Path) -> None:
    for asked in ({"method": "datafly"}, {"method": "local", "layers": 2}, {"method": "mondrian"}):
        with pytest.raises(JobError, match="blunt"):
            job(source.parent, **asked)  # type: ignore[arg-type]
    for amount in (0.0, 1.0, 2):
        with pytest.raises(JobError, match="blunt"):
            job(source.parent, blunt=amount)
    (tmp_path / "key.txt").write_text(bytes(range(7, 39)).hex())
    options = sqldeid.Options(ledger=tmp_path / "kept.ledger", key_file=tmp_path / "key.txt")
    for method in ("frontier", "local"):
        with pytest.raises(JobError, match="blunt: is drawn anew"):
            sqldeid.anonymize(job(source.parent, method=method), source, options=options)
