"""Dates and times that Python has no name for: infinite, before the year 1, after 9999; sensitive values above all."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqldeid
from sqldeid.engine.opening import Settings
from tests.support.files import read, write
from tests.support.sources import SENSITIVE, job, qi, release

FAR = ["infinity", "-infinity", "0044-03-15 (BC)", "10000-01-01", "290000-06-01"]
CRITERIA = {
    "none": {},
    "distinct l": {"l_diversity": {"column": "seen", "l": 2}},
    "entropy l": {"l_diversity": {"column": "seen", "l": 2, "kind": "entropy"}},
    "equal t": {"t_closeness": {"column": "seen", "t": 0.6}},
    "ordered t": {"t_closeness": {"column": "seen", "t": 0.6, "distance": "ordered"}},
    "stated order": {"t_closeness": {"column": "seen", "t": 0.6, "distance": "ordered", "order": []}},
    "m": {"m_concealing": {"m": 0.9, "known": {"seen": 0.1}}},
}


@pytest.fixture(params=["DATE", "TIMESTAMP"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Persons of whom one in seven has such a date; all five are there."""
    far = ", ".join(f"'{text}'" for text in FAR)
    return write(
        tmp_path / "db.duckdb",
        f"CREATE TABLE people AS SELECT i AS id, CAST(20 + (i * 7) % 40 AS INTEGER) AS age, "
        f"['f', 'm'][1 + i % 2] AS sex, CAST(CASE WHEN i % 7 = 0 THEN [{far}][1 + i % 5] WHEN i % 11 > 0 "
        f"THEN CAST(DATE '2020-01-01' + CAST(i % 4 AS INTEGER) AS VARCHAR) END AS {request.param}) AS seen "
        "FROM RANGE(280) AS r(i)",
    )


def spelled(database: Path) -> list[str]:
    rows = read(database, "SELECT CAST(seen AS VARCHAR) FROM people WHERE seen IS NOT NULL GROUP BY seen ORDER BY seen")
    return [text for (text,) in rows]


def asked(database: Path, criterion: str) -> sqldeid.Job:
    privacy = {k: dict(v) for k, v in CRITERIA[criterion].items()}  # type: ignore[call-overload]
    if criterion == "stated order":
        privacy["t_closeness"]["order"] = spelled(database)
    table = release(
        {"age": qi({"bands": [10, 20]}), "sex": qi(), "seen": SENSITIVE}, source="people", person="id", k=2, limit=0.9
    )
    table["privacy"] |= privacy  # type: ignore[operator]
    return job({"into": "out.duckdb"}, database.parent, people=table)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.duckdb14
def test_every_criterion_judges_them(database: Path, criterion: str) -> None:
    wanted = asked(database, criterion)
    made = sqldeid.anonymize(wanted, database, options=sqldeid.Options(explain=criterion == "ordered t"))
    assert sqldeid.verify(wanted, database)["people"].released == made.releases["people"].released > 0
    sqldeid.assess(wanted, database)
    there = read(
        database.parent / "out.duckdb", "SELECT COUNT(DISTINCT seen) FROM release.people WHERE NOT ISFINITE(seen)"
    )
    assert there == [(2,)]


def test_their_order_is_that_of_time(database: Path) -> None:
    """A stated order by time is the values' own: the same classes are as close."""
    found = []
    for criterion in ("ordered t", "stated order"):
        made = sqldeid.anonymize(
            asked(database, criterion), database, options=sqldeid.Options(replace=True, without_ledger=True)
        )
        found.append((made.releases["people"].node, made.releases["people"].criteria[-1].achieved))
    assert found[0] == found[1]


def test_the_ledger_follows_them(database: Path) -> None:
    (database.parent / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    options = sqldeid.Options(
        replace=True,
        settings=Settings(threads=1),
        ledger=database.parent / "ledger.duckdb",
        key_file=database.parent / "key",
    )
    wanted = asked(database, "ordered t")
    first = sqldeid.anonymize(wanted, database, options=options)
    write(database, "UPDATE people SET seen = '2020-01-02' WHERE id = 7")
    second = sqldeid.anonymize(
        wanted,
        database,
        options=sqldeid.Options(
            replace=True,
            settings=options.settings,
            ledger=options.ledger,
            key_file=options.key_file,
            policy=first.to_dict(),
        ),
    )
    assert second.releases["people"].ledger["held_back"] >= 2  # type: ignore[index]


def test_explore_init_and_tradeoff_look_at_them(database: Path) -> None:
    sqldeid.explore(database, "people", columns=["age", "seen"])
    assert "seen" in sqldeid.init(database, "people")
    sqldeid.tradeoff(asked(database, "ordered t"), database, sqldeid.Asked((2,), (0.9,), ()))
