"""A header line in a hierarchy file is refused by runs and commands; unused leaves are told once, to who can act."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sqldeid
from sqldeid.errors import HierarchyError
from tests.support.cli import run
from tests.support.files import write
from tests.support.sources import job, qi, release

WORK = "private;work;*\nstate;work;*\nnone;no work;*\n"
HEADED = "work;group;top\n" + WORK


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(
        "d.duckdb",
        "CREATE TABLE t AS SELECT i AS id, ['private', 'state', 'none'][1 + i % 3] AS class FROM RANGE(30) r(i)",
        "CREATE TABLE child AS SELECT i AS id, ['private', 'state', 'none'][1 + i % 3] AS w FROM RANGE(30) r(i)",
    )
    Path("w.csv").write_text(HEADED)
    return tmp_path / "d.duckdb"


def _warned(warnings: tuple[str, ...]) -> list[str]:
    return [w for w in warnings if "leaves that no row has" in w]


def test_a_run_refuses_it_where_it_published_a_worse_result(database: Path) -> None:
    made = job({"into": "out.duckdb"}, database.parent, r=release({"class": qi("w.csv")}))
    with pytest.raises(HierarchyError, match=r"tables\.r\.columns\.class: .*line 1 looks like a header") as refused:
        sqldeid.anonymize(made, database)
    assert "private" not in str(refused.value) and not Path("out.duckdb").exists()
    Path("w.csv").write_text(WORK)
    found = sqldeid.anonymize(made, database).releases["r"]
    assert not _warned(found.warnings)
    Path("w.csv").write_text(HEADED)
    with pytest.raises(HierarchyError, match="looks like a header"):
        sqldeid.verify(made, database)


def test_a_stack_and_a_server_refuse_it_too(database: Path, postgres) -> None:  # type: ignore[no-untyped-def]
    stack = {
        "from": "child", "on": "id", "value": "w", "aggregate": "first", "order": "w", "role": "quasi-identifying",
        "hierarchy": "w.csv",
    }  # fmt: skip
    made = job({}, database.parent, r=release({"class": qi()}, person="id", stack={"job": stack}))
    with pytest.raises(HierarchyError, match=r"columns\.job.*looks like a header"):
        sqldeid.anonymize(made, database)
    postgres.execute("CREATE TABLE t AS SELECT i AS id, 'private' AS class FROM generate_series(1, 9) AS s(i)")
    postgres.commit()
    made = job({"schema": "out"}, database.parent, r=release({"class": qi("w.csv")}))
    Path("w.csv").write_text("class;group;*\n" + WORK)
    with pytest.raises(HierarchyError, match="begins with the column's name"):
        sqldeid.anonymize(made, postgres)


def test_unused_leaves_are_told_but_not_at_night_nor_of_shipped_files(database: Path) -> None:
    Path("w.csv").write_text(WORK + "army;work;*\n")
    made = job({"into": "out.duckdb"}, database.parent, r=release({"class": qi("w.csv")}))
    found = sqldeid.anonymize(made, database)
    assert ["class 1 of 4" in w for w in _warned(found.releases["r"].warnings)] == [True]
    Path("first.json").write_text(json.dumps(found.to_dict()))
    write(database, "DELETE FROM t WHERE class = 'private'")
    again = sqldeid.anonymize(
        made, database, options=sqldeid.Options(replace=True, without_ledger=True, policy="first.json")
    )
    assert not _warned(again.releases["r"].warnings)
    write(database, "CREATE TABLE people AS SELECT 20 + i % 2 AS age FROM RANGE(30) r(i)")
    shipped = job({"into": "s.duckdb"}, "", r=release({"age": qi("adult/age")}, source="people"))
    assert not _warned(sqldeid.anonymize(shipped, database).releases["r"].warnings)


def test_the_commands_refuse_it(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    column = ("--db", "d.duckdb", "--table", "t", "--column", "class")
    for command in (("check", "w.csv"), ("show", "w.csv"), ("build", "w.csv", "-o", "made.csv")):
        ran = run(capsys, "hierarchy", *command, *column)
        assert (ran.code, "looks like a header" in ran.err) == (2, True), command
    assert not Path("made.csv").exists()
    Path("w.csv").write_text("code;level 1;level 2\n" + WORK)
    assert run(capsys, "hierarchy", "check", "w.csv").code == 2
    Path("w.csv").write_text(WORK + "army;work;*\n")
    ran = run(capsys, "hierarchy", "check", "w.csv", *column)
    assert (ran.code, "1 leaf is in no row" in ran.out) == (0, True)
