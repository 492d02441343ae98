"""A release is not replaced, nor given a companion, where its source has changed: the two could be compared."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError
from tests.support import changing
from tests.support.files import read, write

REPLACE = sqldeid.Options(replace=True)
TABLE = {"source": "people", **changing.TABLE}
SERIES = {"source": "charted", **changing.SERIES}
JOBS = {
    "lattice": {"tables": {"r": TABLE}},
    "mondrian": {"tables": {"r": {"source": "people", **changing.MONDRIAN}}},
    "series": {"series": {"r": SERIES}},
}


def fill(path: Path, people: int) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE TABLE people AS SELECT n AS id, CAST(20 + n % 3 AS INTEGER) AS age, "
            "CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END AS ward FROM range(1, $n) r(n)",
            {"n": people + 1},
        )
        connection.execute(
            "CREATE OR REPLACE TABLE charted AS SELECT n AS id, h AS hour, 'HR' AS item, "
            "60 + n * 1.7 + (n * 7 + h * 3) % 5 AS value FROM range(1, $n) r(n), range(6) q(h)",
            {"n": people + 1},
        )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    fill(tmp_path / "source.duckdb", 8)
    return tmp_path / "source.duckdb"


def job(kind: str, folder: Path, **release: object) -> sqldeid.Job:
    return sqldeid.Job.parse({**JOBS[kind], "release": release} if release else JOBS[kind], folder=folder)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("into", [{}, {"into": "out.duckdb"}, {"into": "out", "as": "parquet"}])
@pytest.mark.parametrize("kind", JOBS)
def test_only_an_unchanged_source_is_released_again(source: Path, tmp_path: Path, kind: str, into: dict) -> None:
    asked = job(kind, tmp_path, **into)
    sqldeid.anonymize(asked, source)
    sqldeid.anonymize(asked, source, options=REPLACE)
    fill(source, 9)
    with pytest.raises(JobError, match=r"has changed since.*--without-ledger") as refused:
        sqldeid.anonymize(asked, source, options=REPLACE)
    assert refused.value.key == "--without-ledger"
    sqldeid.anonymize(asked, source, options=replace(REPLACE, without_ledger=True))
    sqldeid.anonymize(asked, source, options=REPLACE)
    sqldeid.verify(asked, source)


def test_the_ninth_persons_features_cannot_be_computed(source: Path, tmp_path: Path) -> None:
    """Of 8 persons, then 9, in one class each: 9 f2 - 8 f1 is the ninth person's mean."""

    def mean() -> float:
        with duckdb.connect(str(source)) as connection:
            [(found,)] = connection.execute("SELECT AVG(value) FROM release.r").fetchall()
        return float(found)

    asked = sqldeid.Job.parse({"series": {"r": {**SERIES, "durations": {"k": 5}, "privacy": {"k": 5}}}})
    sqldeid.anonymize(asked, source)
    first = mean()
    fill(source, 9)
    with pytest.raises(JobError, match="has changed since"):
        sqldeid.anonymize(asked, source, options=REPLACE)
    assert mean() == first
    sqldeid.anonymize(asked, source, options=replace(REPLACE, without_ledger=True))
    [(ninth,)] = read(source, "SELECT AVG(value) FROM charted WHERE id = 9")
    assert 9 * mean() - 8 * first == pytest.approx(ninth, abs=1)  # but for what rounding to a grid hides


def test_a_changed_value_is_a_change(source: Path, tmp_path: Path) -> None:
    for kind, change in (
        ("lattice", "UPDATE people SET ward = 'c' WHERE id = 3"),
        ("series", "UPDATE charted SET value = 61 WHERE id = 3 AND hour = 2"),
    ):
        asked = job(kind, tmp_path, into=f"{kind}.duckdb")
        sqldeid.anonymize(asked, source)
        write(source, change)
        with pytest.raises(JobError, match="has changed since"):
            sqldeid.anonymize(asked, source, options=REPLACE)


def test_what_is_not_released_may_change(source: Path, tmp_path: Path) -> None:
    asked = job("lattice", tmp_path)
    sqldeid.anonymize(asked, source)
    with duckdb.connect(str(source)) as connection:
        connection.execute("ALTER TABLE people ADD COLUMN seen TIMESTAMP")
        connection.execute("CREATE OR REPLACE TABLE people AS FROM people ORDER BY id DESC")
    sqldeid.anonymize(asked, source, options=REPLACE)


def test_a_release_in_another_schema_is_not_the_one_that_is_there(source: Path, tmp_path: Path) -> None:
    """It is named by the same job's name, and may read other rows: of it nothing is known, nor replaced."""
    sqldeid.anonymize(job("lattice", tmp_path), source)
    some = {"release": {"schema": "other"}, "tables": {"r": {**TABLE, "where": "id < 8"}}}
    sqldeid.anonymize(sqldeid.Job.parse(some, folder=tmp_path), source)


def test_a_companion_of_a_changed_source_is_refused(source: Path, tmp_path: Path) -> None:
    both = {"tables": {"r": TABLE, "q": {**TABLE, "privacy": {"k": 3, "suppression_limit": 0.9}}}}
    asked = sqldeid.Job.parse(both, folder=tmp_path)
    sqldeid.anonymize(asked, source, options=sqldeid.Options(only=("r",)))
    fill(source, 9)
    with pytest.raises(JobError, match=r"tables\.r: the release that is there is not added to: its source has changed"):
        sqldeid.anonymize(asked, source, options=sqldeid.Options(only=("q",)))
    fill(source, 8)
    sqldeid.anonymize(asked, source, options=sqldeid.Options(only=("q",)))


def test_marks_are_keyed_and_other_keys_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked = job("lattice", tmp_path)
    sqldeid.anonymize(asked, source)
    key = tmp_path / "state" / "sqldeid" / "key"
    assert os.name != "posix" or stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [f.name for f in key.parent.iterdir()] == ["key"]
    note = _note(source)
    of_the_source = {"persons", "whole", "named", "sums", "of", "base", "beneath", "person", "asked"}
    assert note["source_marks"][0].keys() == {"salt", "key", "engine", *of_the_source}
    assert "job_sha256" not in note and asked.sha256 not in json.dumps(note)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert _note(source) == note
    sqldeid.verify(asked, source)
    with pytest.raises(JobError, match="made with another key, on another machine or by another user"):
        sqldeid.anonymize(asked, source, options=REPLACE)
    with duckdb.connect(str(source)) as connection:
        older = json.dumps({"sqldeid": {k: v for k, v in note.items() if k != "source_marks"}})
        connection.execute(f"COMMENT ON TABLE release.r IS '{older}'")
    with pytest.raises(JobError, match="its note does not tell what the source was like"):
        sqldeid.anonymize(asked, source, options=REPLACE)


def _no_user(_: int) -> None:
    raise KeyError


@pytest.mark.parametrize("lacking", ["folder", "home"])
def test_without_a_place_for_a_key_releases_are_made_but_not_replaced(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    """In a container a user may have a number alone: no name, and no home."""
    if lacking == "folder":
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    else:
        for variable in ("XDG_STATE_HOME", "HOME"):
            monkeypatch.delenv(variable)
        monkeypatch.setattr("pwd.getpwuid", _no_user)
    asked = job("lattice", tmp_path)
    sqldeid.anonymize(asked, source)
    with pytest.raises(JobError, match="no key could be kept"):
        sqldeid.anonymize(asked, source, options=REPLACE)


def test_two_notes_do_not_tell_whether_the_source_changed(source: Path, tmp_path: Path) -> None:
    """A ledger holds a single change back; a mark that stays the same, or does not, would tell of it."""
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    options = sqldeid.Options(replace=True, ledger=tmp_path / "ledger", key_file=tmp_path / "key")
    asked, marks = job("lattice", tmp_path), []
    for _ in range(2):
        sqldeid.anonymize(asked, source, options=options)
        marks += _note(source)["source_marks"]
    told = [v for m in marks for v in [*m.values(), *m["sums"], *m["sums"].values()] if isinstance(v, str)]
    assert len(told) == len(set(told)) > 30


@pytest.mark.sampled(1)
@pytest.mark.parametrize("into", [{}, {"into": "out.duckdb"}, {"into": "out", "as": "parquet"}])
@pytest.mark.parametrize("kind", JOBS)
def test_another_name_is_not_another_release(source: Path, tmp_path: Path, kind: str, into: dict) -> None:
    [(section, parts)] = JOBS[kind].items()
    again = sqldeid.Job.parse({section: {"q": parts["r"]}, **({"release": into} if into else {})}, folder=tmp_path)
    sqldeid.anonymize(job(kind, tmp_path, **into), source)
    fill(source, 9)
    with pytest.raises(JobError, match=r"\.r: the release that is there is not (added to|replaced): its source has"):
        sqldeid.anonymize(again, source, options=REPLACE)
    fill(source, 8)
    sqldeid.anonymize(again, source, options=REPLACE)


@pytest.mark.deep
def test_trials_of_other_jobs_that_stay_beside_a_release_are_told(source: Path, tmp_path: Path) -> None:
    def trial(name: str, k: int, where: str | None = None, **more: object) -> sqldeid.Result:
        part = {**TABLE, "privacy": {"k": k, "suppression_limit": 0.9}} | ({"where": where} if where else {})
        asked = sqldeid.Job.parse({"tables": {name: part}}, folder=tmp_path)
        return sqldeid.anonymize(asked, source, options=replace(REPLACE, **more))  # type: ignore[arg-type]

    def told(result: sqldeid.Result) -> list[str]:
        return [w for w in result.warnings if "released from the same source by another job" in w]

    key = tmp_path / "key"
    key.write_text("0123456789abcdef" * 4)
    held = {"ledger": tmp_path / "ledger.duckdb", "key_file": key}
    assert told(trial("one", 2)) == []
    (said,) = told(trial("two", 3))
    assert said.startswith("job: tables.two: one beside it was released") and "delete the others" in said
    (said,) = told(trial("three", 4))
    assert "tables.three: one, two beside it were released" in said or "two, one beside it were" in said
    assert told(trial("three", 4, without_ledger=True)) == [], "the holder says that nobody was given any"
    write(source, "DROP TABLE release.one", "DROP TABLE release.two")
    assert told(trial("three", 4)) == []
    write(source, "DROP TABLE release.three")
    assert told(trial("four", 2, **held)) == told(trial("five", 2, **held)) == [], "the ledger holds them to each other"
    elsewhere = sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"six": TABLE}}, folder=tmp_path)
    assert told(sqldeid.anonymize(elsewhere, source)) == [], "what lies elsewhere is not looked at"


def test_another_cohort_in_the_place_of_the_first_is_refused(source: Path, tmp_path: Path) -> None:
    def cohort(name: str, where: str, **release: object) -> sqldeid.Job:
        part = {**TABLE, "where": where}
        return sqldeid.Job.parse({"tables": {name: part}, **({"release": release} if release else {})}, folder=tmp_path)

    sqldeid.anonymize(cohort("r", "id < 8", into="out.duckdb"), source)
    with pytest.raises(JobError, match=r"tables\.r: .* is not replaced: its job reads the source otherwise by now"):
        sqldeid.anonymize(cohort("q", "id < 9", into="out.duckdb"), source, options=REPLACE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", JOBS)
def test_another_cohort_under_another_name_is_refused(source: Path, tmp_path: Path, kind: str) -> None:
    """One person more, in another job: of two runs it is not known how many persons are in one of them alone."""
    [(section, parts)] = JOBS[kind].items()

    def cohort(name: str, where: str, **changes: object) -> sqldeid.Job:
        return sqldeid.Job.parse({section: {name: {**parts["r"], "where": where, **changes}}}, folder=tmp_path)

    sqldeid.anonymize(cohort("r", "id < 8"), source)
    with pytest.raises(
        JobError, match=r"\.r: the release that is there is not added to: it has other rows of the same"
    ):
        sqldeid.anonymize(cohort("q", "id < 9"), source)
    sqldeid.anonymize(cohort("q", "id < 8 AND id > 0"), source)  # the same persons
    sqldeid.anonymize(cohort("s", "id < 9"), source, options=sqldeid.Options(without_ledger=True))
    if section == "tables":
        other = {"ward": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
        alone = {**TABLE, "source": "wards", "columns": other}
        with duckdb.connect(str(source)) as connection:
            connection.execute("CREATE TABLE wards AS FROM people WHERE id < 5")
        sqldeid.anonymize(sqldeid.Job.parse({"tables": {"o": alone}}, folder=tmp_path), source)  # of another table


def test_cohorts_of_tables_are_made_in_one_run(source: Path, tmp_path: Path) -> None:
    fill(source, 12)
    parts = {"r": {**TABLE, "where": "id < 7"}, "q": {**TABLE, "where": "id >= 7"}}
    asked = sqldeid.Job.parse({"tables": parts}, folder=tmp_path)
    sqldeid.anonymize(asked, source, options=sqldeid.Options(only=("r",)))
    with pytest.raises(JobError, match=r"tables\.r: .* in one run, without --only"):
        sqldeid.anonymize(asked, source, options=sqldeid.Options(only=("q",)))
    sqldeid.anonymize(asked, source, options=REPLACE)
    parts = {"r": parts["r"], "q": {**TABLE, "where": "id < 8", "never_with": ["r"]}}
    apart = sqldeid.Job.parse({"tables": parts, "release": {"schema": "apart"}}, folder=tmp_path)
    sqldeid.anonymize(apart, source, options=sqldeid.Options(only=("r",)))
    sqldeid.anonymize(apart, source, options=sqldeid.Options(only=("q",)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", [{"privacy": {"k": 5}}, {"durations": {"k": 5}}, {"step_hours": 2}])
def test_series_are_not_replaced_by_other_classes_of_the_same_persons(
    source: Path, tmp_path: Path, change: dict
) -> None:
    sqldeid.anonymize(job("series", tmp_path), source)
    with pytest.raises(JobError, match=r"series\.r: the release that is there is not replaced: its job asks for other"):
        sqldeid.anonymize(sqldeid.Job.parse({"series": {"r": {**SERIES, **change}}}), source, options=REPLACE)
    same = {**SERIES, "perturb": {"method": "projection"}, "where": "id > 0"}
    sqldeid.anonymize(sqldeid.Job.parse({"series": {"r": same}}), source, options=REPLACE)


def test_two_runs_do_not_escape_what_one_run_refuses(source: Path) -> None:
    """Overlapping cohorts of series, one after the other by --only."""
    fill(source, 12)
    overlapping = cohorts("id <= 8", "id <= 9", k=5)
    sqldeid.anonymize(overlapping, source, options=sqldeid.Options(only=("s0",)))
    with pytest.raises(JobError, match=r"series\.s0: .* in one run, without --only"):
        sqldeid.anonymize(overlapping, source, options=sqldeid.Options(only=("s1",)))
    with pytest.raises(JobError, match=r"series\.s1: series\.s0 has some of the same persons"):
        sqldeid.anonymize(overlapping, source, options=REPLACE)


@pytest.mark.deep
def test_a_companion_of_what_a_ledger_holds_back_is_refused_without_it(source: Path, tmp_path: Path) -> None:
    """The one whom the ledger holds back is what the companion has more."""
    fill(source, 40)
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    held = sqldeid.Options(replace=True, ledger=tmp_path / "ledger", key_file=tmp_path / "key")
    for section, part in (("series", SERIES), ("tables", TABLE)):
        into = {"into": f"{section}.duckdb"}
        asked = sqldeid.Job.parse({section: {"r": part, "q": part}, "release": into}, folder=tmp_path)
        renamed = sqldeid.Job.parse({section: {"z": part}, "release": into}, folder=tmp_path)
        held = replace(held, ledger=tmp_path / section)
        sqldeid.anonymize(asked, source, options=replace(held, only=("r",)))
        for job_, options in ((asked, replace(REPLACE, only=("q",))), (renamed, REPLACE)):
            with pytest.raises(JobError, match=r"\.r: .* it was held to a ledger, and this run names none"):
                sqldeid.anonymize(job_, source, options=options)
        sqldeid.anonymize(asked, source, options=replace(held, only=("q",)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["lattice", "series"])
def test_a_ledger_that_begins_over_a_release_says_what_it_does_not_hold(
    source: Path, tmp_path: Path, kind: str
) -> None:
    """The first release was given to somebody, perhaps; later ones are held to the ledger's alone."""
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    asked = job(kind, tmp_path, into="out.duckdb")
    held = sqldeid.Options(replace=True, ledger=tmp_path / "ledger", key_file=tmp_path / "key")
    sqldeid.anonymize(asked, source, options=sqldeid.Options(key_file=tmp_path / "key"))
    told = "r: the release that was there was made without this ledger, which holds later ones to this one and not"
    assert sum(told in w for w in sqldeid.anonymize(asked, source, options=held).warnings) == 1
    assert not any(told in w for w in sqldeid.anonymize(asked, source, options=held).warnings)
    again = replace(held, ledger=tmp_path / "second")
    with pytest.raises(JobError, match="does not know the release that is there"):
        sqldeid.anonymize(asked, source, options=again)


@pytest.mark.deep
def test_cohorts_of_two_jobs_that_a_ledger_holds_to_each_other(source: Path, tmp_path: Path) -> None:
    fill(source, 40)
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    held = sqldeid.Options(ledger=tmp_path / "ledger", key_file=tmp_path / "key")
    first, second = (
        sqldeid.Job.parse({"tables": {name: {**TABLE, "where": where}}}, folder=tmp_path)
        for name, where in (("r", "id < 30"), ("q", "id < 31"))
    )
    sqldeid.anonymize(first, source, options=held)
    with pytest.raises(JobError, match=r"tables\.r: .* the two cohorts may differ by few persons"):
        sqldeid.anonymize(second, source, options=sqldeid.Options(key_file=tmp_path / "key"))
    result = sqldeid.anonymize(second, source, options=held).releases["q"]
    assert result.ledger["held_back"] == 1  # type: ignore[union-attr,index]


def _note(source: Path) -> dict:
    [(text,)] = read(source, "SELECT comment FROM duckdb_tables() WHERE table_name = 'r'")
    return dict(json.loads(text)["sqldeid"])


def cohorts(*filters: str, k: int = 4, **changes: object) -> sqldeid.Job:
    part = {**SERIES, "privacy": {"k": k}, "durations": {"k": k}, **changes}
    return sqldeid.Job.parse({"series": {f"s{i}": {**part, "where": where} for i, where in enumerate(filters)}})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("filters", [("id <= 8", "id <= 9"), ("id <= 9", "id > 1"), ("id <= 11", "hour < 5")])
def test_overlapping_cohorts_of_one_run_are_refused(source: Path, filters: tuple[str, str]) -> None:
    fill(source, 12)
    with pytest.raises(JobError, match=r"series\.s1: series\.s0 has some of the same persons in other classes"):
        sqldeid.anonymize(cohorts(*filters, k=5), source)
    assert not read(source, "SELECT * FROM duckdb_tables() WHERE schema_name = 'release'")
    sqldeid.anonymize(cohorts(*filters, k=5), source, options=sqldeid.Options(without_ledger=True))


@pytest.mark.parametrize("filters", [("id <= 12", "id < 13"), ("id <= 6", "id > 6")])
def test_the_same_persons_and_disjoint_ones_are_released_together(source: Path, filters: tuple[str, str]) -> None:
    fill(source, 12)
    sqldeid.anonymize(cohorts(*filters), source)


def test_with_a_ledger_cohorts_are_entered_one_after_the_other(source: Path, tmp_path: Path) -> None:
    fill(source, 40)
    (tmp_path / "key").write_text("".join(f"{i:02x}" for i in range(7, 39)))
    options = sqldeid.Options(ledger=tmp_path / "ledger", key_file=tmp_path / "key")
    found = sqldeid.anonymize(cohorts("id <= 38", "id <= 40"), source, options=options).releases
    assert found["s0"].ledger["held_back"] == 0 < found["s1"].ledger["held_back"]  # type: ignore[union-attr]
    sqldeid.verify(cohorts("id <= 38", "id <= 40"), source, options=options)
