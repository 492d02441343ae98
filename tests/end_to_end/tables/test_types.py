"""Columns of every type, hostile names, and sizes at the edge: they work, or the message says what is too much."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from sqldeid.errors import HierarchyError, JobError, SqldeidError
from sqldeid.job import Job
from sqldeid.run import anonymize, plan, verify
from tests.support.files import read, write
from tests.support.sources import INSENSITIVE, SENSITIVE, everything, job, qi, release

DAYS = "TO_DAYS(CAST(i % 3 AS INTEGER))"
MOMENT = f"TIMESTAMP '2020-01-01 01:02:03.004005' + {DAYS}"

TYPES = {
    "TINYINT": "CAST(i % 3 - 1 AS TINYINT)",
    "SMALLINT": "CAST(i % 3 - 1 AS SMALLINT)",
    "INTEGER": "CAST(i % 3 - 1 AS INTEGER)",
    "BIGINT": "CAST(i % 3 + 9223372036854775805 AS BIGINT)",
    "UTINYINT": "CAST(i % 3 + 253 AS UTINYINT)",
    "USMALLINT": "CAST(i % 3 AS USMALLINT)",
    "UINTEGER": "CAST(i % 3 AS UINTEGER)",
    "UBIGINT": "CAST(i % 3 AS UBIGINT) + 18446744073709551613",
    "HUGEINT": "CAST(i % 3 AS HUGEINT) - 170141183460469231731687303715884105727",
    "UHUGEINT": "CAST(i % 3 AS UHUGEINT)",
    "DECIMAL(38,10)": "CAST(CAST(i % 3 AS DECIMAL(10, 5)) / 8 AS DECIMAL(38, 10))",
    "DECIMAL(4,1)": "CAST(CAST(i % 3 AS DECIMAL(4, 1)) - 0.5 AS DECIMAL(4, 1))",
    "FLOAT": "CAST(['nan', 'inf', '-0.0', '0.0', '0.1', '-inf'][1 + i % 6] AS FLOAT)",
    "DOUBLE": "CAST(['nan', 'inf', '-0.0', '0.0', '0.1', '5e-324'][1 + i % 6] AS DOUBLE)",
    "BOOLEAN": "i % 2 = 0",
    "DATE": f"CAST(DATE '2020-02-28' + {DAYS} AS DATE)",
    "TIMESTAMP": MOMENT,
    "TIMESTAMP_S": f"CAST({MOMENT} AS TIMESTAMP_S)",
    "TIMESTAMP_MS": f"CAST({MOMENT} AS TIMESTAMP_MS)",
    "TIMESTAMP_NS": "MAKE_TIMESTAMP_NS(1577836800000000001 + i % 3)",
    "TIMESTAMP WITH TIME ZONE": f"CAST({MOMENT} AS TIMESTAMPTZ)",
    "TIME": "TIME '01:02:03.000004' + TO_HOURS(i % 3)",
    "ENUM": "CAST(['b', 'a', 'c'][1 + i % 3] AS ENUM ('b', 'a', 'c', 'UNUSED'))",
    "UUID": "CAST('00000000-0000-0000-0000-00000000000' || i % 3 AS UUID)",
    "VARCHAR": "['a''b\"c', CHR(10) || CHR(13) || 'x', '😀', CHR(0) || 'nul', '', '*', ' ', 'NULL', 'ﬃ'][1 + i % 9]",
    "BIT": "CAST(CAST(i % 3 AS INTEGER) AS BIT)",
}
NESTED = {
    "BIGINT[]": "[i % 3]",
    "STRUCT(a BIGINT)": "{'a': i % 3}",
    "MAP(VARCHAR, BIGINT)": "MAP {'a': i % 3}",
    "INTEGER[2]": "CAST([i % 3, 1] AS INTEGER[2])",
    "BLOB": "CAST(CAST(i % 3 AS VARCHAR) AS BLOB)",
    "JSON": "CAST('{\"a\": ' || i % 3 || '}' AS JSON)",
    "INTERVAL": "CASE WHEN i % 2 = 0 THEN INTERVAL 1 MONTH ELSE INTERVAL 30 DAYS END",
    "UNION(a BIGINT)": "UNION_VALUE(a := i % 3)",
}
IN_PARQUET_OTHERWISE = {"HUGEINT", "UHUGEINT", "TIMESTAMP_S", "TIMESTAMP_MS", "BIT"}
ROWS = 90
TEXT = "CASE WHEN CAST(x AS VARCHAR) = '-0.0' THEN '0.0' ELSE CAST(x AS VARCHAR) END"
"""A released value, for comparison; both zeros are one."""


def source(c: duckdb.DuckDBPyConnection, value: str, nulls: bool) -> None:
    value = f"CASE WHEN i % 5 > 0 THEN {value} END" if nulls else value
    c.execute(f"CREATE TABLE t AS SELECT {value} AS x, i // 30 AS y FROM RANGE({ROWS}) AS r(i)")


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("type_", "nulls"), [*((t, True) for t in TYPES), ("INTEGER", False), ("VARCHAR", False)])
def test_quasi_identifiers_of_every_type(tmp_path: Path, type_: str, nulls: bool) -> None:
    with duckdb.connect() as c:
        source(c, TYPES[type_], nulls)
        wanted = job(
            {"into": str(tmp_path / "out.duckdb")},
            kept=release({"x": qi(), "y": INSENSITIVE}),
            top=release({"x": qi(), "y": INSENSITIVE}, k=ROWS),
            text=release({"x": qi(), "y": INSENSITIVE}, text=True),
            blank=release({"x": qi(), "y": qi()}, k=4, limit=0.5, suppression="blank"),
        )
        found = anonymize(wanted, c).releases
        assert verify(wanted, c)["kept"].released == ROWS
        classes = c.execute("SELECT COUNT(DISTINCT x) + MAX(CAST(x IS NULL AS INTEGER)) FROM t").fetchall()[0][0]
        assert [found[n].node["x"] for n in ("kept", "top", "text")] == [0, 1, 0]
        assert found["kept"].classes == found["text"].classes == classes
        with duckdb.connect(str(tmp_path / "out.duckdb")) as plain:
            types = {n: plain.execute(f"SELECT TYPEOF(x) FROM release.{n} LIMIT 1").fetchall()[0][0] for n in found}
            rows = plain.execute(f"SELECT {TEXT}, y FROM release.kept ORDER BY ALL").fetchall()
        wide = "VARCHAR" if type_ == "ENUM" else type_
        assert types == {"kept": wide, "top": "VARCHAR", "text": "VARCHAR", "blank": "VARCHAR"}
        assert rows == c.execute(f"SELECT {TEXT}, y FROM t ORDER BY ALL").fetchall()


@pytest.mark.sampled(13)
@pytest.mark.parametrize("role", ["quasi-identifying", "insensitive"])
@pytest.mark.parametrize("type_", TYPES)
def test_parquet_keeps_every_type_or_says_so(tmp_path: Path, type_: str, role: str) -> None:
    part = release({"x": qi() if role == "quasi-identifying" else INSENSITIVE, "y": qi()})
    wanted = job({"into": str(tmp_path / "out"), "as": "parquet"}, r=part)
    with duckdb.connect() as c:
        source(c, TYPES[type_], nulls=True)
        if type_ in IN_PARQUET_OTHERWISE:
            with pytest.raises(JobError, match=f"columns.x: Parquet cannot hold the type {type_}"):
                anonymize(wanted, c)
            assert not (tmp_path / "out").exists()
            return
        anonymize(wanted, c)
        there = c.execute(f"SELECT TYPEOF(x) FROM '{tmp_path}/out/r.parquet' LIMIT 1").fetchall()[0][0]
        assert there == ("VARCHAR" if type_ == "ENUM" else type_)
        assert verify(wanted, c)["r"].released == ROWS


LATE = {"HUGEINT": "CAST(1 AS HUGEINT)", "unnamed STRUCT": "ROW(1, 'a')", "BIT": "CAST('101' AS BIT)"}
LATE |= {"nested": "{'a': [ROW(1, 2)]}", "MAP": "MAP {'a': CAST(1 AS HUGEINT)}", "TIMESTAMP_S": TYPES["TIMESTAMP_S"]}
NAMED = ["{'HUGEINT': 1, 'BIT': 'TUPLE(', 'a b': TIMESTAMPTZ '2020-01-01 00:00:00+00'}", "[{'TIMESTAMP_S': [1.5]}]"]


@pytest.mark.parametrize("type_", LATE)
def test_what_parquet_cannot_hold_is_refused_while_planning(tmp_path: Path, type_: str) -> None:
    """It was refused after the search, an unnamed STRUCT without its column. Field names are no types."""
    wanted = job({"into": str(tmp_path / "out"), "as": "parquet"}, r=release({"x": INSENSITIVE, "y": qi()}))
    with duckdb.connect() as c:
        try:
            source(c, LATE[type_], nulls=True)
        except duckdb.InvalidInputException:
            pytest.skip("not applicable: in this DuckDB no table has an unnamed struct")
        with pytest.raises(JobError, match=r"tables\.r\.columns\.x: Parquet cannot hold the type"):
            plan(wanted, c)
        for named in NAMED:
            c.execute("DROP TABLE t")
            source(c, named, nulls=True)
            plan(wanted, c)


@pytest.mark.parametrize("type_", sorted(IN_PARQUET_OTHERWISE))
def test_a_quasi_identifying_column_that_parquet_cannot_hold_is_refused_while_planning(
    tmp_path: Path, type_: str
) -> None:
    """Its own type may leave at level 0; as text it never does."""
    target = {"into": str(tmp_path / "out"), "as": "parquet"}
    with duckdb.connect() as c:
        source(c, TYPES[type_], nulls=True)
        with pytest.raises(JobError, match=rf"tables\.r\.columns\.x: Parquet cannot hold the type {type_}"):
            plan(job(target, r=release({"x": qi(), "y": INSENSITIVE})), c)
        plan(job(target, r=release({"x": qi(), "y": INSENSITIVE}, text=True)), c)
        plan(job(target, r=release({"x": qi(), "y": INSENSITIVE}, suppression="blank")), c)


def test_a_state_that_parquet_cannot_hold_is_refused_while_planning(tmp_path: Path) -> None:
    part = {"source": "t", "object": "y", "order": "y", "state": ["x"], "privacy": {"method": "none"}}
    wanted = Job.parse({"release": {"into": "out", "as": "parquet"}, "events": {"e": part}}, folder=tmp_path)
    with duckdb.connect() as c:
        source(c, "CAST(i % 3 AS HUGEINT)", nulls=False)
        with pytest.raises(JobError, match=r"events\.e\.state: Parquet cannot hold the type HUGEINT"):
            plan(wanted, c)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("type_", NESTED)
def test_nested_types_are_released_but_never_quasi_identifying(tmp_path: Path, type_: str) -> None:
    with duckdb.connect() as c:
        source(c, NESTED[type_], nulls=False)
        with pytest.raises(JobError, match="cannot be quasi-identifying; cast it to text in a source query") as raised:
            anonymize(job(r=release({"x": qi()})), c)
        assert raised.value.key == "tables.r.columns.x"
        wanted = job({"into": str(tmp_path / "out.duckdb")}, r=release({"y": qi(), "x": INSENSITIVE}))
        anonymize(wanted, c)
        assert verify(wanted, c)["r"].released == ROWS
        assert (
            read(tmp_path / "out.duckdb", "SELECT y, x FROM release.r ORDER BY ALL")
            == c.execute("SELECT y, x FROM t ORDER BY ALL").fetchall()
        )


@pytest.mark.parametrize("shape", ["{0}[]", "STRUCT(a {0})", "MAP({0}, INTEGER)"])
def test_an_enum_within_a_type_is_refused_without_its_values(shape: str) -> None:
    type_ = shape.format("ENUM ('SECRET', 'it''s, (b]')")
    with duckdb.connect() as c:
        c.execute(f"CREATE TABLE t AS SELECT CAST(NULL AS {type_}) AS x, i % 2 AS y FROM RANGE(20) AS r(i)")
        for columns in ({"x": qi(), "y": qi()}, {"x": SENSITIVE, "y": qi()}):
            with pytest.raises(JobError, match="cast it to text") as raised:
                anonymize(job(r=release(columns)), c)
            assert "SECRET" not in raised.value.message
            assert "it's" not in raised.value.message
            assert "(b]" not in raised.value.message


def test_an_enum_leaves_as_text_alone(tmp_path: Path) -> None:
    with duckdb.connect() as c:
        c.execute("CREATE TYPE mood AS ENUM ('SECRETMOOD', 'fine', 'odd')")
        c.execute(
            """CREATE TABLE t AS SELECT CAST(['fine', 'odd'][1 + i % 2] AS mood) AS x, CAST('odd' AS mood) AS y
               FROM RANGE(20) AS r(i)"""
        )
        for kind in ("table", "parquet"):
            anonymize(job({"into": str(tmp_path / kind), "as": kind}, r=release({"x": qi(), "y": INSENSITIVE})), c)
            assert b"SECRETMOOD" not in everything(tmp_path / kind)


INTERNAL = (
    "w0 w1 n size place alike fingerprint copy prefix label value original code id s e c r v h0 l0 m0 q0 q1 ec rows "
    "keyed persons kept counted number suppressed sqldeid node level class ordered labelled"
).split()
HOSTILE = [
    "select", 'we"ird; DROP TABLE x; --', "ünïcode", "with  spaces", "a.b", "'", '""', "{{ 7*7 }}", "%s", "$1", "?",
    ":x", "x" * 200, "\n", "😀", "group", "*", "(", "\\", "--", "/*",
]  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("others", [False, True])
def test_columns_with_the_names_of_our_own(others: bool) -> None:
    with duckdb.connect() as c:
        values = ", ".join(f'(i * {j + 3}) % 2 AS "{name}"' for j, name in enumerate(INTERNAL))
        c.execute(f"CREATE TABLE t AS SELECT {values} FROM RANGE(60) AS r(i)")
        for start in (0, 1) if others else (0,):
            columns = {name: qi() if not others or j % 2 == start else INSENSITIVE for j, name in enumerate(INTERNAL)}
            done = anonymize(job({"schema": f"s{start}"}, r=release(columns, k=5, limit=0.1)), c).releases["r"]
            assert done.released == 60
            by = ", ".join(f'"{n}"' for n in INTERNAL)
            assert (
                c.execute(f"SELECT {by} FROM s{start}.r ORDER BY ALL").fetchall()
                == c.execute(f"SELECT {by} FROM t ORDER BY ALL").fetchall()
            )


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
def test_hostile_names(tmp_path: Path, kind: str) -> None:
    """Of columns, releases, schemas, source schemas and tables, and of the person key."""

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    names = [n for n in HOSTILE if kind != "parquet" or not set("/\\") & set(n)]
    with duckdb.connect() as c:
        c.execute(f"CREATE SCHEMA {quoted(HOSTILE[1])}")
        table = f"{quoted(HOSTILE[1])}.{quoted(HOSTILE[7])}"
        values = ", ".join(f"'v' || (i * {j + 3}) % 2 AS {quoted(n)}" for j, n in enumerate(names))
        c.execute(f'CREATE TABLE {table} AS SELECT i AS "person; --", {values} FROM RANGE(60) AS r(i)')
        part = release(
            {n: qi() if j % 2 else INSENSITIVE for j, n in enumerate(names)}, source=table, k=5, person="person; --"
        )
        releases = [n for n in HOSTILE if not set("/\\\0") & set(n) and not n.startswith(".")][:3]
        target = {"into": str(tmp_path / "o'ut \"x"), "as": kind}
        target |= {} if kind == "parquet" else {"schema": HOSTILE[1]}
        wanted = job(target, **dict.fromkeys(releases, part))
        found = anonymize(wanted, c)
        assert [r.released for r in found.releases.values()] == [60] * len(releases)
        assert all(v.released == 60 for v in verify(wanted, c).values())
    if kind != "parquet":
        with duckdb.connect(str(tmp_path / "o'ut \"x")) as plain:
            for name in releases:
                relation = plain.execute(f"FROM {quoted(HOSTILE[1])}.{quoted(name)}")
                assert [d[0] for d in relation.description or []] == names


@pytest.mark.parametrize("schema", ["information_schema", "pg_catalog", "temp", "system", "main", "MAIN"])
def test_a_schema_of_duckdbs_own(tmp_path: Path, schema: str) -> None:
    """Either the release is there, or nothing is."""
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t AS SELECT i % 2 AS a FROM RANGE(20) AS r(i)")
        target = tmp_path / "out.duckdb"
        try:
            anonymize(job({"into": str(target), "schema": schema}, r=release({"a": qi()})), c)
        except SqldeidError:
            assert not target.exists()
        else:
            assert read(target, f'SELECT COUNT(*) FROM "out"."{schema}".r') == [(20,)]


def run(c: duckdb.DuckDBPyConnection, part: dict[str, object]) -> object:
    return anonymize(job(r=part), c).releases["r"]


def test_small_tables() -> None:
    with duckdb.connect() as c:
        c.execute("CREATE TABLE one AS SELECT 1 AS a, 'x' AS b")
        done = anonymize(job(r=release({"a": qi(), "b": qi()}, source="one", k=1)), c).releases["r"]
        assert (done.released, done.classes, done.k) == (1, 1, 1)
        c.execute("CREATE TABLE same AS SELECT 5 AS a, CAST(NULL AS DATE) AS b FROM RANGE(7)")
        done = anonymize(job({"schema": "x"}, r=release({"a": qi(), "b": qi()}, source="same", k=7)), c).releases["r"]
        assert (done.released, done.k, set(done.node.values())) == (7, 7, {0})
        assert done.loss["loss"] == 0
        assert c.execute("SELECT DISTINCT a, b FROM x.r").fetchall() == [(5, None)]
        c.execute("CREATE TABLE none AS SELECT 5 AS a WHERE FALSE")
        with pytest.raises(JobError, match="has no rows"):
            anonymize(job({"schema": "e"}, r=release({"a": qi()}, source="none")), c)
        c.execute("CREATE TABLE n AS SELECT i AS a FROM RANGE(9) AS r(i)")
        done = anonymize(job({"schema": "y"}, r=release({"a": qi()}, source="n", k=9)), c).releases["r"]
        assert (done.released, done.k, done.node) == (9, 9, {"a": 1})
        with pytest.raises(JobError, match="k is 10, but n has only 9 rows"):
            anonymize(job({"schema": "e"}, r=release({"a": qi()}, source="n", k=10)), c)


def test_a_hundred_thousand_distinct_values(tmp_path: Path) -> None:
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t AS SELECT i // 3 AS a, 'v' || i // 3 AS b FROM RANGE(300000) AS r(i)")
        wanted = job({"into": str(tmp_path / "o")}, r=release({"a": qi({"bands": [10, 1000]}), "b": qi()}, k=5))
        done = anonymize(wanted, c).releases["r"]
        assert done.released == 300_000
        assert done.node["b"] == 1
        assert verify(wanted, c)["r"].k == done.k == 30


def test_twenty_quasi_identifiers_of_eight_bits(tmp_path: Path) -> None:
    """160 bits: three words."""
    with duckdb.connect() as c:
        columns = {f"c{j}": qi({"bands": [16]}) for j in range(20)}
        values = ", ".join(f"(i * {2 * j + 3} + {j}) % 200 AS c{j}" for j in range(20))
        c.execute(f"CREATE TABLE t AS SELECT {values} FROM (SELECT i % 200 AS i FROM RANGE(2000) AS r(i))")
        wanted = job({"into": str(tmp_path / "o")}, r=release(columns, k=10))
        done = anonymize(wanted, c).releases["r"]
        assert (done.released, done.classes, done.k) == (2000, 200, 10)
        assert set(done.node.values()) == {0}
        assert verify(wanted, c)["r"].classes == 200
        by = ", ".join(columns)
        assert (
            read(tmp_path / "o", f"SELECT {by} FROM release.r ORDER BY ALL")
            == c.execute(f"SELECT {by} FROM t ORDER BY ALL").fetchall()
        )


@pytest.mark.deep
def test_sixty_quasi_identifiers() -> None:
    """A lattice of 2^60 nodes starts, and ends with an answer or a bound."""
    with duckdb.connect() as c:
        values = ", ".join(f"(i * {j + 3}) % 2 AS c{j}" for j in range(60))
        c.execute(f"CREATE TABLE t AS SELECT {values} FROM RANGE(500) AS r(i)")
        columns = {f"c{j}": qi() for j in range(60)}
        done = anonymize(job(r=release(columns, k=5)), c).releases["r"]
        assert (done.search.lattice_size, done.released, set(done.node.values())) == (2**60, 500, {0})
        c.execute("UPDATE t SET c7 = rowid")
        part = release(columns, k=5, search={"checks_limit": 60})
        done = anonymize(job({"schema": "x"}, r=part), c).releases["r"]
        assert done.k >= 5
        assert done.node["c7"] == 1


def test_a_lattice_of_one_node(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("x\n")
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t AS SELECT 'x' AS a FROM RANGE(6)")
        part = release({"a": qi("one.csv")}, k=6)
        done = anonymize(job({}, tmp_path, r=part), c).releases["r"]
        assert (done.released, done.search.lattice_size in (1, 2)) == (6, True)
        with pytest.raises(JobError, match="k is 7"):
            anonymize(job({"schema": "y"}, tmp_path, r=release({"a": qi("one.csv")}, k=7)), c)


@pytest.mark.parametrize(("odd", "released"), [(1, 12), (3, 15)])
def test_blanked_rows(odd: int, released: int) -> None:
    """Rows of small classes stay with every quasi-identifier at its top; fewer than k of them are dropped."""
    with duckdb.connect() as c:
        c.execute(f"""CREATE TABLE t AS SELECT CASE WHEN i < 12 THEN 'common' ELSE 'rare' || i END AS a, i AS other
                      FROM RANGE({12 + odd}) AS r(i)""")
        part = release({"a": qi(), "other": INSENSITIVE}, k=3, limit=0.3, suppression="blank")
        done = anonymize(job(r=part), c).releases["r"]
        assert (done.node, done.suppressed, done.released) == ({"a": 0}, odd, released)
        expected = [("*", 3), ("common", 12)] if odd == 3 else [("common", 12)]
        assert c.execute("SELECT a, COUNT(*) FROM release.r GROUP BY a ORDER BY a").fetchall() == expected


def test_blanked_rows_join_a_class_that_is_at_the_top() -> None:
    with duckdb.connect() as c:
        c.execute("""CREATE TABLE t AS SELECT CASE WHEN i < 12 THEN 'common' WHEN i < 16 THEN '*' ELSE 'rare' END AS a
                     FROM RANGE(17) AS r(i)""")
        part = release({"a": qi()}, k=3, limit=0.3, suppression="blank")
        done = anonymize(job(r=part), c).releases["r"]
        assert (done.suppressed, done.released, done.k) == (1, 17, 5)
        found = c.execute("SELECT a, COUNT(*) FROM release.r GROUP BY a ORDER BY a").fetchall()
        assert found == [("*", 5), ("common", 12)]


@pytest.mark.parametrize("mode", ["refuse", "top", "prefix"])
def test_uncovered_values(tmp_path: Path, mode: str) -> None:
    (tmp_path / "h.csv").write_text("ab;a;*\nac;a;*\nb;b;*\n")
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t AS SELECT ['ab', 'ac', 'b', 'abSECRET'][1 + i % 4] AS a FROM RANGE(40) AS r(i)")
        wanted = job({}, tmp_path, r=release({"a": qi("h.csv", uncovered=mode)}, k=11))
        if mode == "refuse":
            with pytest.raises(HierarchyError, match=r"does not cover 1 value of t.a \(10 rows\)") as raised:
                anonymize(wanted, c)
            assert "SECRET" not in raised.value.message
            return
        assert anonymize(wanted, c).releases["r"].released == 40
        found = c.execute("SELECT a, COUNT(*) FROM release.r GROUP BY a ORDER BY a").fetchall()
        assert found == [("*", 40)]
        assert verify(wanted, c)["r"].released == 40


def test_collated_columns_are_released_as_duckdb_compares_them(tmp_path: Path) -> None:
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t (a VARCHAR COLLATE NOCASE, b VARCHAR COLLATE NOCASE)")
        c.execute("INSERT INTO t SELECT ['x', 'X'][1 + i % 2], ['y', 'Y'][1 + i % 2] FROM RANGE(6) AS r(i)")
        wanted = job({"into": str(tmp_path / "o")}, r=release({"a": qi(), "b": INSENSITIVE}, k=6))
        done = anonymize(wanted, c).releases["r"]
        assert (done.k, done.node) == (6, {"a": 0})
        assert len(set(read(tmp_path / "o", "SELECT a FROM release.r"))) == 1


@pytest.mark.parametrize("name", ["seen", "last seen"])
@pytest.mark.parametrize(
    "asked",
    [{"role": "insensitive", "shift": "person"}, {"role": "insensitive", "to": "month"}, qi({"dates": ["month"]})],
    ids=["shift", "to", "dates"],
)
def test_a_moment_is_told_the_cast_that_works(tmp_path: Path, name: str, asked: dict[str, object]) -> None:
    """It has a date only in a zone: by the cast in UTC, by a view of the database in another."""
    source, quoted = tmp_path / "source.duckdb", name if name.isidentifier() else f'"{name}"'
    moment = f"TIMESTAMPTZ '2024-01-01 23:30:00+00' + TO_DAYS(CAST(i % 40 AS INTEGER)) AS {quoted}"
    write(source, f"CREATE TABLE visits AS SELECT i AS id, i % 3 AS sex, {moment} FROM RANGE(400) AS r(i)")
    columns = {"sex": qi(), name: asked}
    with pytest.raises(JobError, match="reads it in UTC") as raised:
        plan(job({"into": str(tmp_path / "out")}, r=release(columns, source="visits", person="id")), source)
    told = re.search(r"write (.+) in a source query.* with (.+), for example", raised.value.message)
    assert told, raised.value.message
    cast, view = told.groups()
    write(source, f"CREATE VIEW local AS SELECT id, sex, {view} FROM visits")
    for place, made in (("utc", {"query": f"SELECT id, sex, {cast} FROM visits"}), ("local", "local")):
        into = tmp_path / f"{place}.duckdb"
        asking = job({"into": str(into)}, r=release(columns, source=made, person="id", suppression="drop"))
        anonymize(asking, source)
        verify(asking, source)
        if "shift" in asked:  # a shift is of whole days
            times = read(into, f"SELECT DISTINCT CAST(CAST({quoted} AS TIME) AS VARCHAR) FROM release.r")
            assert times == [("23:30:00" if place == "utc" else "00:30:00",)]
