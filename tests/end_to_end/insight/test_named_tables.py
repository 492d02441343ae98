"""A table of a name that SQL quotes is named on the command line as the file has it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqldeid
from sqldeid.errors import JobError
from tests.support.cli import run

NAME = "my people 2025"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / f"{NAME}.csv"
    path.write_text("No,Ward\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(20)))
    (tmp_path / "ward.csv").write_text("a;*\nb;*\n")
    return path


@pytest.mark.parametrize("table", [NAME, f'"{NAME}"', f'main."{NAME}"'])
def test_as_the_file_has_it_and_as_sql_writes_it(people: Path, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Ward" in sqldeid.init(people, table)
    assert sqldeid.explore(people, table, columns=["Ward"]).rows == 20
    asked = ("hierarchy", "check", people.with_name("ward.csv"), "--db", people, "--table", table, "--column", "Ward")
    assert run(capsys, *map(str, asked)).code == 0


def test_what_is_no_table_is_refused_as_ever(people: Path) -> None:
    for wrong in ("my people", f"{NAME}; DROP TABLE x", f'"{NAME}', "a b c"):
        with pytest.raises(JobError, match="not a table name"):
            sqldeid.init(people, wrong)
