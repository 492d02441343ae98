"""A ledger beside the one that a release was held to: it is known by what it took down, not by its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sqldeid
from sqldeid.errors import JobError
from tests.support.ledgers import change, folder, run
from tests.support.sources import SENSITIVE, job, qi, release

__all__ = ["folder"]

PART = release(
    {"age": qi({"bands": [10, 20]}), "sex": qi(), "illness": SENSITIVE}, source="people", person="id", k=4, limit=0.5
)
LESS = PART | {"where": "id <> 7"}
BESIDE: dict[str, tuple[dict[str, object], dict[str, dict[str, object]], dict[str, object]]] = {
    "a companion": ({"into": "out.duckdb"}, {"a": PART, "b": PART}, {"only": ("b",)}),
    "in place": ({}, {"b": PART}, {}),
    "other rows": ({}, {"b": LESS}, {}),
    "in its stead": ({"into": "out.duckdb"}, {"b": PART}, {}),
    "in another schema": ({"schema": "other"}, {"a": LESS}, {}),
    "the same": ({}, {"a": PART}, {}),
}


@pytest.mark.parametrize("what", BESIDE)
def test_another_ledger_beside_a_held_release_is_refused(folder: Path, what: str) -> None:
    """One person is in the first release and not in the second: a new ledger knows neither."""
    into, tables, more = BESIDE[what]
    first = {"a": PART, "b": PART} if more else {"a": PART}
    place = {name: value for name, value in into.items() if name == "into"}
    run(folder, job(place, folder, **first), **({"only": ("a",)} if more else {}))
    change(folder, "DELETE FROM people WHERE id = 7")
    asked = job(into, folder, **tables)
    with pytest.raises(JobError, match=r"tables\.a: .*does not know .*newest copy") as refused:
        run(folder, asked, ledger=folder / "fresh.duckdb", **more)
    assert "fresh.duckdb" in refused.value.message
    assert not (folder / "fresh.duckdb").exists()
    moved = shutil.move(folder / "ledger.duckdb", folder / "moved.duckdb")
    [made] = run(folder, asked, ledger=moved, **more).releases.values()
    assert made.ledger is not None and made.ledger["held_back"] == 3


def test_an_older_copy_beside_a_held_release_is_refused(folder: Path) -> None:
    asked = job({}, folder, a=PART, b=PART)
    run(folder, asked, only=("a",))
    shutil.copy(folder / "ledger.duckdb", folder / "old.duckdb")
    run(folder, asked, only=("a",))
    with pytest.raises(JobError, match=r"tables\.a: .*it is another one, or an old copy.*newest copy"):
        run(folder, asked, only=("b",), ledger=folder / "old.duckdb")


def test_who_was_given_nothing_may_begin_a_ledger(folder: Path) -> None:
    run(folder, job({}, folder, a=PART))
    change(folder, "DELETE FROM people WHERE id = 7")
    begun = run(folder, job({}, folder, b=PART), ledger=folder / "fresh.duckdb", without_ledger=True)
    assert isinstance(begun, sqldeid.Result) and (folder / "fresh.duckdb").exists()
