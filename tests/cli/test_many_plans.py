"""A plan of many releases is a line each; all of one is told by name, and all of all where SQL is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from tests.support.cli import run

TABLE = """
[tables.{name}]
source = "people"
rows_are_persons = true
columns.sex = {{ role = "quasi-identifying", hierarchy = {{ suppress = true }} }}
privacy = {{ k = 2 }}
"""
CHILD = """
[tables.parent]
source = "people"
person = "id"
columns.id = { role = "identifying", pseudonym = true }
columns.sex = { role = "quasi-identifying", hierarchy = { suppress = true } }
privacy = { k = 2 }
[tables.codes]
source = "codes"
person = "id"
parent = "parent"
items = "code"
known = 1
columns.code = { role = "quasi-identifying", hierarchy = { suppress = true } }
privacy = { k = 2 }
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "h.duckdb") as c:
        c.execute("CREATE TABLE people AS SELECT i AS id, 'f' AS sex FROM RANGE(10) AS r(i)")
        c.execute("CREATE TABLE codes AS SELECT i AS id, 'a' AS code FROM RANGE(10) AS r(i)")
    return tmp_path / "h.duckdb"


def shown(capsys: pytest.CaptureFixture[str], database: Path, names: list[str], *more: str) -> str:
    job = database.with_name("job.toml")
    job.write_text('[release]\ninto = "out.duckdb"\n' + "".join(TABLE.format(name=n) for n in names) + CHILD)
    done = run(capsys, "anonymize", str(database), "--job", str(job), "--plan", *more)
    assert done.code == 0, done.err
    return done.out


def test_many_releases_are_a_line_each(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    told = shown(capsys, database, ['"a b"', "b", '"select"', "d"])
    assert "Statements" not in told
    lines = re.findall(r"^  (\S.*?)  +people  +(.*?)  +1$", told, flags=re.MULTILINE)
    assert [name for name, _ in lines] == ["a b", "b", "select", "d", "parent"]
    assert lines[0][1] == "k = 2"
    assert re.search(r"^  codes +\(child table\) +any 1 items", told, flags=re.MULTILINE)
    assert "6 releases, all or none of them." in told
    assert "--plan --only 'a b'" in told


@pytest.mark.parametrize("more", [("--only", "b"), ("-v",)])
def test_all_is_told_on_request(capsys: pytest.CaptureFixture[str], database: Path, more: tuple[str, ...]) -> None:
    told = shown(capsys, database, ["a", "b", "c", "d"], *more)
    assert "Statements, in order" in told
    assert told.count("K-anonymity") == (1 if "--only" in more else 5)


def test_few_releases_are_told_as_ever(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    assert "Statements, in order" in shown(capsys, database, ["a", "b", "c"])
