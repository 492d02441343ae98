"""Refusals that name their fix: the fix is taken out of the message and done, and no value is in the message."""

from __future__ import annotations

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
