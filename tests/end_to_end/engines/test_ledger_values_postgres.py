"""Each change of a value that a release in Postgres shows is one to its ledger, and no other is: an oracle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.keys import Key
from sqldeid.ledger.hashing import hash_persons
from tests.support.foreign import InPostgres, in_postgres
from tests.support.ledgers import KEY
from tests.support.sources import INSENSITIVE, qi, release

K = 4
VALUES = {
    "float8": ["0", "-0", "NaN", "Infinity", "-Infinity", "0.3", "0.30000000000000004"],
    "float4": ["0", "-0", "NaN", "0.1", "16777216", "16777218"],
    "timestamptz": ["0044-03-15 01:00:00+00 BC", "0044-03-15 01:00:00+00", "infinity", "2020-03-01 12:00:00+05:30"],
    "timestamp": ["0044-03-15 01:00:00 BC", "0044-03-15 01:00:00", "-infinity", "2020-03-01 12:00:00.000001"],
    "date": ["0044-03-15 BC", "0044-03-15", "infinity", "2020-02-29"],
    "time": ["00:00:00", "24:00:00", "00:00:00.000001"],
    "timetz": ["12:00:00+00", "13:00:00+01", "12:00:00+01"],
    "text": ["", " ", "a", "A", "NULL", "1", "1.0"],
    "numeric(9,2)": ["0", "0.01", "-0.01", "NaN"],
    "boolean": ["true", "false"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000000"],
    "varbit": ["0", "00", "1", ""],
}
BITS = {"float8": "FLOAT8SEND", "float4": "FLOAT4SEND"}
PAIRS = {t: list(combinations([None, *values], 2)) for t, values in VALUES.items()}


@pytest.fixture(scope="module")
def there(postgres_cluster: str) -> Iterator[InPostgres]:
    with in_postgres(postgres_cluster) as found:
        yield found


def fill(there: InPostgres, night: int) -> None:
    columns = ", ".join(f"c{i} {t}" for i, t in enumerate(VALUES))
    with there.connect() as c:
        c.execute("DROP TABLE IF EXISTS people")
        c.execute(f"CREATE TABLE people (id BIGINT, mark BIGINT, age INTEGER, {columns})".encode())
        insert = f"INSERT INTO people VALUES (%s, %s, 20, {', '.join(['%s'] * len(VALUES))})"
        rows: list[tuple[object, ...]] = []
        for row in range(max(map(len, PAIRS.values()))):
            pairs = [PAIRS[t][row % len(PAIRS[t])] for t in VALUES]
            four = range(K * row, K * row + K)
            rows += [(i, i, *(pair[night] for pair in pairs)) for i in four]
            rows += [(1000 + i, 1000 + i, *(pair[0] for pair in pairs)) for i in four]
        with c.cursor() as cursor:
            cursor.executemany(insert.encode(), rows)


def shown(there: InPostgres, schema: str) -> dict[int, tuple[object, ...]]:
    """By person, what a release shows of each column: the bits of a float, the text of any other."""
    read = ", ".join(f"CAST({BITS.get(t, '')}(c{i}) AS TEXT)" for i, t in enumerate(VALUES))
    with there.connect() as c:
        c.execute("SET TimeZone = 'UTC'")
        return {row[0]: row[1:] for row in c.execute(f"SELECT mark, {read} FROM {schema}.people".encode()).fetchall()}


def test_each_change_that_a_release_shows_is_one_to_the_ledger(there: InPostgres, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    columns = {"age": qi({"bands": [10]}), "mark": INSENSITIVE, **{f"c{i}": INSENSITIVE for i in range(len(VALUES))}}
    part = release(columns, source="public.people", person="id", k=K, limit=0.5)
    held = sqldeid.Options(replace=True, ledger=tmp_path / "ledger.duckdb", key_file=tmp_path / "key")

    def make(schema: str, options: sqldeid.Options) -> Any:
        asked = sqldeid.Job.parse({"release": {"schema": schema}, "tables": {"people": part}})
        return sqldeid.anonymize(asked, there.database, options=options).releases["people"]

    fill(there, 0)
    make("held", held)
    before = shown(there, "held")
    fill(there, 1)
    make("naive", sqldeid.Options())
    after = shown(there, "naive")
    assert make("held", held).ledger["held_back"] == 0, "those who change alike are four"
    with duckdb.connect(tmp_path / "ledger.duckdb", read_only=True) as c:
        people = dict(c.execute("SELECT person, number FROM people").fetchall())
        told = {*c.execute("SELECT number, field FROM contents WHERE since = 2").fetchall()}
    marks = pa.chunked_array([pa.array([str(m) for m in before])])
    hashed = hash_persons(Key(bytes.fromhex(KEY)), "integer", marks).to_pylist()
    assert not [
        (t, mark)
        for mark, person in zip(before, hashed, strict=True)
        for i, t in enumerate(VALUES)
        if (before[mark][i] != after[mark][i]) != ((people[person], f"c{i}") in told)
    ]
    assert all(any(before[m][i] != after[m][i] for m in before) for i in range(len(VALUES)))
    zeros = {row[i] for row in (*before.values(), *after.values()) for i, t in enumerate(VALUES) if t in BITS}
    assert not zeros & {"\\x8000000000000000", "\\x80000000"}, "no sign of a zero leaves"
