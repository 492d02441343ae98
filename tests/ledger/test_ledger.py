"""The release ledger end to end: what it refuses, what a failure or a kill leaves, and what several releases share."""

from __future__ import annotations

import fcntl
import os
import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.errors import EngineError, JobError, VerificationError
from sqldeid.publish import FreshFile
from tests.support.files import read, write
from tests.support.ledgers import KEY, change, folder, ledger, options, run
from tests.support.sources import SENSITIVE, job, qi, release

pytestmark = pytest.mark.usefixtures("stages")

__all__ = ["folder"]


COLUMNS = {"age": qi({"bands": [10, 20]}), "sex": qi(), "illness": SENSITIVE}


def part(**more: object) -> dict[str, object]:
    return release({**COLUMNS, "mark": {"role": "insensitive"}}, source="people", person="id", k=4, limit=0.5, **more)


def marks(folder: Path, name: str = "people") -> dict[int, tuple[object, ...]]:
    rows = read(folder / "out.duckdb", f"SELECT mark, age, sex FROM release.{name}")
    return {row[0]: row[1:] for row in rows}


def values(folder: Path, name: str, columns: str = "illness, ward") -> dict[int, tuple[object, ...]]:
    rows = read(folder / "out.duckdb", f"SELECT mark, {columns} FROM release.{name}")
    return {row[0]: row[1:] for row in rows}


@pytest.mark.deep
@pytest.mark.duckdb14
def test_it_is_private_and_names_nobody(folder: Path) -> None:
    run(folder, job({"into": "out.duckdb"}, folder, people=part()))
    assert stat.S_IMODE((folder / "ledger.duckdb").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "ledger.duckdb.lock").stat().st_mode) == 0o600
    assert sorted(p.name for p in folder.iterdir()) == [
        "db.duckdb",
        "key",
        "ledger.duckdb",
        "ledger.duckdb.lock",
        "out.duckdb",
    ]
    people = ledger(folder, "SELECT person FROM people")
    assert len(people) == 120
    assert all(len(p) == 32 for (p,) in people)
    content = (folder / "ledger.duckdb").read_bytes()
    assert b"mumps" not in content
    assert KEY.encode() not in content


@pytest.mark.deep
@pytest.mark.duckdb14
def test_one_departure_takes_companions_along(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    first = run(folder, asked)
    before = marks(folder)
    change(folder, "DELETE FROM people WHERE id = 7")
    second = run(folder, asked, policy=first.to_dict()).releases["people"]
    after = marks(folder)
    gone = Counter(before[m] for m in set(before) - set(after))
    assert set(gone.values()) == {4}
    assert len(gone) == 1
    assert second.ledger is not None
    assert second.ledger["held_back"] == 3
    assert second.rows == 119
    assert second.released + second.suppressed + 3 == 119


def test_an_arrival_waits_for_others(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    policy = run(folder, asked).to_dict()
    for number in range(4):
        change(folder, f"INSERT INTO people VALUES ({1000 + number}, 25, 'f', 'flu', {1000 + number})")
        held = run(folder, asked, policy=policy).releases["people"].ledger
        assert held is not None
        assert held["held_back"] == (number + 1 if number < 3 else 0)
        assert sum(m >= 1000 for m in marks(folder)) == (4 if number == 3 else 0)


def test_another_node_is_held_to_the_join(folder: Path) -> None:
    """Levels that overlap: classes by age, then by sex; cells of the join that are too small are held back."""
    run(folder, job({"into": "out.duckdb"}, folder, people=part()))
    before = marks(folder)
    other = release({"sex": qi(), "mark": {"role": "insensitive"}}, source="people", person="id", k=9)
    run(folder, job({"into": "out.duckdb"}, folder, people=other | {"where": "id % 7 > 0"}))
    after = dict(read(folder / "out.duckdb", "SELECT mark, sex FROM release.people"))
    cells = Counter((before.get(m), after.get(m)) for m in range(120))
    assert {n for cell, n in cells.items() if n and cell[1] is not None} & set(range(1, 9)) == set()
    assert min(n for cell, n in cells.items() if cell[0] is not None) >= 4


def test_two_releases_of_one_run_are_held_to_each_other(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, a=part(), b=part() | {"where": "id > 0"})
    result = run(folder, asked)
    assert result.releases["b"].ledger is not None
    assert result.releases["b"].ledger["held_back"] == 3
    assert ledger(folder, "SELECT release, name FROM releases ORDER BY 1") == [(1, "a"), (2, "b")]


def test_much_that_is_held_back_says_why_and_the_guarded_comparison_is_no_warning(folder: Path) -> None:
    """Classes by age and classes by number tear each other, in one run, so that many wait on the first night."""
    other = release({"mark": qi({"bands": [30]})}, source="people", person="id", k=4, limit=0.5)
    asked = job({"into": "out.duckdb"}, folder, a=part(), b=other, c=part() | {"where": "id > 0"})
    result = run(folder, asked)
    a, b, c = (result.releases[name] for name in "abc")
    assert b.ledger is not None and c.ledger is not None
    held, of = b.ledger["held_back"], b.released + b.ledger["held_back"]
    assert b.ledger["held_back_share"] == held / of > 0.05 >= c.ledger["held_back_share"] > 0
    (why,) = [w for w in b.warnings if "the ledger holds back" in w]
    assert why.startswith(f"tables.b: the ledger holds back {held:,} of the {of:,} rows that the criteria let out (")
    assert f"({100 * held / of:.1f} %)" in why and "tables.a of this run counts as released before" in why
    assert not any("the ledger holds back" in w for w in (*a.warnings, *c.warnings))
    assert not any("seem to hold the same persons" in w for w in result.warnings)
    assert why in result.to_dict()["releases"]["b"]["warnings"]
    fresh = job({"into": "fresh.duckdb"}, folder, a=part(), b=other)
    without = run(folder, fresh, ledger=None)
    assert any("tables.a, tables.b: seem to hold the same persons" in w for w in without.warnings)
    third = run(folder, job({"into": "third.duckdb"}, folder, b=other | {"where": "id % 5 > 0"})).releases["b"]
    (why,) = [w for w in third.warnings if "the ledger holds back" in w]
    assert "of this run" not in why


def test_a_second_table_that_waits_as_a_whole_names_the_first(folder: Path) -> None:
    """No later load lets it out: what stands in the way is made in the same run."""
    other = release({"mark": qi({"bands": [5]})}, source="people", person="id", k=4)
    with pytest.raises(VerificationError) as refused:
        run(folder, job({"into": "out.duckdb"}, folder, a=part(), b=other))
    said = refused.value.message
    assert "tables.b: the ledger holds every row back" in said and "tables.a of this run counts as released" in said
    assert 'see the page "Every night"' in said and not (folder / "out.duckdb").exists()
    assert not (folder / "ledger.duckdb").exists(), "nothing was released, so nothing is written down"


@pytest.mark.deep
def test_verify_counts_suppressed_and_held_back_rows_as_the_run_did(folder: Path) -> None:
    """A ledger that is asked later knows neither: both are persons who are not in the release."""
    asked = job({"into": "out.duckdb"}, folder, people=part())
    run(folder, asked)
    change(folder, "DELETE FROM people WHERE id = 7", "INSERT INTO people VALUES (900, 99, 'f', 'flu', 900)")
    made = run(folder, asked).releases["people"]
    found = sqldeid.verify(asked, folder / "db.duckdb", options=options(folder))["people"]
    assert made.ledger is not None
    assert (made.suppressed, made.ledger["held_back"]) == (1, 3)
    assert (found.rows, found.released, found.suppressed) == (  # type: ignore[union-attr]
        (made.rows, made.released, made.suppressed)
    )


@pytest.mark.deep
def test_what_was_published_is_verified_with_its_ledger_alone(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    run(folder, asked)
    change(folder, "DELETE FROM people WHERE id = 7", "INSERT INTO people VALUES (900, 25, 'f', 'flu', 900)")
    made = run(folder, asked).releases["people"]
    found = sqldeid.verify(asked, folder / "db.duckdb", options=options(folder))["people"]
    assert (found.released, found.k) == (made.released, made.k)  # type: ignore[union-attr]
    assert (found.rows, found.suppressed) == (made.rows, made.suppressed)  # type: ignore[union-attr]
    with pytest.raises(VerificationError, match="name it with --ledger"):
        sqldeid.verify(asked, folder / "db.duckdb", options=replace(options(folder), ledger=None))
    write(
        folder / "out.duckdb",
        "UPDATE release.people SET illness = 'mumps' WHERE mark = (SELECT MIN(mark) FROM release.people)",
    )
    with pytest.raises(VerificationError, match="missing or differ"):
        sqldeid.verify(asked, folder / "db.duckdb", options=options(folder))


@pytest.mark.sampled(1)
@pytest.mark.duckdb14
@pytest.mark.parametrize(
    "criterion",
    [
        {"l_diversity": {"column": "illness", "l": 2}},
        {"l_diversity": {"column": "illness", "l": 2, "kind": "entropy"}},
        {"t_closeness": {"column": "illness", "t": 0.4}},
        {"t_closeness": {"column": "illness", "t": 0.4, "distance": "ordered", "order": ["flu", "gout", "mumps"]}},
    ],
)
def test_what_joins_and_leaves_meets_the_criteria(folder: Path, criterion: dict[str, object]) -> None:
    """Four who leave with one illness take others along; five arrivals of one illness wait."""
    table = part()
    table["privacy"] |= criterion  # type: ignore[operator]
    asked = job({"into": "out.duckdb"}, folder, people=table)
    policy = run(folder, asked).to_dict()
    before = marks(folder)
    change(
        folder,
        "DELETE FROM people WHERE sex = 'f' AND illness = 'flu' AND age < 24",
        "INSERT INTO people SELECT 500 + i, 25, 'm', 'mumps', 500 + i FROM RANGE(5) AS r(i)",
    )
    run(folder, asked, policy=policy)
    after = marks(folder)
    assert not [m for m in after if m >= 500]
    with duckdb.connect(folder / "db.duckdb", read_only=True) as connection:
        illness = dict(connection.execute("SELECT id, illness FROM people").fetchall())
    left: dict[object, list[str]] = {}
    for mark in set(before) - set(after):
        left.setdefault(before[mark], []).append(illness.get(mark, "flu"))
    assert left
    for values in left.values():
        assert len(values) >= 4
        shares = [values.count(v) / len(values) for v in ("flu", "gout", "mumps")]
        assert sum(s > 0 for s in shares) >= 2
        if "t_closeness" in criterion:
            assert sum(abs(s - 1 / 3) for s in shares) / 2 <= 0.4 + 0.02


def test_a_value_that_changes_is_a_departure(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    policy = run(folder, asked).to_dict()
    change(folder, "UPDATE people SET illness = 'gout' WHERE id = 1")
    second = run(folder, asked, policy=policy).releases["people"]
    assert second.ledger is not None
    assert second.ledger["held_back"] == 4
    assert 1 not in marks(folder)


def test_columns_are_followed_one_by_one(folder: Path) -> None:
    """Three have another ward and one another illness: the one is not told by the change of the column."""
    change(folder, "ALTER TABLE people ADD COLUMN ward VARCHAR DEFAULT 'x'")
    table = part()
    table["columns"] |= {"ward": {"role": "insensitive"}}  # type: ignore[operator]
    asked = job({"into": "out.duckdb"}, folder, people=table)
    policy = run(folder, asked).to_dict()
    before = values(folder, "people")
    some = "(SELECT id FROM people WHERE sex = 'f' AND age < 30 ORDER BY id LIMIT 4)"
    change(
        folder,
        f"UPDATE people SET illness = 'other' WHERE id = (SELECT MIN(id) FROM {some})",
        f"UPDATE people SET ward = 'y' WHERE id IN {some} AND illness <> 'other'",
    )
    held = run(folder, asked, policy=policy).releases["people"].ledger
    assert held is not None
    assert held["held_back"] == 4
    assert [m for m, v in values(folder, "people").items() if before[m] != v] == []


@pytest.mark.deep
def test_a_correction_does_not_hide_behind_another_release(folder: Path) -> None:
    """Two releases call different things by one name, so that it differs from release to release anyway."""
    said = {"sex": qi(), "told": SENSITIVE, "mark": {"role": "insensitive"}}
    query = "SELECT id, sex, {} AS told, id AS mark FROM people"
    one, other = (
        release(said, source={"query": query.format(c)}, person="id", k=4) for c in ("illness", "CAST(age AS VARCHAR)")
    )
    upper = other | {"columns": {n.upper(): c for n, c in said.items()}}
    run(folder, job({"into": "out.duckdb"}, folder, a=one, b=other), new_values=("told",))
    before = values(folder, "a", "told")
    change(folder, "UPDATE people SET illness = 'other' WHERE id = 5", "UPDATE people SET age = 99 WHERE id = 6")
    made = run(folder, job({"into": "out.duckdb"}, folder, a=one, b=upper)).releases
    assert [made[n].ledger["held_back"] for n in "ab"] == [4, 4]  # type: ignore[index]
    assert [m for m, v in values(folder, "a", "told").items() if before[m] != v] == []


def test_another_type_would_make_everybody_somebody_else(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    run(folder, asked)
    before = (folder / "ledger.duckdb").read_bytes()
    for column, kind, words in [
        ("mark", "DECIMAL(9, 2)", "columns.mark: is of type DECIMAL"),
        ("id", "VARCHAR", "people.person: is of type text, and was of type integer"),
        ("id", "DOUBLE", "people.person: is of type DOUBLE"),
    ]:
        change(folder, f"ALTER TABLE people ALTER {column} TYPE {kind}")
        with pytest.raises(JobError, match=words):
            run(folder, asked)
    assert (folder / "ledger.duckdb").read_bytes() == before


def test_an_integer_may_be_wider(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    run(folder, asked)
    change(folder, "ALTER TABLE people ALTER id TYPE HUGEINT", "DELETE FROM people WHERE id = 7")
    assert run(folder, asked).releases["people"].ledger["held_back"] == 3  # type: ignore[index]


@pytest.mark.deep
@pytest.mark.parametrize("target", [{}, {"into": "out", "as": "parquet"}])
def test_an_older_ledger_and_another_one_are_known(folder: Path, target: dict[str, str]) -> None:
    """By the mark on the release, even where the copy went on by itself to the same number."""
    asked, aside = job(target, folder, people=part()), folder / "aside.duckdb"
    run(folder, asked)
    old = (folder / "ledger.duckdb").read_bytes()
    with pytest.raises(JobError, match="does not know the release that is there"):
        run(folder, asked, ledger=aside)
    run(folder, asked)
    aside.write_bytes(old)
    elsewhere = job({"into": "elsewhere.duckdb"}, folder, people=part())
    run(folder, elsewhere, ledger=aside)
    with pytest.raises(JobError, match="does not know the release that is there"):
        run(folder, asked, ledger=aside)
    with pytest.raises(VerificationError, match="another ledger, or an old copy"):
        sqldeid.verify(asked, folder / "db.duckdb", options=options(folder, ledger=aside))


@pytest.mark.parametrize("content", [b"", b"no database\n" * 999, None])
def test_what_is_no_ledger_is_named(folder: Path, content: bytes | None) -> None:
    source = folder / "db.duckdb"
    (folder / "ledger.duckdb").write_bytes(source.read_bytes() if content is None else content)
    with pytest.raises(JobError, match=r"--ledger: .*ledger\.duckdb is not a ledger"):
        run(folder, job({"into": "out.duckdb"}, folder, people=part()))
    with pytest.raises(JobError, match="is where releases go"):
        run(folder, job({"into": "new.duckdb"}, folder, people=part()), ledger=folder / "new.duckdb")
    assert not (folder / "new.duckdb").exists()


@pytest.mark.deep
def test_where_every_row_would_be_held_back_nothing_is_published(folder: Path) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    run(folder, asked)
    before = (folder / "out.duckdb").read_bytes(), (folder / "ledger.duckdb").read_bytes()
    change(folder, "UPDATE people SET id = id + 1000", "DELETE FROM people WHERE id % 30 > 0")
    few = release({"sex": qi()}, source="people", person="id", k=3)
    other = job({"into": "out.duckdb"}, folder, people=few)
    with pytest.raises(JobError, match="follows persons by id, not by mark"):
        run(folder, job({"into": "out.duckdb"}, folder, people=few | {"person": "mark"}))
    assert run(folder, other, new_persons=True).releases["people"].released == 4
    change(folder, "UPDATE people SET id = id + 1 WHERE id = (SELECT MAX(id) FROM people)")
    with pytest.raises(VerificationError, match="holds every row back"):
        run(folder, other)
    assert before[1] != (folder / "ledger.duckdb").read_bytes()


@pytest.mark.deep
def test_it_is_not_forgotten(folder: Path) -> None:
    """What was held to a ledger is not replaced without it: in a file, in place, as Parquet."""
    for target in ({"into": "out.duckdb"}, {}, {"into": "out", "as": "parquet"}):
        asked = job(target, folder, people=part())
        run(folder, asked)
        with pytest.raises(JobError, match="was held to a ledger"):
            sqldeid.anonymize(asked, folder / "db.duckdb", options=replace(options(folder), ledger=None))


def test_a_failed_publication_takes_the_record_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    run(folder, asked)
    before = (folder / "ledger.duckdb").read_bytes()

    def fail(self: FreshFile) -> tuple[str, ...]:
        raise EngineError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(FreshFile, "publish", fail)
        with pytest.raises(EngineError, match="disk is full"):
            run(folder, asked)
    assert (folder / "ledger.duckdb").read_bytes() == before
    assert not (folder / "ledger.duckdb.pending").exists()
    assert run(folder, asked).releases["people"].ledger["release"] == 2  # type: ignore[index]


@pytest.mark.deep
def test_a_kill_between_record_and_publication_counts_as_published(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())

    def stop(self: FreshFile) -> tuple[str, ...]:
        assert (folder / "ledger.duckdb.pending").exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FreshFile, "publish", stop)
        with pytest.raises(sqldeid.Interrupted):
            run(folder, asked)
    assert not (folder / "out.duckdb").exists()
    result = run(folder, asked).releases["people"]
    assert result.ledger["release"] == 2  # type: ignore[index]
    assert any("stopped between" in w for w in result.warnings)
    assert not any("stopped between" in w for w in run(folder, asked).releases["people"].warnings)


def test_two_runs_at_once_do_not_share_it(folder: Path) -> None:
    lock = os.open(folder / "ledger.duckdb.lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(EngineError, match="another run uses"):
        run(folder, job({"into": "out.duckdb"}, folder, people=part()))
    os.close(lock)
    assert not (folder / "out.duckdb").exists()


@pytest.mark.deep
def test_what_it_refuses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLDEID_KEY", raising=False)
    into = {"into": "out.duckdb"}
    good = job(into, folder, people=part())
    with pytest.raises(JobError, match="name the key with --key-file"):
        sqldeid.anonymize(good, folder / "db.duckdb", options=replace(options(folder), key_file=None))
    nobody = {k: v for k, v in part().items() if k != "person"} | {"rows_are_persons": True}
    for refused, words in [
        (job(into, folder, people=nobody), "follows persons"),
        (job(into, folder, people=part(suppression="blank")), "blanked rows show"),
    ]:
        with pytest.raises(JobError, match=words):
            run(folder, refused)
    hidden = part()
    hidden["privacy"] |= {"m_concealing": {"m": 0.5, "known": {"illness": 0.1}}}  # type: ignore[operator]
    with pytest.raises(JobError, match="m_concealing: the ledger does not keep it"):
        run(folder, job(into, folder, people=hidden))
    assert not (folder / "ledger.duckdb").exists()
    run(folder, good)
    (folder / "key").write_text("".join(f"{i:02x}" for i in range(8, 40)))
    with pytest.raises(JobError, match="another key"):
        run(folder, good)
    write(folder / "ledger.duckdb", "DROP TABLE facts")
    with pytest.raises(JobError, match="not a ledger"):
        run(folder, good)


@pytest.mark.deep
@pytest.mark.duckdb14
def test_private_releases_add_up_until_another_kind_voids_them(folder: Path) -> None:
    safe = release({"sex": qi("adult/sex")}, source="people", person="id", k=4)
    write(folder / "db.duckdb", "UPDATE people SET sex = CASE sex WHEN 'f' THEN 'Female' ELSE 'Male' END")
    settings = {"beta": 0.25, "epsilon": 2.0, "delta": 0.24}
    safe |= {"search": {"method": "epsilon-safe", "epsilon_safe": settings}}
    asked = job({"into": "out.duckdb"}, folder, people=safe)
    first, second = (run(folder, asked).releases["people"].ledger for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first["epsilon_total"], second["epsilon_total"]) == (2.0, 4.0)
    assert second["delta_total"] == pytest.approx(2 * first["delta_total"])  # type: ignore[operator]
    assert not second["void"]
    other = run(folder, job({"into": "out.duckdb"}, folder, people=part())).releases["people"]
    assert any("voids their totals" in w for w in other.warnings)
    last = run(folder, asked).releases["people"]
    assert last.ledger["void"]  # type: ignore[index]
    assert any("void for them" in w for w in last.warnings)


@pytest.mark.sampled(2)
@pytest.mark.duckdb14
@pytest.mark.parametrize("damaged", ["cells", "facts", "people", "releases"])
def test_a_damaged_ledger_is_named_whatever_part_it_is(folder: Path, damaged: str) -> None:
    asked = job({"into": "out.duckdb"}, folder, people=part())
    run(folder, asked)
    ledger, before = folder / "ledger.duckdb", digest(folder)
    with duckdb.connect(str(ledger), read_only=True) as c:
        blocks = {r[0] for r in c.execute(f"SELECT block_id FROM pragma_storage_info('{damaged}')").fetchall()} - {-1}
    content = bytearray(ledger.read_bytes())
    for block in blocks:
        content[3 * 4096 + block * 262_144 + 100] ^= 0xFF
    ledger.write_bytes(content)
    with pytest.raises(JobError, match=r"--ledger: .*ledger\.duckdb is not a ledger, or is damaged"):
        run(folder, asked, replace=True)
    with pytest.raises(JobError, match=r"--ledger: .*ledger\.duckdb is not a ledger, or is damaged"):
        sqldeid.verify(asked, folder / "db.duckdb", options=options(folder))
    assert blocks and digest(folder) == before


def digest(folder: Path) -> bytes:
    """What is published."""
    return (folder / "out.duckdb").read_bytes()
