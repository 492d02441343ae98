"""Child tables in Postgres and on Spark: the classes and items that DuckDB releases, and a refused tampering."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from sqldeid import Job, Options, anonymize, plan, verify
from sqldeid.errors import VerificationError
from sqldeid.run import explain
from tests.support.child_tables import KEY, PSEUDONYM
from tests.support.foreign import Both, Foreign, foreign, hold_listed, in_duckdb, running
from tests.support.foreign_tables import told
from tests.support.on_spark import Both as BothSpark
from tests.support.on_spark import on_both
from tests.support.sources import INSENSITIVE, SENSITIVE, qi

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["foreign"]

K = 3
Rows = Callable[[str], list[tuple[Any, ...]]]


def tables(seed: int = 5, persons: int = 90) -> dict[str, pa.Table]:
    """Persons with a group that may be missing, their codes several times, those of strangers, and a NULL code."""
    draw = random.Random(seed)
    codes = [f"{letter}{digit}" for letter in ("a", "'b", "ü") for digit in range(4)]
    rows = [(i, draw.choice(codes)) for i in range(persons + 5) for _ in range(draw.randrange(7))]
    rows += [*rows[:40], (3, None)]
    return {
        "people": pa.table(
            {
                "id": pa.array(range(persons), pa.int64()),
                "select": [None if i % 11 == 0 else "f" if i % 2 else "it's" for i in range(persons)],
                "true_id": pa.array(range(persons), pa.int64()),
            }
        ),
        "codes": pa.table(
            {
                "id": pa.array([i for i, _ in rows], pa.int64()),
                "code": [code for _, code in rows],
                "do se": pa.array(
                    [None if i % 7 == 0 else draw.choice([0.5, -1.0, 3.0]) for i, _ in rows], pa.float64()
                ),
            }
        ),
        "tree": pa.table({"code": codes, "letter": [code[:-1] for code in codes]}),
    }


def wanted(schema: str, kind: str = "table", *, sensitive: bool = False, place: dict[str, str] | None = None) -> Job:
    parent = {
        **{"source": "people", "person": "id", "attacks": False, "privacy": {"k": K, "suppression_limit": 0.2}},
        **{"columns": {"id": PSEUDONYM, "select": qi(), "true_id": INSENSITIVE}},
    }
    child = {
        **{"source": "codes", "person": "id", "parent": "people", "items": "code", "known": 2},
        **{
            "columns": {"code": qi({"table": "tree"}), **({"do se": SENSITIVE} if sensitive else {})},
            "privacy": {"k": K, "suppression_limit": 0.3},
        },
    }
    tables = {"people": parent, "items": child}
    if sensitive:  # a second child table, whose items are known beside those of the first
        query = "SELECT id, code FROM codes WHERE MOD(id, 3) > 0"
        tables["more_items"] = {**child, "source": {"query": query}, "columns": {"code": qi({"table": "tree"})}}
        tables["more_items"]["privacy"] = {"k": K, "suppression_limit": 1.0}
    return Job.parse({"release": place or {"schema": schema, "as": kind}, "tables": tables})


def seen(read: Rows, schema: str) -> tuple[dict[int, Any], list[tuple[Any, ...]]]:
    """The groups that are shown of true persons, and the items of each: pseudonyms are others in every publication."""
    people = read(f"{schema}.people")
    true = {pseudonym: person for pseudonym, _, person in people}
    assert len(true) == len(people)
    items = ((true[pseudonym], *rest) for pseudonym, *rest in read(f"{schema}.items"))
    return {t: g for _, g, t in people}, sorted(items, key=repr)


def fewest(groups: dict[int, Any], items: list[tuple[Any, ...]]) -> int:
    """Of all single items and pairs that somebody shows, the fewest persons of a group: counted by brute force."""
    counted = Counter[tuple[object, ...]]()
    for person, group in groups.items():
        mine = sorted({(label, level) for p, label, level, *_ in items if p == person})
        counted.update((group, one) for one in mine)
        counted.update((group, *pair) for pair in combinations(mine, 2))
    return min(counted.values())


def hold_alike(there: Any, here: Path, read: Rows, options: Options, *, sensitive: bool) -> None:
    schema = f"items_{sensitive}".lower()
    asked = wanted(schema, sensitive=sensitive)
    with running() as ran:
        made = anonymize(asked, there, options=options).releases
    listed = [step for unit in plan(asked, there) for step in explain(unit, asked, there).statements or ()]
    hold_listed(listed, {name for name in ran if name.startswith("tables/itemset")} | {s.template for s in listed})
    ours = anonymize(asked, here, options=options).releases
    assert {name: told(one) for name, one in made.items()} == {name: told(one) for name, one in ours.items()}
    assert made["items"].released
    assert made["items"].suppressed
    with duckdb.connect(str(here)) as c:
        same = seen(lambda table: c.execute(f"SELECT * FROM {table}").fetchall(), schema)
    groups, items = seen(read, schema)
    assert (groups, items) == same
    assert fewest(groups, items) == made["items"].fewest >= K
    checked, again = (verify(asked, where, options=options) for where in (there, here))
    assert {name: told(checked[name]) for name in made} == {name: told(again[name]) for name in made}
    assert all(checked[name].compared for name in made if name != "people")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "key").write_text(KEY)
    return Options(key_file=tmp_path / "key")


@pytest.fixture(scope="module")
def both(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Both:
    for name, rows in tables().items():
        foreign.load(name, rows)
    return Both(foreign, in_duckdb(tmp_path_factory.mktemp("both") / "people.duckdb", tables()))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sensitive", [False, True])
def test_a_child_in_postgres_is_that_of_duckdb(both: Both, options: Options, sensitive: bool) -> None:
    hold_alike(both.foreign.database, both.file, both.foreign.read, options, sensitive=sensitive)


@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_a_child_of_postgres_goes_into_files(both: Both, options: Options, tmp_path: Path, kind: str) -> None:
    place = {"into": str(tmp_path / "out"), "as": kind} if kind == "parquet" else {"into": str(tmp_path / "out.duckdb")}
    asked = wanted("files", place=place)
    made = anonymize(asked, both.foreign.database, options=options).releases
    assert made["items"].released
    assert verify(asked, both.foreign.database, options=options)["items"].compared


def test_items_that_were_changed_in_postgres_are_refused(both: Both, options: Options) -> None:
    asked = wanted("tampered", "view")
    anonymize(asked, both.foreign.database, options=options)
    verify(asked, both.foreign.database, options=options)
    both.foreign.run(  # type: ignore[attr-defined]
        "DELETE FROM tampered.items__snapshot WHERE ctid = (SELECT MIN(ctid) FROM tampered.items__snapshot)"
    )
    with pytest.raises(VerificationError, match="re-check"):
        verify(asked, both.foreign.database, options=options)


@pytest.fixture(scope="module")
def on_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothSpark]:
    with on_both(spark, tmp_path_factory.mktemp("children"), tables()) as there:
        yield there


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("sensitive", [False, True])
def test_a_child_on_spark_is_that_of_duckdb(on_spark: BothSpark, options: Options, sensitive: bool) -> None:
    hold_alike(on_spark.url, on_spark.file, on_spark.there, options, sensitive=sensitive)
