"""The ledger elsewhere: another time zone, another type, another spelling of keys or values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.keys import Key
from sqldeid.ledger.hashing import hash_persons, hash_values
from tests.support.later import SAID
from tests.support.ledger_spelling import SEEN, asked
from tests.support.ledgers import change, folder, ledger, options, run
from tests.support.places import ROOT
from tests.support.sources import job, qi, release

__all__ = ["folder"]

MOMENT = "CAST(TIMESTAMP '2020-03-01 12:00:00' + mark % 9 * INTERVAL '6 hours' AS TIMESTAMP)"
RUN = """
import sys; from pathlib import Path
from tests.support.ledger_spelling import asked
from tests.support.ledgers import run
folder = Path(sys.argv[1])
print(run(folder, asked(folder)).releases["people"].ledger["held_back"])
"""


def seen(folder: Path, type_: str = "TIMESTAMPTZ") -> None:
    moment = f"{MOMENT} AT TIME ZONE 'UTC'" if type_ == "TIMESTAMPTZ" else MOMENT
    change(
        folder,
        f"ALTER TABLE people ADD COLUMN seen {type_}",
        f"UPDATE people SET seen = CAST({moment} AS {type_})",
    )


def run_in(zone: str, folder: Path) -> int:
    """Rows held back by a run in a process of that zone."""
    made = subprocess.run(
        [sys.executable, "-c", RUN, str(folder)],
        env=os.environ | {"TZ": zone},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(made.stdout)


@pytest.mark.deep
@pytest.mark.duckdb14
def test_a_correction_is_held_back_in_another_time_zone_as_in_the_same(folder: Path) -> None:
    seen(folder)
    assert run_in("UTC", folder) == 0
    change(folder, "UPDATE people SET seen = seen + INTERVAL '1 minute' WHERE id = 1")
    assert run_in("America/New_York", folder) == 4
    assert run_in("Asia/Kathmandu", folder) == 4


@pytest.mark.duckdb14
def test_a_users_connection_of_another_zone_and_calendar_tells_the_same(folder: Path) -> None:
    seen(folder)
    held = []
    for zone, calendar in [("UTC", "gregorian"), ("America/New_York", "gregorian"), ("Asia/Tokyo", "japanese")]:
        with duckdb.connect(folder / "db.duckdb") as c:
            c.execute(f"SET TimeZone = '{zone}'; SET Calendar = '{calendar}'")
            made = sqldeid.anonymize(asked(folder), c, options=options(folder)).releases["people"]
            held.append(made.ledger["held_back"])  # type: ignore[index]
            found = c.execute("SELECT CURRENT_SETTING('TimeZone'), CURRENT_SETTING('Calendar')").fetchall()
            assert found == [(zone, calendar)]
            c.execute("UPDATE people SET seen = seen + INTERVAL '1 minute' WHERE id = 1")
    assert held == [0, 4, 4]


@pytest.mark.parametrize(
    ("values", "type_", "other", "other_type"),
    [
        (["0.1", "-0.0", "nan", "1e300"], "DOUBLE", ["0.1000", "0", "NaN", "1E+300"], "DOUBLE"),
        (["7", None, "-3"], "integer", ["7", None, "-3"], "integer"),
        (
            ["2020-01-01 00:00:00+00"],
            "TIMESTAMP WITH TIME ZONE",
            ["2020-01-01 00:00:00+00"],
            "TIMESTAMP WITH TIME ZONE",
        ),
    ],
)
def test_equal_values_have_equal_hashes(values: list, type_: str, other: list, other_type: str) -> None:
    key = Key(bytes(range(7, 39)))
    one, two = (
        hash_values(key, "c", t, pa.chunked_array([pa.array(v, pa.string())]))
        for v, t in ((values, type_), (other, other_type))
    )
    assert one.equals(two)


def test_a_text_of_another_type_is_another_value() -> None:
    """A UUID and its text, a time and its text: nothing that is stored tells them apart but their hash."""
    key = Key(bytes(range(7, 39)))
    rows = pa.chunked_array([pa.array(["12:00:00", "1"], pa.string())])
    found = [hash_values(key, "c", t, rows).to_pylist() for t in ("text", "TIME", "UUID")]
    assert len(np.unique(np.ravel(found))) == 6
    persons = [hash_persons(key, t, rows).to_pylist() for t in ("text", "TIME", "integer")[:2]]
    assert not set(persons[0]) & set(persons[1])


def test_a_moment_that_is_not_spelled_in_utc_is_a_defect() -> None:
    rows = pa.chunked_array([pa.array(["2020-01-01 00:00:00-05"], pa.string())])
    with pytest.raises(AssertionError, match="zone"):
        hash_values(Key(bytes(range(7, 39))), "c", "TIMESTAMP WITH TIME ZONE", rows)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("column", "first", "then", "words"),
    [
        ("id", "UUID", "VARCHAR", "people.person: is of type text, and was of type UUID"),
        ("seen", "TIME", "VARCHAR", "columns.seen: is of type text, and was of type TIME"),
        ("seen", "TIMESTAMPTZ", "VARCHAR", "columns.seen: is of type text, and was of type TIMESTAMP WITH TIME ZONE"),
        ("seen", "TIMESTAMP_NS", "TIMESTAMP", "columns.seen: is of type TIMESTAMP, and was of type TIMESTAMP_NS"),
        ("seen", "FLOAT", "DOUBLE", "columns.seen: is of type DOUBLE, and was of type FLOAT"),
    ],
)
def test_another_type_is_refused(folder: Path, column: str, first: str, then: str, words: str) -> None:
    if column == "id":
        change(
            folder,
            "ALTER TABLE people ALTER id TYPE UUID "
            "USING CAST('00000000-0000-0000-0000-' || LPAD(CAST(id AS VARCHAR), 12, '0') AS UUID)",
        )
        seen(folder)
    elif first == "FLOAT":
        change(folder, "ALTER TABLE people ADD COLUMN seen FLOAT", "UPDATE people SET seen = id % 9 + 0.1")
    else:
        seen(folder, first)
    run(folder, asked(folder))
    change(folder, f"ALTER TABLE people ALTER {column} TYPE {then}")
    with pytest.raises(JobError, match=words):
        run(folder, asked(folder))


def test_a_ledger_of_the_old_version_is_refused_with_what_to_do(folder: Path) -> None:
    seen(folder)
    run(folder, asked(folder))
    with duckdb.connect(folder / "ledger.duckdb") as connection:
        connection.execute("UPDATE facts SET value = '2' WHERE name = 'version'")
    before = (folder / "ledger.duckdb").read_bytes()
    with pytest.raises(JobError, match=r"older version of sqldeid.*as they were spelled.*another name"):
        run(folder, asked(folder))
    assert (folder / "ledger.duckdb").read_bytes() == before
    assert ledger(folder, "SELECT COUNT(*) FROM releases") == [(1,)]


@pytest.mark.parametrize("version", ["5", "10", "9" * 5000, "0", "4.0", "", None, "²", "later"])
def test_a_ledger_of_another_version_is_refused_and_stays(version: str | None, folder: Path) -> None:
    """One of a later version is not called broken: whoever puts it away forgets who was released."""
    seen(folder)
    run(folder, asked(folder))
    with duckdb.connect(folder / "ledger.duckdb") as connection:
        connection.execute("UPDATE facts SET value = ? WHERE name = 'version'", [version])
    before = (folder / "ledger.duckdb").read_bytes()
    later = f"was {SAID}. A new ledger in its place would not know who was released"
    words = later if version is not None and version.isdecimal() else "is not a ledger of this version of sqldeid"
    with pytest.raises(JobError) as refused:
        run(folder, asked(folder))
    assert refused.value.message == f"job: --ledger: {folder / 'ledger.duckdb'} {words}"
    assert (folder / "ledger.duckdb").read_bytes() == before


RECODED = {
    "keys": "ALTER TABLE people ALTER id TYPE VARCHAR USING 'P-' || id",
    "case": "UPDATE people SET id = LOWER(id)",
    "zeros": "UPDATE people SET id = LPAD(id, 6, '0')",
    "values": "UPDATE people SET seen = CASE seen WHEN 'flu' THEN '1' WHEN 'gout' THEN '2' WHEN 'mumps' THEN '3' END",
    "upper": "UPDATE people SET seen = UPPER(seen)",
}


def words(folder: Path, key: str = "'p-' || id") -> None:
    change(
        folder,
        f"ALTER TABLE people ALTER id TYPE VARCHAR USING UPPER(CAST({key} AS VARCHAR))",
        "ALTER TABLE people ADD COLUMN seen VARCHAR",
        "UPDATE people SET seen = CASE WHEN mark % 5 > 0 THEN illness END",
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("what", "name", "option"),
    [
        ("case", "person", {"new_persons": True}),
        ("zeros", "person", {"new_persons": True}),
        ("values", "seen", {"new_values": ("SEEN",)}),
        ("upper", "seen", {"new_values": ("seen",)}),
    ],
)
@pytest.mark.duckdb14
def test_where_hardly_anything_recurs_the_holder_must_insist(
    folder: Path, what: str, name: str, option: dict[str, object]
) -> None:
    """A column with NULLs, which recur under any coding, and one true change in it."""
    words(folder, "id" if what == "zeros" else "'p-' || id")
    run(folder, asked(folder))
    before = (folder / "ledger.duckdb").read_bytes(), (folder / "out.duckdb").read_bytes()
    change(folder, RECODED[what], "UPDATE people SET seen = 'other' WHERE mark = 1")
    with pytest.raises(JobError, match=rf"{name}: .*--new-(persons|values seen)$") as raised:
        run(folder, asked(folder))
    assert "other" not in raised.value.message.replace("other persons", "").replace("another", "")
    assert ((folder / "ledger.duckdb").read_bytes(), (folder / "out.duckdb").read_bytes()) == before
    made = run(folder, asked(folder), **option).releases["people"]
    assert any("are taken for" in w for w in made.warnings)


def test_ordinary_nights_need_no_insisting(folder: Path) -> None:
    """Nine in ten gone and others come; later one who came back; a column that is all NULL by now."""
    words(folder)
    run(folder, asked(folder))
    more = "INSERT INTO people SELECT 'Q-' || id, age, sex, illness, mark + 200, seen FROM people"
    change(folder, more, "DELETE FROM people WHERE mark < 200 AND mark % 10 > 0")
    run(folder, asked(folder))
    change(folder, "UPDATE people SET seen = NULL")
    assert not any("--new-" in w for w in run(folder, asked(folder)).releases["people"].warnings)


@pytest.mark.deep
def test_a_first_night_of_other_persons_needs_it_and_a_second_does_not(folder: Path) -> None:
    words(folder)
    one, other = (
        release(
            {**SEEN, "mark": {"role": "insensitive"}},
            source="people",
            person="id",
            k=4,
            limit=0.5,
            where=f"mark % 2 = {half}",
        )
        for half in (0, 1)
    )
    both = job({"into": "out.duckdb"}, folder, a=one, b=other)
    with pytest.raises(JobError, match="--new-persons"):
        run(folder, both)
    run(folder, both, new_persons=True)
    again = run(folder, both).releases
    assert [again[n].ledger["held_back"] for n in "ab"] == [0, 0]  # type: ignore[index]
    told = run(folder, both, new_persons=True).releases["a"].warnings
    assert any("--new-persons was not needed" in w for w in told)


def test_private_releases_ask_for_the_same_persons(folder: Path) -> None:
    """Keys spelled otherwise would begin with a fresh budget."""
    safe = release({"sex": qi("adult/sex")}, source="people", person="id", k=4)
    words(folder)
    change(folder, "UPDATE people SET sex = CASE sex WHEN 'f' THEN 'Female' ELSE 'Male' END")
    safe |= {"search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.25, "epsilon": 2.0, "delta": 0.24}}}
    both = job({"into": "out.duckdb"}, folder, people=safe)
    run(folder, both)
    change(folder, "UPDATE people SET id = LOWER(id)")
    with pytest.raises(JobError, match=r"people\.person: 0 of 120 .*--new-persons"):
        run(folder, both)


def test_what_is_said_to_no_ledger_or_of_no_column_is_refused(folder: Path) -> None:
    seen(folder)
    for more, words_ in [
        ({"ledger": None, "new_persons": True}, "--new-persons: it is said to a ledger"),
        ({"ledger": None, "new_values": ("seen",)}, "--new-values: it is said to a ledger"),
        ({"new_values": ("sen",)}, "shows a column sen beside its classes; did you mean .seen"),
    ]:
        with pytest.raises(JobError, match=words_):
            run(folder, asked(folder), **more)
