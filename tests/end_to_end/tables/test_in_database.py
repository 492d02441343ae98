"""Hierarchies whose levels stand in the database: equal to the same levels in a file, and refused where a file is."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sqldeid
from sqldeid import Options
from sqldeid.errors import HierarchyError, JobError, VerificationError
from sqldeid.hierarchy.files import from_rows
from sqldeid.run import explain
from sqldeid.tables.release.planned import TREE
from tests.support.sources import insert, job, qi, release

PARENTS = {"parents": "v.ancestor", "child": "c", "parent": "p", "separation": "sep", "depths": [2, 1]}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "s.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE SCHEMA v")
        c.execute("""CREATE TABLE t AS SELECT i AS id, CASE WHEN i < 290 THEN 100 + i % 20 END AS code,
            'z' || i % 20 AS "text", DATE '2101-03-01' + CAST(i % 20 AS INTEGER) AS born FROM RANGE(300) AS r(i)""")
        c.execute("""CREATE TABLE v.levels AS SELECT 100 + i AS "select", 'g' || i // 5 AS "a ""b", 'h' || i // 10 AS h
            FROM RANGE(20) AS r(i) UNION ALL SELECT NULL, 'g0', 'h0'""")
        c.execute("""CREATE TABLE v.ancestor AS
            SELECT 100 + i AS c, 1000 + i // 3 AS p, 1 AS sep FROM RANGE(20) AS r(i)
            UNION ALL SELECT 1000 + i // 3, 2000 + i // 6, 1 FROM RANGE(20) AS r(i)
            UNION ALL SELECT 100 + i, 2000 + i // 6, 2 FROM RANGE(20) AS r(i)
            UNION ALL SELECT 100 + i, 100 + i, 0 FROM RANGE(20) AS r(i)""")
    return path


def ran(at: Path, hierarchy: object, column: str = "code", **more: Any) -> tuple[list[tuple[Any, ...]], Any]:
    """The rows of a release and what was told; verified, too."""
    into = at.parent / f"{len(list(at.parent.iterdir()))}.duckdb"
    parts = {"source": "t", "person": "id", "k": 20} | more
    made = job({"into": into.name}, at.parent, r=release({column: qi(hierarchy)}, **parts))
    told = sqldeid.anonymize(made, at).releases["r"]
    assert sqldeid.verify(made, at)["r"].released == told.released
    with duckdb.connect(str(into)) as c:
        return c.execute("SELECT * FROM release.r ORDER BY ALL").fetchall(), told


def test_a_table_a_view_and_a_query_are_what_a_file_is(source: Path) -> None:
    with duckdb.connect(str(source)) as c:
        c.execute("CREATE VIEW v.seen AS SELECT * FROM v.levels")
        rows = c.execute("SELECT * FROM v.levels").fetchall()
    with (source.parent / "h.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    wanted, told = ran(source, "h.csv")
    assert len({row[0] for row in wanted}) == 4 and told.node == {"code": 1}
    for spec in (
        {"table": "v.levels"},
        {"table": "v.seen", "columns": ["SELECT", 'a "b', "h"]},
        {"table": "s.v.levels"},
        {"query": "WITH w AS (FROM v.levels) SELECT * FROM w ORDER BY h"},
        {"query": 'SELECT h, "select", "a ""b" AS g FROM v.levels', "columns": ["select", "g", "h"]},
    ):
        found, other = ran(source, spec)
        assert (found, other.node, other.loss) == (wanted, told.node, told.loss)


def test_links_are_what_their_tree_is_in_a_file(source: Path) -> None:
    with (source.parent / "h.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(
            (100 + i, 1000 + i // 3, 2000 + (i // 3) // 2, "*") for i in range(20)
        )
    rows = "SELECT * FROM t WHERE code IS NOT NULL"
    wanted, told = ran(source, "h.csv", source={"query": rows})
    found, other = ran(source, PARENTS, source={"query": rows})
    assert (found, other.node) == (wanted, told.node) and len(set(found)) > 3


def test_leaves_are_read_by_the_type_of_the_column(source: Path) -> None:
    with duckdb.connect(str(source)) as c:
        c.execute("CREATE TABLE v.zeros AS SELECT '00' || (100 + i) AS leaf, 'g' || i // 5 AS g FROM RANGE(20) AS r(i)")
        c.execute("CREATE TABLE v.days AS SELECT born AS leaf, 'w' || day(born) // 7 AS w FROM t GROUP BY ALL")
        c.execute("CREATE TABLE v.names AS SELECT DISTINCT \"text\" AS leaf, 'x' AS g FROM t")
    whole = {"query": "SELECT * FROM t WHERE code IS NOT NULL"}
    assert len(set(ran(source, {"table": "v.zeros"}, source=whole)[0])) == 4
    assert len(set(ran(source, {"table": "v.days"}, "born")[0])) > 2
    with pytest.raises(HierarchyError, match="does not cover 20 values"):
        ran(source, {"table": "v.zeros"}, "text")
    with duckdb.connect(str(source)) as c:
        c.execute("INSERT INTO v.zeros VALUES ('100', 'g3')")
    with pytest.raises(HierarchyError, match="1 row has a value that another row has with other labels") as refused:
        ran(source, {"table": "v.zeros"}, source=whole)
    assert "00100" not in refused.value.message


REFUSED = {
    "no rows": ("SELECT 1 AS leaf, 'a' AS b WHERE 1 = 0", "it has no rows"),
    "torn": ("SELECT * FROM (VALUES (1, 'a', 'b'), (2, 'a', 'c'), (3, 'd', 'b')) AS t(x, y, z)", "does not nest"),
    "two lines": ("SELECT * FROM (VALUES (1, 'a'), (1, 'b')) AS t(x, y)", "1 row has a value"),
    "two for NULL": ("SELECT * FROM (VALUES (NULL::INTEGER, 'a'), (NULL, 'b')) AS t(x, y)", "1 row has a value"),
    "nothing above": ("SELECT 1 AS leaf, NULL::VARCHAR AS top", "the last column is NULL throughout"),
    "floats": ("SELECT 1 AS leaf, 1.5::DOUBLE AS g", "is of type DOUBLE"),
    "lists": ("SELECT [1] AS leaf, 'g' AS g", r"is of type INTEGER\[\]"),
    "files": ("SELECT * FROM read_csv('h.csv')", "read_csv"),
    "two columns of one name": ("SELECT 1 AS a, 'b' AS A", "(?i)a"),
    "two statements": ("SELECT 1 AS a; DROP TABLE t", "exactly one query"),
    "counts of persons": ("SELECT code, COUNT(*) AS n FROM t GROUP BY code", "looks across its rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_hierarchy_is_refused_by_its_key(name: str, source: Path) -> None:
    query, reason = REFUSED[name]
    with pytest.raises(JobError, match=reason) as refused:
        ran(source, {"query": query})
    assert (
        refused.value.message.startswith("job: tables.r.columns.code") and refused.value.message.count("tables.r.") == 1
    )


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"table": "v.nothing"}, "there is no table"),
        ({"table": "v.levels", "columns": ["select", "nope"]}, 'no column "nope"'),
        (PARENTS | {"child": "nope"}, 'no column "nope"'),
        (PARENTS | {"parents": "v.levels", "child": "select", "parent": "h", "separation": "select"}, "spelled alike"),
        (PARENTS | {"parents": "v.levels", "child": "h", "parent": "select", "separation": "h"}, "spelled alike"),
        ({k: v for k, v in PARENTS.items() if k != "separation"}, "parents in ancestor: its links go in a circle"),
        (PARENTS | {"parents": "t", "child": "id", "parent": "born"}, "codes are whole numbers or text"),
        ({"table": "v.levels", "child": "c"}, "goes with parents alone"),
        ({"table": "v.levels", "query": "SELECT 1"}, "exactly one of"),
        ({"parents": "v.ancestor", "child": "c"}, "parent: missing"),
        (PARENTS | {"parent": "C"}, "is the column of child"),
        (PARENTS | {"depths": [1, 2]}, "must fall"),
        ({"bands": [5], "columns": ["a"]}, "goes with table or query alone"),
        ({"table": "v.levels", "columns": ["a", "A"]}, "names a column twice"),
    ],
)
def test_what_is_not_there_or_does_not_fit_is_refused(spec: dict[str, Any], reason: str, source: Path) -> None:
    with pytest.raises(JobError, match=reason):
        ran(source, spec)


def test_epsilon_safe_takes_no_levels_that_were_read_from_the_database(source: Path) -> None:
    settings = {"beta": 0.1, "epsilon": 1.0, "population": 100_000}
    for spec in ({"table": "v.levels"}, {"table": "t", "columns": ["code"]}, PARENTS):
        with pytest.raises(JobError, match=r"is (read from the database|built from the column's values)"):
            ran(source, spec, search={"method": "epsilon-safe", "epsilon_safe": settings}, person="id", k=5)


def test_levels_of_the_persons_themselves_count_as_made_of_the_values(source: Path) -> None:
    made = {"query": "SELECT DISTINCT code, CASE WHEN code < 110 THEN 'low' ELSE 'high' END AS g FROM t"}
    (plan,) = sqldeid.plan(job({}, r=release({"code": qi(made)}, person="id")), source)
    assert plan.qis[0].hierarchy.data_derived
    (plan,) = sqldeid.plan(job({}, r=release({"code": qi({"table": "v.levels"})}, person="id")), source)
    assert not plan.qis[0].hierarchy.data_derived
    assert {row[0] for row in ran(source, made)[0]} == {"low", "high"}


@pytest.mark.parametrize("role", ["identifying", "free-text", "sensitive", "person"])
def test_labels_tell_nothing_that_is_hidden(source: Path, role: str) -> None:
    """A column that is never released does not come back as a label, nor by another name, nor as all columns."""
    hidden = "id" if role == "person" else "text"
    columns = {"code": qi(), **({} if role == "person" else {"text": {"role": role}})}
    for spec in (
        {"table": "t", "columns": ["code", hidden]},
        {"query": f"SELECT code, \"{hidden}\" || '' AS g FROM t"},
        {"query": "SELECT * FROM t", "columns": ["code", hidden.upper()]},
    ):
        columns["code"] = qi(spec)
        with pytest.raises(JobError, match=f"takes (?i:{hidden}) of the release's own source"):
            sqldeid.plan(job({}, r=release(columns, person="id", k=20)), source)


def test_empty_texts_are_texts_and_null_is_null() -> None:
    values = pa.array(["", "a", None])
    rows = ([None, "lost"], ["a", "some"], ["", "none"])
    for given, wanted in ((rows, ["none", "some", "lost"]), (rows[:2], ["lost", "some", "lost"])):
        leaves, labels = (pa.array(list(column), pa.string()) for column in zip(*given, strict=True))
        bound = from_rows("t", [leaves, labels]).bind(values)
        assert [bound.labels[1][bound.groups[1][leaf]] for leaf in bound.leaf] == wanted
        assert bound.labels[-1].tolist() == ["*"]


def test_a_later_load_is_coded_alike_and_a_changed_table_is_told(source: Path) -> None:
    for n, spec in enumerate(({"table": "v.levels"}, PARENTS)):
        made = job(
            {"into": f"p{n}.duckdb"},
            source.parent,
            r=release({"code": qi(spec)}, source={"query": "SELECT * FROM t WHERE code > 0"}, person="id", k=20),
        )
        result = sqldeid.anonymize(made, source)
        kept = source.parent / f"{n}.json"
        kept.write_text(json.dumps(result.to_dict()))
        assert "levels" in str(result.to_public()) or n
        with duckdb.connect(str(source)) as c:
            before = c.execute("FROM v.levels").fetchall(), c.execute("FROM v.ancestor").fetchall()
            c.execute('UPDATE v.levels SET "a ""b" = \'new\', h = \'newer\' WHERE "select" BETWEEN 100 AND 104')
            c.execute("UPDATE v.ancestor SET p = 1006 WHERE c = 100 AND sep = 1")
        with pytest.raises(VerificationError, match="The levels of code were read from the database as they are now"):
            sqldeid.verify(made, source)
        again = sqldeid.anonymize(made, source, options=Options(policy=kept, replace=True)).releases["r"]
        assert again.node == result.releases["r"].node
        with duckdb.connect(str(source.parent / f"p{n}.duckdb")) as c:
            labels = {row[0] for row in c.execute("SELECT code FROM release.r").fetchall()}
        assert "new" not in labels, "the policy's levels hold"
        with duckdb.connect(str(source)) as c:
            for table, rows in zip(("levels", "ancestor"), before, strict=True):
                c.execute(f"DELETE FROM v.{table}")
                insert(c, f"v.{table}", rows)


def test_public_notes_name_the_table_alone_and_no_leaf(source: Path) -> None:
    made = job({"into": "o.duckdb"}, source.parent, r=release({"code": qi({"table": "v.levels"})}, person="id", k=20))
    public = str(sqldeid.anonymize(made, source).to_public())
    with duckdb.connect(str(source.parent / "o.duckdb"), read_only=True) as c:
        comments = "SELECT comment FROM duckdb_tables() UNION ALL SELECT comment FROM duckdb_columns()"
        notes = str([row[0] for row in c.execute(comments).fetchall() if row[0] and "sqldeid" in row[0]])
    assert "table levels" in notes
    for text in (notes, public):
        assert "v.levels" not in text and not any(f"'{code}'" in text for code in range(100, 120))


def test_a_plan_says_how_a_tree_is_made_and_what_is_read(source: Path) -> None:
    made = job({}, r=release({"code": qi(PARENTS)}, person="id"))
    (planned,) = sqldeid.plan(made, source)
    shown = explain(planned, made, source)
    assert ("Tree of code", TREE) in shown.parts[0].facts and "shortest way up" in TREE
    assert {"tables/plan/read_links", "tables/plan/read_known"} <= {s.template for s in shown.statements or ()}
