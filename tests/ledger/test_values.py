"""Each change of a value that a release shows is one to its ledger, and no other is: an oracle over all types.

Between two nights one value of each of some persons changes, in a column of each type at once. What a release of the
second night shows without a ledger is compared bit by bit with the first; what the ledger took down, by its own hashes.
"""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.keys import Key
from sqldeid.ledger.hashing import hash_persons, hash_values
from tests.support.ledgers import KEY, ledger, run
from tests.support.sources import INSENSITIVE, job, qi, release

K = 4
VALUES: dict[str, list[str]] = {
    "DOUBLE": ["0.0", "-0.0", "nan", "-nan", "inf", "-inf", "0.1", "0.30000000000000004", "0.3", "5e-324"],
    "FLOAT": ["0.0", "-0.0", "nan", "-nan", "inf", "0.1", "16777216", "16777218"],
    "TIMESTAMPTZ": [
        *("0044-03-15 (BC) 01:00:00+00", "0044-03-15 01:00:00+00", "0001-01-01 00:00:00+00", "infinity", "-infinity"),
        *("2020-03-01 12:00:00.000001+00", "2020-03-01 12:00:00+00", "2020-03-01 12:00:00+05:30"),
    ],
    "TIMESTAMP": ["0044-03-15 (BC) 01:00:00", "0044-03-15 01:00:00", "2020-03-01", "infinity", "-infinity"],
    "TIMESTAMP_NS": ["2020-03-01 12:00:00.000000001", "2020-03-01 12:00:00", "1969-12-31 23:59:59.999999999"],
    "DATE": ["0044-03-15 (BC)", "0044-03-15", "2020-02-29", "infinity", "-infinity", "0001-12-31 (BC)"],
    "TIME": ["00:00:00", "24:00:00", "00:00:00.000001"],
    "TIMETZ": ["12:00:00+00", "13:00:00+01", "12:00:00+01", "12:00:00-00:00:01"],
    "VARCHAR": ["", " ", "a", "A", "a ", "NULL", "ä", "a\u0308", "1", "1.0", "\n"],
    "INTEGER": ["0", "-1", "1", "2147483647"],
    "HUGEINT": ["0", "-170141183460469231731687303715884105727", "170141183460469231731687303715884105727"],
    "DECIMAL(9,2)": ["0", "0.01", "-0.01", "1.00", "1000000.00"],
    "BOOLEAN": ["true", "false"],
    "UUID": ["00000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000000"],
    "BLOB": ["", "\\x00", "\\x5Cx00", "a"],
    "BIT": ["0", "00", "1", "01"],
    "INTERVAL": ["1 month", "30 days", "720 hours", "1 year -2 months", "10 months", "-1 day 01:00:00", "-23:00:00"],
    "DOUBLE[]": ["[0.0]", "[-0.0]", "[NULL]", "[]", "[0.0, 0.0]", "[nan]"],
    "VARCHAR[]": ["[]", "['']", "[NULL]", "['NULL']", "['a, b']", "['a', 'b']"],
    "STRUCT(a VARCHAR, b VARCHAR)": ["{'a': 'x', 'b': 'y'}", "{'a': 'x, b: y', 'b': NULL}", "{'a': 'NULL', 'b': NULL}"],
}
AS_TEXT = ("HUGEINT", "TIMETZ", "BIT", "UUID", "INTERVAL")
"""What Arrow does not give out as it is stored; equal values have one text, and others another."""


def literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def value_of(type_: str, value: str | None) -> str:
    """SQL of a value; the sign of NaN is one of arithmetic."""
    if value == "-nan":
        return f"-CAST('nan' AS {type_})"
    return f"CAST({literal(value)} AS {type_})"


def pairs_of(type_: str, seed: int) -> list[tuple[str | None, str | None]]:
    """What values change to: each pair of a type's, in some order, and to and from NULL."""
    draw = random.Random(f"{seed} {type_}")
    found: list[tuple[str | None, str | None]] = list(combinations([None, *VALUES[type_]], 2))
    return [pair if draw.random() < 0.5 else (pair[1], pair[0]) for pair in draw.sample(found, len(found))]


def fill(folder: Path, types: list[str], seed: int) -> None:
    """Persons by fours, each four with a pair of each type, and a hundred whose values stay."""
    (folder / "key").write_text(KEY)
    pairs = {t: pairs_of(t, seed) for t in types}
    rows = max(map(len, pairs.values()))
    number = {t: f"c{i}" for i, t in enumerate(types)}
    with duckdb.connect(folder / "db.duckdb") as c:
        for night in (0, 1):
            c.execute(
                f"CREATE TABLE night_{night} (id BIGINT, age INTEGER, "
                + ", ".join(f"{number[t]} {t}" for t in types)
                + ")"
            )
            for row in range(rows):
                values = ", ".join(value_of(t, pairs[t][row % len(pairs[t])][night]) for t in types)
                c.execute(f"INSERT INTO night_{night} SELECT {K * row} + i, 20, {values} FROM RANGE({K}) AS r(i)")
        c.execute(f"INSERT INTO night_0 SELECT id + 10000, * EXCLUDE (id) FROM night_0 WHERE id % {K} = 0")
        c.execute("INSERT INTO night_0 SELECT id + 10000, * EXCLUDE (id) FROM night_0 WHERE id >= 10000")
        c.execute("INSERT INTO night_1 SELECT * FROM night_0 WHERE id >= 10000")


def asked(folder: Path, types: list[str], night: int, into: str) -> sqldeid.Job:
    columns = {"age": qi({"bands": [10]}), **{f"c{i}": INSENSITIVE for i in range(len(types))}, "mark": INSENSITIVE}
    source = {"query": f"SELECT *, id AS mark FROM night_{night}"}
    return job({"into": into}, folder, people=release(columns, source=source, person="id", k=K, limit=0.5))


def shown(folder: Path, file: str, types: list[str]) -> dict[int, list[bytes]]:
    """By person, the bits of each value that a release shows."""
    read = ", ".join(f"CAST(c{i} AS VARCHAR) AS c{i}" if t in AS_TEXT else f"c{i}" for i, t in enumerate(types))
    with duckdb.connect(folder / file, read_only=True) as c:
        c.execute("SET TimeZone = 'UTC'")
        found = c.sql(f"SELECT mark, {read} FROM release.people").to_arrow_table()
    return {m: [bits(found, f"c{i}", at) for i in range(len(types))] for at, m in enumerate(found["mark"].to_pylist())}


def bits(found: pa.Table, name: str, row: int) -> bytes:
    alone = found.select([name]).take([row]).combine_chunks()
    return bytes(alone.to_batches()[0].serialize())


@pytest.mark.duckdb14
@pytest.mark.parametrize("seed", [1, 2])
def test_each_change_that_a_release_shows_is_one_to_the_ledger(tmp_path: Path, seed: int) -> None:
    types = list(VALUES)
    fill(tmp_path, types, seed)
    run(tmp_path, asked(tmp_path, types, 0, "out.duckdb"))
    run(tmp_path, asked(tmp_path, types, 1, "naive.duckdb"), ledger=None)
    before, after = shown(tmp_path, "out.duckdb", types), shown(tmp_path, "naive.duckdb", types)
    made = run(tmp_path, asked(tmp_path, types, 1, "out.duckdb")).releases["people"]
    assert made.ledger is not None and made.ledger["held_back"] == 0, "those who change alike are four"
    people = dict(ledger(tmp_path, "SELECT person, number FROM people"))
    told = {(n, f) for n, f in ledger(tmp_path, "SELECT number, field FROM contents WHERE since = 2")}
    marks = pa.chunked_array([pa.array([str(m) for m in before])])
    hashed = hash_persons(Key(bytes.fromhex(KEY)), "integer", marks).to_pylist()
    wrong = [
        (types[i], mark)
        for mark, person in zip(before, hashed, strict=True)
        for i in range(len(types))
        if (before[mark][i] != after[mark][i]) != ((people[person], f"c{i}") in told)
    ]
    assert not wrong
    changed = {types[i] for m in before for i in range(len(types)) if before[m][i] != after[m][i]}
    assert changed == {*types}


@pytest.mark.duckdb14
@pytest.mark.parametrize("into", ["out.duckdb", "out"])
def test_a_release_shows_no_sign_of_a_zero_or_of_nan(tmp_path: Path, into: str) -> None:
    """No comparison of values sees it, so that nothing would hold a change of it back."""
    with duckdb.connect(tmp_path / "db.duckdb") as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, x, x AS y, CAST(x AS FLOAT) AS z, LEAST(x, 0) AS top FROM (SELECT "
            "i, [-0.0, 0.0, -CAST('nan' AS DOUBLE), CAST('nan' AS DOUBLE), -1.5][1 + i % 5] AS x "
            "FROM RANGE(50) AS r(i))"
        )
    top = {**INSENSITIVE, "top_code": 90}
    columns = {"x": qi(), "y": INSENSITIVE, "z": {"role": "sensitive"}, "top": top}
    place = {"into": into} | ({"as": "parquet"} if into == "out" else {})
    wanted = job(place, tmp_path, people=release(columns, source="people", person="id", k=4))
    sqldeid.anonymize(wanted, tmp_path / "db.duckdb")
    sqldeid.verify(wanted, tmp_path / "db.duckdb")
    with duckdb.connect() as c:
        c.execute(f"ATTACH '{tmp_path / 'out.duckdb'}' AS o (READ_ONLY)" if into != "out" else "SELECT 1")
        there = "o.release.people" if into != "out" else f"'{tmp_path / 'out' / 'people.parquet'}'"
        for name, others in {"x": 3, "y": 3, "z": 3, "top": 2}.items():
            found = c.execute(f"SELECT DISTINCT CAST({name} AS VARCHAR) FROM {there}").fetchall()
            assert not {"-0.0", "-nan"} & {text for (text,) in found}
            assert len(found) == others


def test_members_of_a_union_are_not_told_apart_and_refused(tmp_path: Path) -> None:
    """1 and '1' are two values of it with one text."""
    (tmp_path / "key").write_text(KEY)
    with duckdb.connect(tmp_path / "db.duckdb") as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, 20 AS age, "
            "CAST(UNION_VALUE(n := i % 3) AS UNION(n BIGINT, t VARCHAR)) AS u, "
            "[{'u': UNION_VALUE(n := i)}] AS nested FROM RANGE(20) AS r(i)"
        )
    for name in ("u", "nested"):
        columns = {"age": qi({"bands": [10]}), name: INSENSITIVE}
        held = job({"into": "out.duckdb"}, tmp_path, people=release(columns, source="people", person="id", k=4))
        with pytest.raises(JobError, match=rf"columns\.{name}: is of type .*UNION.*cast it to text in a source query"):
            run(tmp_path, held)
    query = {"query": "SELECT id, age, CAST(u AS VARCHAR) AS u FROM people"}
    columns = {"age": qi({"bands": [10]}), "u": INSENSITIVE}
    run(tmp_path, job({"into": "out.duckdb"}, tmp_path, people=release(columns, source=query, person="id", k=4)))


def test_a_moment_before_christ_is_another_than_after() -> None:
    """As each engine writes it: Postgres BC behind the zone, DuckDB before the time, Spark a negative year."""
    texts = ["0044-03-15 01:00:00+00", "0044-03-15 01:00:00+00 BC", "0044-03-15 (BC) 01:00:00+00"]
    texts += ["-0043-03-15 01:00:00+00", "infinity", "-infinity"]
    rows = pa.chunked_array([pa.array(texts)])
    found = hash_values(Key(bytes.fromhex(KEY)), "c", "TIMESTAMP WITH TIME ZONE", rows).to_pylist()
    assert len({*found}) == len(texts)
    assert len({*hash_persons(Key(bytes.fromhex(KEY)), "TIMESTAMP WITH TIME ZONE", rows).to_pylist()}) == len(texts)


def test_a_set_operation_in_a_source_query_shows_a_change_as_the_ledger_does(tmp_path: Path) -> None:
    """What it makes of 1 and '1' is what leaves; where its type changes between two nights, the ledger refuses."""
    (tmp_path / "key").write_text(KEY)
    with duckdb.connect(tmp_path / "db.duckdb") as c:
        c.execute("CREATE TABLE people AS SELECT i AS id, 20 AS age, i % 3 AS n FROM RANGE(40) AS r(i)")
    held = []
    for second in ("'1'", "'1'", "'x'", None):
        more = f"SELECT 999 AS id, 20 AS age, {second} AS n" if second else "SELECT 999 AS id, 20 AS age, 1 AS n"
        query = {
            "query": f"SELECT id, age, CAST(n AS {'VARCHAR' if second else 'BIGINT'}) AS n FROM people UNION {more}"
        }
        part = release({"age": qi({"bands": [10]}), "n": INSENSITIVE}, source=query, person="id", k=K, limit=0.5)
        asked_ = job({"into": "out.duckdb"}, tmp_path, people=part)
        if second is None:
            with pytest.raises(JobError, match="n: is of type integer, and was of type text"):
                run(tmp_path, asked_)
            break
        held.append(run(tmp_path, asked_).releases["people"].ledger["held_back"])  # type: ignore[index]
    assert held == [0, 0, K]
