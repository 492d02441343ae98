"""Refusals that name their fix: the fix is taken out of the message and done, and no value is in the message."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import sqldeid
from sqldeid.cli.app import cli

AGE = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}


def job(**more: object) -> sqldeid.Job:
    table = {"source": "t", "person": "my id", "privacy": {"k": 2}, "columns": {"a": AGE}, **more}
    return sqldeid.Job.parse({"release": {"into": "o.duckdb"}, "tables": {"t": table}})


def refused(asked: sqldeid.Job, path: Path) -> str:
    with pytest.raises(sqldeid.JobError) as told:
        sqldeid.anonymize(asked, path)
    assert "SECRET" not in told.value.message
    return str(told.value.message)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The folder of the job, where the release goes."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def database(tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as c:
        c.execute(
            "CREATE TABLE t AS SELECT CASE WHEN i < 9 THEN 'SECRET' || i END AS \"my id\", 1 AS a FROM range(10) r(i)"
        )
        c.execute("CREATE TABLE twice AS SELECT 'SECRET' || (i % 9) AS \"my id\", 1 AS a FROM range(10) r(i)")
    return tmp_path / "d.duckdb"


@pytest.mark.parametrize("where", [None, "a = 1"])
def test_rows_without_a_key_are_left_out_as_the_message_says(database, where):
    said = refused(job(**({} if where is None else {"where": where})), database)
    assert "my id is NULL in 1 row of" in said
    told = tomllib.loads(said.partition("leave such rows out: ")[2])["where"]
    assert sqldeid.anonymize(job(where=told.replace("…", where or "")), database)


@pytest.mark.parametrize("source", ["twice", {"query": "FROM twice"}])
def test_the_query_finds_the_person_with_two_rows(database, source):
    said = refused(job(source=source), database)
    query = said.partition("To see which")[2].partition(": ")[2].replace('"source_query"', "(FROM twice)")
    with duckdb.connect(str(database)) as c:
        assert c.sql(query).fetchall() == [("SECRET0", 2)]


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("my id,b,b", "b_1 is the second column that the header calls b: rename one"),
        ("P0,SECRET,7", "its first line is no header"),
        ("my id,b,c", None),
    ],
)
def test_a_header_that_is_none_or_has_a_name_twice(tmp_path, header, text):
    rows = "".join(f"P{i},SECRET,{i}\n" for i in range(1, 30))
    (tmp_path / "t.csv").write_text(f"{header}\n{rows}")
    said = refused(job(source="main.t"), tmp_path / "t.csv")
    assert "has no column" in said and (text in said if text else "In a CSV" not in said and "header" not in said)


@pytest.mark.parametrize(("first", "row"), [("SECRET,0213,flu", "P{i},{i},flu"), ("SECRET,ab,flu", "P{i},x{i},flu")])
def test_a_first_line_that_may_be_data_is_not_shown(tmp_path, first, row):
    rows = "".join(row.format(i=i) + "\n" for i in range(100, 130))
    (tmp_path / "t.csv").write_text(f"{first}\n{rows}")
    said = refused(job(source="main.t"), tmp_path / "t.csv")
    assert "a header or a row of data" in said and "SECRET" not in said and "flu" not in said
    (tmp_path / "h.csv").write_text("a;*\n")
    told = CliRunner().invoke(cli, ["hierarchy", "check", "h.csv", "--db", "t.csv", "--table", "t", "--column", "b"])
    assert "a header or a row of data" in str(told.exception) and "SECRET" not in str(told.exception)


def test_weights_name_the_columns_that_have_them():
    with pytest.raises(sqldeid.JobError, match=r"is not a quasi-identifying column of this release; it has a$"):
        job(search={"weights": {"b": 2}})


@pytest.mark.parametrize(("name", "text"), [("x.csv", ""), ("no/x.csv", "/no, a folder that does not exist either")])
def test_a_file_that_is_not_there_tells_the_folder(tmp_path, name, text):
    assert refused(job(), Path(name)).endswith(f"does not exist; it was looked for in {tmp_path}{text}")


DATED = """CREATE TABLE t AS SELECT i AS id, DATE '1990-01-01' + CAST(i % 900 AS INTEGER) AS d,
           STRFTIME(d, '%d.%m.%Y') AS told, CAST(STRFTIME(d, '%Y%m%d') AS INTEGER) AS whole FROM RANGE(900) AS r(i)"""


def dated(column: str, rule: dict[str, object], query: str = "SELECT * FROM t") -> None:
    with duckdb.connect() as connection:
        connection.execute(DATED)
        columns = {"id": {"role": "identifying"}, column: {"role": "quasi-identifying", "hierarchy": rule}}
        table = {"source": {"query": query}, "person": "id", "columns": columns, "privacy": {"k": 2}}
        sqldeid.anonymize(sqldeid.Job.parse({"tables": {"a": table}}), connection)


def test_what_is_told_of_dates_works() -> None:
    """Each message in its turn, and then what it says: a cast, as they said before, takes no date for a number."""
    dates: dict[str, object] = {"dates": ["month", "year"]}
    for rule in ({"bands": [5, 10]}, {"keep_first": [4]}):
        with pytest.raises(sqldeid.HierarchyError, match=r'rite dates = \["month", "year"\]'):
            dated("d", rule)
    dated("d", dates)
    with pytest.raises(sqldeid.HierarchyError, match="EXTRACT"):
        dated("d", {"bands": [5, 10]})
    dated("d", {"bands": [5, 10]}, "SELECT id, EXTRACT(year FROM d) AS d FROM t")
    with pytest.raises(sqldeid.HierarchyError, match=r"strptime\(CAST\(… AS VARCHAR\), '%Y%m%d'\)"):
        dated("whole", dates)
    dated("whole", dates, "SELECT id, strptime(CAST(whole AS VARCHAR), '%Y%m%d') AS whole FROM t")
    with pytest.raises(
        sqldeid.HierarchyError, match="on Postgres and Spark make a view that reads it by to_date"
    ) as told:
        dated("told", dates)
    said = re.search(r"strptime\(.*?\]\)", told.value.message)
    assert said is not None
    dated("told", dates, f"SELECT id, {said[0]} AS told FROM t")
