"""A ledger that lost something is refused, whatever it lost; as it is, somebody would be taken for new."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.engine.settings import Settings
from sqldeid.errors import EngineError, JobError
from sqldeid.keys import Key
from sqldeid.ledger.book import Book
from sqldeid.ledger.file import LedgerFile
from sqldeid.ledger.store import TABLES
from tests.support.files import write
from tests.support.ledgers import KEY, change, ledger, options, run
from tests.support.ledgers import folder as ledger_folder
from tests.support.sources import SENSITIVE, job, qi, release

__all__ = ["ledger_folder"]

COLUMNS = {"age": qi({"bands": [10, 20]}), "sex": qi(), "illness": SENSITIVE}
PART = release(COLUMNS, source="people", person="id", k=4, limit=0.5)
PART["privacy"] |= {"t_closeness": {"column": "illness", "t": 0.9}}  # type: ignore[operator]
PRIVATE = release({"sex": qi("adult/sex")}, source="people", person="id", k=4) | {
    "search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.25, "epsilon": 2.0, "delta": 0.24}}
}
OLD = ("DELETE FROM facts WHERE name LIKE 'rows of %'", "UPDATE facts SET value = '3' WHERE name = 'version'")
"""What a ledger was before it counted its rows."""

DAMAGED = {
    "an empty table of persons": "DELETE FROM people",
    "one person less": "DELETE FROM people WHERE number = (SELECT MIN(number) FROM people)",
    "the last person less": "DELETE FROM people WHERE number = (SELECT MAX(number) FROM people)",
    "no releases": "DELETE FROM releases",
    "a release less": "DELETE FROM releases WHERE release = 1",
    "the last release less": "DELETE FROM releases WHERE release = 2",
    "a release of which nobody is known": "DELETE FROM stays WHERE release = 2",
    "no cells": "DELETE FROM cells",
    "no values": "DELETE FROM contents",
    "a column's name": "DELETE FROM facts WHERE name = 'person'",
    "another column's values": "UPDATE contents SET field = 'mark'",
    "values of a release to come": "UPDATE contents SET since = 9",
    "another key's persons": "UPDATE people SET person = 'one'",
    "a cell of nobody's": "UPDATE people SET cell = 1",
    "a cell of no cell": "UPDATE cells SET parent = 99 WHERE NOT parent IS NULL",
    "a cell twice": "INSERT INTO stays SELECT * FROM stays",
    "a marginal to come": "UPDATE marginals SET release = 9",
    "another type": "ALTER TABLE people ALTER cell TYPE VARCHAR",
    "another column": "ALTER TABLE people RENAME cell TO place",
    "a column more": "ALTER TABLE stays ADD COLUMN more BIGINT",
}
COUNTED = {
    "some values": "DELETE FROM contents WHERE number = 1",
    "no marginals": "DELETE FROM marginals",
    "a count": "DELETE FROM facts WHERE name = 'rows of people'",
}
"""What is noticed by the counts of rows alone."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of two nights; seven persons of the first have gone."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "key").write_text(KEY)
    with duckdb.connect(folder / "db.duckdb") as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(20 + (i * 7) % 40 AS INTEGER) AS age, "
            "['f', 'm'][1 + i % 2] AS sex, ['flu', 'gout', 'mumps'][1 + (i // 3) % 3] AS illness "
            "FROM RANGE(120) AS r(i)"
        )
    run(folder, job({"into": "out.duckdb"}, folder, people=PART))
    change(folder, "DELETE FROM people WHERE id < 7")
    run(folder, job({"into": "out.duckdb"}, folder, people=PART))
    return folder


def open_book(path: Path) -> None:
    with LedgerFile(path, Settings(threads=1)) as file:
        Book(file, Key(bytes.fromhex(KEY)))


@pytest.mark.parametrize("old", [False, True])
def test_a_whole_ledger_is_opened_as_often_as_one_likes(made: Path, tmp_path: Path, old: bool) -> None:
    path = Path(shutil.copy(made / "ledger.duckdb", tmp_path / "ledger.duckdb"))
    assert ledger(made, "SELECT COUNT(*) > 0 FROM cells WHERE NOT parent IS NULL") == [(True,)]
    write(path, *OLD if old else ())
    before = path.read_bytes()
    open_book(path)
    open_book(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("fails", ["replace", "flush"])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_ledger_that_cannot_be_written_is_as_it_was(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, fresh: bool
) -> None:
    """The next run took the releases for published."""
    path = tmp_path / "ledger.duckdb"
    if not fresh:
        shutil.copy(made / "ledger.duckdb", path)
    before = None if fresh else path.read_bytes()
    put, flushed = os.replace, []

    def replace(source: str | Path, target: str | Path) -> None:
        if fails == "replace" and Path(source).name == "ledger.duckdb":
            raise OSError(errno.EIO, "Input/output error")
        put(source, target)

    def flush(of: Path) -> None:
        flushed.append(of)
        if fails == "flush" and of == path.parent:
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("sqldeid.ledger.file.os.replace", replace)
    monkeypatch.setattr("sqldeid.ledger.file._flush", flush)
    with LedgerFile(path, Settings(threads=1)) as file:
        book = Book(file, Key(bytes.fromhex(KEY)))
        file.engine.execute("CREATE TABLE sqldeid_private.main.more AS SELECT 1 AS a")
        book.close()
        with pytest.raises(EngineError, match=r"ledger\.duckdb cannot be written"):
            file.record()
    same = (path.read_bytes() if path.exists() else None) == before
    assert flushed and same
    assert not path.with_name("ledger.duckdb.pending").exists()


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("damage", "old"), [*((d, o) for d in DAMAGED for o in (False, True)), *((d, False) for d in COUNTED)]
)
def test_a_ledger_that_lost_something_is_refused(made: Path, tmp_path: Path, damage: str, old: bool) -> None:
    path = Path(shutil.copy(made / "ledger.duckdb", tmp_path / "ledger.duckdb"))
    write(path, *OLD if old else (), (DAMAGED | COUNTED)[damage])
    with pytest.raises(JobError, match=r"--ledger: .*ledger\.duckdb is damaged: .*newest copy back"):
        open_book(path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_missing_is_named(made: Path, tmp_path: Path, name: str) -> None:
    path = Path(shutil.copy(made / "ledger.duckdb", tmp_path / "ledger.duckdb"))
    write(path, f"DROP TABLE {name}", f"CREATE VIEW {name} AS SELECT 1 AS one")
    words = "is not a ledger of this version" if name == "facts" else f"is damaged: it has no table {name}"
    with pytest.raises(JobError, match=words):
        open_book(path)


def test_a_run_and_verify_refuse_a_damaged_ledger_and_leave_it(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "folder"))
    asked = job({"into": "out.duckdb"}, folder, people=PART)
    write(
        folder / "ledger.duckdb", "DELETE FROM people", "DELETE FROM stays", "DELETE FROM cells", "DELETE FROM contents"
    )
    before = (folder / "ledger.duckdb").read_bytes(), (folder / "out.duckdb").read_bytes()
    with pytest.raises(JobError, match=r"job: --ledger: .*is damaged"):
        run(folder, asked)
    with pytest.raises(JobError, match=r"job: --ledger: .*is damaged"):
        sqldeid.verify(asked, folder / "db.duckdb", options=options(folder))
    assert ((folder / "ledger.duckdb").read_bytes(), (folder / "out.duckdb").read_bytes()) == before


def test_an_uncounted_ledger_is_counted_by_the_next_run(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "folder"))
    write(folder / "ledger.duckdb", *OLD, "DROP TABLE groups", "DROP TABLE levels")
    run(folder, job({"into": "out.duckdb"}, folder, people=PART))
    found = dict(ledger(folder, "SELECT name, value FROM facts"))
    assert found["version"] == "4"
    for name in TABLES:
        assert ledger(folder, f"SELECT CAST(COUNT(*) AS VARCHAR) FROM {name}") == [(found[f"rows of {name}"],)]


@pytest.mark.parametrize("old", [False, True])
def test_what_persons_spent_is_not_forgotten(ledger_folder: Path, old: bool) -> None:
    folder = ledger_folder
    write(folder / "db.duckdb", "UPDATE people SET sex = CASE sex WHEN 'f' THEN 'Female' ELSE 'Male' END")
    run(folder, job({"into": "out.duckdb"}, folder, people=PRIVATE))
    path = folder / "ledger.duckdb"
    write(path, *OLD if old else ())
    open_book(path)
    for statement in ("UPDATE budgets SET epsilon = 100 * epsilon", "DELETE FROM budgets"):
        write(path, statement)
        with pytest.raises(JobError, match=r"is damaged: .*budgets"):
            open_book(path)
