"""Events with laplace in the ledger of persons: what they spend there and in releases of tables is one sum."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqldeid
from sqldeid.engine.opening import Settings
from sqldeid.errors import JobError
from tests.support.files import read, write
from tests.support.sources import SENSITIVE, qi, release

LAPLACE = {
    "method": "laplace",
    "epsilon": 1.5,
    "states": "states.txt",
    "other": "OTHER",
    "time_range": ["2020-01-01", "2021-01-01"],
    "gap_bins_hours": [1, 6],
    "length_bins": [1, 2, 4],
    "events_max": 4,
}
SAFE = {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.25, "epsilon": 2.0, "delta": 0.24}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """120 persons with four moves each, some of which have no usable time; and a row without a person."""
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    (tmp_path / "states.txt").write_text("A\nB\nC\n")
    write(
        tmp_path / "db.duckdb",
        "CREATE TABLE people AS SELECT i AS id, ['Female', 'Male'][1 + i % 2] AS sex, "
        "CAST(20 + (i * 7) % 40 AS INTEGER) AS age, ['flu', 'gout', 'mumps'][1 + (i // 3) % 3] AS illness "
        "FROM RANGE(120) AS r(i)",
        "CREATE TABLE moves AS SELECT id, ['A', 'B', 'C'][1 + (id + j) % 3] AS ward, "
        "CASE WHEN id % 10 > 0 THEN TIMESTAMP '2020-03-01' + j * INTERVAL '5 hours' END AS at "
        "FROM people, RANGE(4) AS q(j) UNION ALL SELECT NULL, 'A', TIMESTAMP '2020-03-01'",
    )
    return tmp_path


def run(folder: Path, releases: dict[str, object], **more: object) -> dict[str, object]:
    job = sqldeid.Job.parse({"release": {"into": "out.duckdb"}, **releases}, folder=folder)
    options = {"replace": True, "settings": Settings(threads=1), "key_file": folder / "key"}
    options |= {"ledger": folder / "ledger.duckdb"} | more
    return sqldeid.anonymize(job, folder / "db.duckdb", options=sqldeid.Options(**options)).releases  # type: ignore[arg-type, return-value]


def events(**privacy: object) -> dict[str, object]:
    part = {"source": "moves", "object": "id", "time": "at", "state": ["ward"], "attacks": False}
    return {"events": {"wards": part | {"privacy": privacy or LAPLACE}}}


def table(search: dict[str, object]) -> dict[str, object]:
    columns = {"sex": qi("adult/sex")} | ({} if search else {"illness": SENSITIVE})
    return {"tables": {"people": release(columns, source="people", person="id", k=4, search=search)}}


@pytest.mark.duckdb14
def test_events_and_tables_of_the_same_persons_add_up(folder: Path) -> None:
    first = run(folder, events())["wards"]
    assert first.account["epsilon_total"] == 1.5  # type: ignore[attr-defined]
    assert not first.account["void"]  # type: ignore[attr-defined]
    both = run(folder, events() | table(SAFE))
    assert both["people"].ledger["epsilon_total"] == 3.5  # type: ignore[attr-defined]
    assert both["wards"].account["epsilon_total"] == 5.0  # type: ignore[attr-defined]
    assert any("has spent ε = 5" in w for w in both["wards"].warnings)  # type: ignore[attr-defined]
    assert "account" not in both["wards"].to_public()  # type: ignore[attr-defined]
    found = read(folder / "ledger.duckdb", "SELECT COUNT(*), COUNT(DISTINCT person), MIN(epsilon) FROM budgets")
    assert found == [(120, 120, 5.0)], "an object spends whether or not its events are usable"


def test_a_release_of_the_same_persons_that_is_not_private_voids_the_sum(folder: Path) -> None:
    run(folder, events())
    other = run(folder, table({}))["people"]
    assert any("voids their totals" in w for w in other.warnings)  # type: ignore[attr-defined]
    last = run(folder, events())["wards"]
    assert last.account["void"]  # type: ignore[attr-defined]
    assert ("Spent by now", "ε = 3 of a person, by the ledger; void: not all of its releases promise that") in (
        last.facts()  # type: ignore[attr-defined]
    )


def test_a_release_with_a_seed_voids_the_sum_for_good(folder: Path) -> None:
    run(folder, events())
    seeded = events()
    seeded["events"]["wards"]["generate"] = {"seed": 3}  # type: ignore[index]
    assert run(folder, seeded)["wards"].account["void"]  # type: ignore[attr-defined]
    last = run(folder, events())["wards"]
    assert last.account["void"]  # type: ignore[attr-defined]
    assert any("1 of the earlier private releases" in w and "seed" in w for w in last.warnings)  # type: ignore[attr-defined]
    assert sqldeid.verify(
        sqldeid.Job.parse({"release": {"into": "out.duckdb"}, **events()}, folder=folder),
        folder / "db.duckdb",
        options=sqldeid.Options(ledger=folder / "ledger.duckdb", key_file=folder / "key"),
    )


def test_what_it_cannot_add_is_refused(folder: Path) -> None:
    with pytest.raises(JobError, match="events with laplace"):
        run(folder, events(method="ratio", epsilon=0.65))
    run(folder, table(SAFE))
    stays = events()
    write(folder / "db.duckdb", "ALTER TABLE moves ADD COLUMN stay BIGINT", "UPDATE moves SET stay = id + 9")
    stays["events"]["wards"]["object"] = "stay"  # type: ignore[index]
    with pytest.raises(JobError, match=r"wards\.object: the ledger follows persons by id, not by stay"):
        run(folder, stays)
    write(folder / "db.duckdb", "UPDATE moves SET id = id + 100000")
    with pytest.raises(JobError, match=r"wards\.object: 0 of 120 .*--new-persons"):
        run(folder, events())
