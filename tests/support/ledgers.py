"""A folder with a ledger, and runs against it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.engine.opening import Settings

KEY = "".join(f"{i:02x}" for i in range(7, 39))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(KEY)
    with duckdb.connect(tmp_path / "db.duckdb") as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(20 + (i * 7) % 40 AS INTEGER) AS age, "
            "['f', 'm'][1 + i % 2] AS sex, ['flu', 'gout', 'mumps'][1 + (i // 3) % 3] AS illness, "
            "i AS mark FROM RANGE(120) AS r(i)"
        )
    return tmp_path


def options(folder: Path, **more: object) -> sqldeid.Options:
    return sqldeid.Options(
        **{
            "replace": True,
            "settings": Settings(threads=1),
            "ledger": folder / "ledger.duckdb",
            "key_file": folder / "key",
        }
        | more
    )


def run(folder: Path, asked: sqldeid.Job, **more: object) -> sqldeid.Result:
    return sqldeid.anonymize(asked, folder / "db.duckdb", options=options(folder, **more))


def change(folder: Path, *statements: str) -> None:
    with duckdb.connect(folder / "db.duckdb") as connection:
        for statement in statements:
            connection.execute(statement)


def ledger(folder: Path, question: str) -> list[tuple[object, ...]]:
    with duckdb.connect(folder / "ledger.duckdb", read_only=True) as connection:
        return connection.execute(question).fetchall()
