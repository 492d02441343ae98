"""What must not leave is not in the bytes of a fresh release: neither in the file nor beside it."""

from __future__ import annotations

import struct
from pathlib import Path

import duckdb
import pytest

from sqldeid.errors import VerificationError
from sqldeid.run import anonymize
from sqldeid.tables.release import release as releasing
from tests.support.files import write
from tests.support.sources import FREE_TEXT, IDENTIFYING, INSENSITIVE, everything, job, listed, qi, release

ROWS = 120_000
PERSON = 0x5EC2E7_00_00000000  # person keys: distinctive eight bytes; the low ones count
EXACT = 0x4711CAFE_0000_0000  # level-0 values of a generalised number
WHOLE = ["CANARYNAME", "CANARYNOTE", "CANARYZIP", "CANARYRARE", "CANARYSIDE", "CANARYENUM", "CANARYOTHER"]

SOURCE = f"""CREATE TABLE t AS
    SELECT CAST({PERSON} + i AS BIGINT) AS person,
           'CANARYNAME' || i AS name,
           'CANARYNOTE ' || i || ' lives at the corner' AS note,
           'CANARYZIP' || LPAD(CAST(i % 60000 AS VARCHAR), 5, '0') AS zip,
           CAST({EXACT} + i AS BIGINT) AS exact,
           CASE WHEN i % 40000 = 7 THEN 'CANARYRARE' || i ELSE ['common', 'frequent'][1 + i % 2] END AS city,
           CASE WHEN i % 40000 = 7 THEN 'CANARYSIDE' || i ELSE 'side' || i % 3 END AS side,
           CAST(CASE WHEN i % 40000 = 7 THEN 'CANARYENUM' ELSE 'usual' END AS ENUM ('usual', 'CANARYENUM')) AS kind,
           CAST(CASE WHEN i % 40000 = 7 THEN 'CANARYOTHER' ELSE 'fine' END AS ENUM ('CANARYOTHER', 'fine')) AS extra,
           i % 7 AS seven
    FROM RANGE({ROWS}) AS r(i) ORDER BY HASH(i)"""

COLUMNS = {
    "person": IDENTIFYING,
    "name": IDENTIFYING,
    "note": FREE_TEXT,
    "zip": qi(),
    "exact": qi(),
    "city": qi(),
    "kind": qi(),
    "side": INSENSITIVE,
    "extra": INSENSITIVE,
    "seven": INSENSITIVE,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("canaries") / "source.duckdb", SOURCE)


def columns(*, others: bool) -> dict[str, object]:
    """With `others` the source is read again for the release; without, its classes alone are."""
    return {n: c for n, c in COLUMNS.items() if others or c["role"] != "insensitive"}


def released(target: Path, kind: str) -> duckdb.DuckDBPyConnection:
    c = duckdb.connect()
    if kind == "parquet":
        c.execute("CREATE SCHEMA release")
        c.execute(f"CREATE VIEW release.r AS FROM '{target}/r.parquet'")
    else:
        c.execute(f"ATTACH '{target}' AS target (READ_ONLY); USE target")
    return c


def assert_clean(target: Path) -> None:
    """Nothing that had to stay is in the bytes, spelled as text or as number of eight bytes in either order."""
    found = everything(target)
    assert b"common" in found or b"frequent" in found, "the release itself must be readable in its bytes"
    assert [w for w in WHOLE if w.encode() in found or w.encode("utf-16-le") in found] == []
    for number in (PERSON, EXACT):
        high = struct.pack("<q", number)[-4:]
        assert high not in found
        assert high[::-1] not in found
        assert str(number)[:9].encode() not in found


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("others", "suppression"), [(True, "drop"), (False, "drop"), (False, "blank")])
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
def test_nothing_that_stays_is_in_the_bytes(
    source: Path, tmp_path: Path, kind: str, others: bool, suppression: str
) -> None:
    target = tmp_path / "out"
    part = release(columns(others=others), k=5, limit=0.01, person="person", suppression=suppression)
    found = anonymize(job({"into": str(target), "as": kind}, r=part), source).releases["r"]
    assert found.suppressed == 3
    assert found.node == {"zip": 1, "exact": 1, "city": 0, "kind": 0}
    with released(target, kind) as c:
        cities = c.execute("SELECT DISTINCT city FROM release.r ORDER BY ALL").fetchall()
    assert cities == [("common",), ("frequent",)]
    assert listed(tmp_path) == ["out"]
    assert_clean(target)


def test_the_canaries_would_be_found(source: Path) -> None:
    """The source's own bytes hold them: the search above is not blind."""
    found = everything(source)
    assert [w for w in WHOLE if w.encode() in found] != []
    with pytest.raises(AssertionError):
        assert_clean(source)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_nothing_is_left_by_a_failed_attempt(
    source: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    wanted = job({"into": str(target), "as": kind}, r=release(columns(others=True), k=5, limit=0.01, person="person"))

    def refuse(*_: object, **__: object) -> None:
        raise VerificationError("not this time")

    with monkeypatch.context() as patched:
        patched.setattr(releasing, "verify", refuse)
        with pytest.raises(VerificationError):
            anonymize(wanted, source)
    assert listed(tmp_path) == []
    anonymize(wanted, source)
    assert listed(tmp_path) == ["out"]
    assert_clean(target)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_order_says_nothing_beyond_the_content(tmp_path: Path, kind: str, others: bool) -> None:
    """300,000 rows in two physical orders, written by two threads: one file's rows are the other's, in one order."""
    rows = []
    for order in ("HASH(i)", "-i"):
        target = tmp_path / str(len(rows))
        with duckdb.connect(config={"threads": 2}) as c:
            c.execute(
                f"""CREATE TABLE t AS SELECT CASE WHEN i % 11 > 0 THEN i % 11 END AS a, 'b' || i % 13 AS b, i % 97 AS x,
                       CASE WHEN i % 5 > 0 THEN 'y' || i % 101 END AS y
                    FROM RANGE(300000) AS r(i) ORDER BY {order}"""
            )
            part = {"a": qi(), "x": INSENSITIVE, "b": qi(), "y": INSENSITIVE}
            part = {n: v for n, v in part.items() if others or v is not INSENSITIVE}
            anonymize(job({"into": str(target), "as": kind}, r=release(part, k=5)), c)
        with released(target, kind) as c:
            names = ["a", "b", *(["x", "y"] if others else [])]
            by = ", ".join(f"{n} NULLS LAST" for n in names)
            rows.append(c.execute(f"SELECT {', '.join(names)} FROM release.r").fetchnumpy())
            ordered = c.execute(f"SELECT {', '.join(names)} FROM release.r ORDER BY {by}").fetchnumpy()
        for name in names:
            assert rows[-1][name].tolist() == ordered[name].tolist()
    assert len(rows[0]["a"]) == 300_000
    for name in rows[0]:
        assert rows[0][name].tolist() == rows[1][name].tolist()


def test_order_of_an_enum_is_that_of_its_text(tmp_path: Path) -> None:
    """The order in which a type lists its values is the source's."""
    target = tmp_path / "out.duckdb"
    with duckdb.connect() as c:
        c.execute("""CREATE TABLE t AS SELECT CAST(['zebra', 'ape'][1 + i % 2] AS ENUM ('zebra', 'ape')) AS e,
                            CAST(['yak', 'bee', 'cow'][1 + i % 3] AS ENUM ('yak', 'cow', 'bee')) AS f
                     FROM RANGE(60) AS r(i)""")
        anonymize(job({"into": str(target)}, r=release({"e": qi(), "f": INSENSITIVE}, k=5)), c)
    with released(target, "table") as c:
        rows = c.execute("FROM release.r").fetchall()
        assert rows == sorted(rows)
        assert {type_ for _, type_ in c.execute("SELECT e, TYPEOF(f) FROM release.r").fetchall()} == {"VARCHAR"}
