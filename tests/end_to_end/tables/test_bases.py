"""Classes that stay in the source engine: the release is that of exhaustive search, and of a run that brings all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from sqldeid import NoSolutionError, Options, anonymize, verify_certificates
from tests.support.files import read
from tests.support.foreign import Foreign, bag, foreign, in_duckdb
from tests.support.foreign_tables import RELEASES, people, told
from tests.support.oracle import Table, exhaustive
from tests.support.sources import SENSITIVE, job, qi, release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqldeid.job import Job

__all__ = ["foreign"]

BASES = sys.modules["sqldeid.tables.check.bases"]
SPARK = importlib.import_module("sqldeid.engine.spark")
CHECK = sys.modules["sqldeid.tables.check.check"]
LEVELS = 4


def random_table(seed: int, *, entropy: bool) -> Table:
    """Three columns of eight leaves, merged in pairs, fours and all; some values are frequent."""
    random = np.random.default_rng(seed)
    leaves = tuple(range(8))
    levels = tuple(tuple(x >> shift for x in leaves) for shift in range(LEVELS))
    rows = int(random.integers(20, 120))
    codes = tuple(
        tuple(int(c) for c in random.choice(8, size=rows, p=random.dirichlet(np.full(8, 0.7)))) for _ in range(3)
    )
    sensitive = (0, 1, 2, *(int(s) for s in random.choice(4, size=rows - 3, p=[0.55, 0.25, 0.15, 0.05])))
    k, diverse = int(random.choice([2, 3, 5])), 2 if entropy else 1
    return Table(codes, (levels,) * 3, (Fraction(1),) * 3, sensitive, k, diverse, entropy)


def rows_of(table: Table) -> pa.Table:
    columns = {f"c{j}": [f"v{code}" for code in codes] for j, codes in enumerate(table.codes)}
    return pa.table({**columns, "s": [f"s{value}" for value in table.sensitive]})


def job_of(table: Table, limit: float, folder: Path, search: dict[str, Any], name: str) -> Job:
    lines = [";".join([f"v{x}", *(f"{level}.{x >> level}" for level in range(1, LEVELS))]) for x in range(8)]
    (folder / "h.csv").write_text("\n".join(lines), encoding="utf-8")
    columns = {f"c{j}": qi("h.csv") for j in range(3)} | ({"s": SENSITIVE} if table.entropy else {})
    asked = release(columns, source=name, k=table.k, limit=limit, search=search)
    if table.entropy:
        asked["privacy"]["l_diversity"] = [{"column": "s", "l": table.l, "kind": "entropy"}]  # type: ignore[index]
    return job({}, folder, r=asked)


def assert_exhaustive(seed: int, load: Any, folder: Path) -> None:
    """A release of a random table is the node that looking at every node finds, whatever is brought at once."""
    random = np.random.default_rng(seed + 1)
    table = random_table(seed, entropy=bool(seed % 3 == 0))
    limit = float(random.choice([0.0, 0.05, 0.2]))
    method, loss = (
        str(random.choice(["frontier", "best-first", "flash"])),
        str(random.choice(["loss", "dm_star", "prec"])),
    )
    if loss != "loss" and not table.entropy and seed % 2:
        method = "ola"
    database, name = load(rows_of(table))
    job_ = job_of(table, limit, folder, {"method": method, "loss": loss}, name)
    allowed = int(Fraction(repr(limit)) * table.rows)
    expected = exhaustive(table, loss, allowed)
    with few_at_once(int(random.integers(1, len(table.classes((0, 0, 0))))), int(random.integers(1, 4))):
        if expected is None:
            with pytest.raises(NoSolutionError):
                anonymize(job_, database)
            return
        found = anonymize(job_, database, options=Options(replace=True, without_ledger=True)).releases["r"]
    assert tuple(found.node.values()) == expected
    assert found.search.optimal
    assert found.suppressed == table.evaluation(expected, allowed).failing
    assert found.loss[loss] == pytest.approx(float(table.loss(loss, expected)), rel=1e-9)
    assert found.loss["dm_star_original"] == table.loss("dm_star", (0, 0, 0))


@contextmanager
def few_at_once(most: int, kept: int = 6) -> Iterator[None]:
    """So many classes are too many to travel; and they do stay in the source engine."""
    rolled: list[object] = []
    roll_up = BASES.Bases._roll_up
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BASES, "most_classes", lambda bench: most)
        patch.setattr(BASES, "_KEPT", kept)
        patch.setattr(CHECK, "GROUPED_CLASSES", 3 * most)
        patch.setattr(CHECK, "LISTED_ROWS", most)
        patch.setattr(BASES.Bases, "_roll_up", lambda self, node: rolled.append(node) or roll_up(self, node))
        yield
    assert rolled


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(14))
def test_a_random_table_in_duckdb(seed: int, tmp_path: Path) -> None:
    assert_exhaustive(seed, lambda rows: (in_duckdb(tmp_path / "t.duckdb", {"t": rows}), "t"), tmp_path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(100, 104))
def test_a_random_table_elsewhere(seed: int, foreign: Foreign, tmp_path: Path) -> None:
    def load(rows: pa.Table) -> tuple[Any, str]:
        foreign.load(f"t{seed}", rows)
        return foreign.database, f"t{seed}"

    assert_exhaustive(seed, load, tmp_path)


def unattacked(found: Any) -> Any:
    """What is told of a release but its attacks: these read all classes, or are left out."""
    return {key: value for key, value in told(found).items() if key != "attacks"}


def assert_same(name: str, database: Any, rows: Callable[[str], list[Any]]) -> None:
    """Node, losses, effort, rows and certificate are those of a run that brings all classes."""
    options, wanted = (
        Options(certificate=True, replace=True, without_ledger=True),
        job({"schema": name}, r=RELEASES[name]),
    )
    near = anonymize(wanted, database, options=options).releases["r"]
    before = bag(rows(f'"{name}".r'))
    with few_at_once(5, 2):
        far = anonymize(wanted, database, options=options).releases["r"]
    assert unattacked(far) == unattacked(near)
    assert (far.search.checks, far.search.gap) == (near.search.checks, near.search.gap)
    assert bag(rows(f'"{name}".r')) == before
    assert far.certificate == near.certificate
    verify_certificates(wanted, database, {"r": far.certificate})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["blank", "types", "l entropy, blank", "t", "m"])
def test_criteria_and_proofs_in_duckdb(name: str, tmp_path: Path) -> None:
    file = in_duckdb(tmp_path / "people.duckdb", {"people": people()})

    def rows(table: str) -> list[Any]:
        return read(file, f"SELECT * FROM {table}")

    assert_same(name, file, rows)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["l distinct", "m"])
def test_criteria_and_proofs_elsewhere(name: str, foreign: Foreign) -> None:
    foreign.load("people", people())
    try:
        assert_same(name, foreign.database, foreign.read)
    finally:
        foreign.run('DROP TABLE "people"')  # type: ignore[attr-defined]


@pytest.mark.xdist_group("spark")
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Rolled up there, brought in portions that no statement gathers together: the release of DuckDB."""
    file = in_duckdb(tmp_path / "crowd.duckdb", {"crowd": people()})
    spark.createDataFrame(people()).createOrReplaceTempView("crowd")
    wanted = job({"schema": "of_bases"}, r={**RELEASES["l distinct"], "source": "crowd"})
    here = anonymize(wanted, file).releases["r"]
    portions: list[str] = []
    render = SPARK.render

    def rendering(template: str, *dialect: str, **parameters: Any) -> Any:
        portions.extend([template] if template == "engine/read_portion" else [])
        return render(template, *dialect, **parameters)

    with few_at_once(80, 2), pytest.MonkeyPatch.context() as patch:
        patch.setattr(SPARK, "PORTION", 1500)
        patch.setattr(SPARK, "render", rendering)
        there = anonymize(wanted, spark).releases["r"]
    assert len(portions) > 1
    assert unattacked(there) == unattacked(here)
    rows = spark.sql("SELECT * FROM of_bases.r").toArrow()
    assert bag(list(zip(*(x.to_pylist() for x in rows.columns), strict=True))) == bag(
        read(file, "SELECT * FROM of_bases.r")
    )
    spark.sql("DROP SCHEMA of_bases CASCADE")
    spark.catalog.dropTempView("crowd")
