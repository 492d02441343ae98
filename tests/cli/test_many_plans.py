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


def shown(
    capsys: pytest.CaptureFixture[str], database: Path, names: list[str], *more: str, first: str = "", last: str = ""
) -> str:
    """What `--plan` prints of a child table after its parent and, before them, of a table for each name."""
    job = database.with_name("job.toml")
    tables = "".join(TABLE.format(name=n) for n in names)
    job.write_text('[release]\ninto = "out.duckdb"\n' + first + tables + last + CHILD)
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
    unbroken = "".join(told.split())  # a long path is broken wherever the line ends
    assert re.search(r"6releases,allornoneofthem,eachasatable,in\S*/out\.duckdb\.", unbroken)
    assert "--plan --only 'a b'" in told


@pytest.mark.parametrize("more", [("--only", "b"), ("-v",)])
def test_all_is_told_on_request(capsys: pytest.CaptureFixture[str], database: Path, more: tuple[str, ...]) -> None:
    told = shown(capsys, database, ["a", "b", "c", "d"], *more)
    assert "Statements, in order" in told
    assert told.count("K-anonymity") == (1 if "--only" in more else 5)


def test_few_releases_are_told_as_ever(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    told = shown(capsys, database, ["a", "b", "c"])
    assert "First the statements, then what would be released." in told
    last = max(found.start() for found in re.finditer("Statements, in order", told))
    assert last < min(found.start() for found in re.finditer("K-anonymity", told)), "what a screen keeps comes last"


def test_what_is_offered_can_be_asked_for(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    """Parent and child are made together, so neither is offered alone."""
    parents = CHILD.replace('"parent"', '"other"').replace("[tables.parent]", "[tables.other]")
    parents = parents.replace("[tables.codes]", '[tables."more codes"]')
    told = shown(capsys, database, ["z", "y"], first=parents)
    offered = re.search(r"--plan --only (\S+)", told)
    assert offered is not None
    assert offered[1] == "z"
    again = ("anonymize", str(database), "--job", str(database.with_name("job.toml")), "--plan", "--only", "z")
    assert run(capsys, *again).code == 0


def test_every_criterion_is_told(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    with duckdb.connect(database) as c:
        c.execute("CREATE OR REPLACE TABLE people AS SELECT i AS id, 'f' AS sex, i % 5 AS ill FROM RANGE(10) AS r(i)")
    last = TABLE.format(name="e").replace("{ k = 2 }", '{ k = 2, l_diversity = { column = "ill", l = 2 } }')
    last = last.replace("privacy", 'columns.ill = { role = "sensitive" }\nprivacy')
    told = shown(capsys, database, ["a", "b", "c"], "--certificate", "proof.json", last=last)
    line = next(text for text in told.splitlines() if text.startswith("  e "))
    assert "k = 2; Distinct l-diversity: l = 2" in line


def test_a_file_that_is_there_is_told(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    duckdb.connect(database.with_name("out.duckdb")).close()
    told = shown(capsys, database, ["a", "b", "c", "d"])
    assert "(exists:needs--replace)" in "".join(told.split())


@pytest.mark.parametrize("command", [("anonymize",), ("anonymize", "--plan")])
def test_all_releases_that_are_refused_are_told(
    capsys: pytest.CaptureFixture[str], database: Path, command: tuple[str, ...]
) -> None:
    """Who mends a job of many releases is told of all at once."""
    job = database.with_name("job.toml")
    wrong = TABLE.format(name="b").replace("columns.sex", "columns.sax")
    fine, third = TABLE.format(name="a"), TABLE.format(name="c").replace('"people"', '"poeple"')
    job.write_text('[release]\ninto = "out.duckdb"\n' + fine + wrong + third)
    done = run(capsys, command[0], str(database), "--job", str(job), *command[1:])
    assert done.code == 2
    lines = done.err.strip().splitlines()
    assert len(lines) == 2
    assert "tables.b.columns.sax" in lines[0] and lines[1].startswith("job.toml: tables.c")
    assert not database.with_name("out.duckdb").exists()


def test_the_key_is_named_in_what_comes_next(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    key = database.with_name("my key")
    key.write_text("0123456789abcdef" * 4)
    told = shown(capsys, database, ["a"], "--key-file", str(key))
    assert "--key-file '" in told
    assert told.count("--key-file") == told.count("sqldeid anonymize")
