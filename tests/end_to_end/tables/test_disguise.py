"""Pseudonyms and shifted dates against Python's hmac and pandas; what is secret is nowhere; tampering is found."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import sqldeid
from sqldeid.errors import JobError, VerificationError
from sqldeid.run import Options, anonymize, plan, verify
from sqldeid.tables.disguise import pseudonyms as hashing
from tests.support.files import frame, write
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job, qi, release

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"
OTHER_KEY = KEY[::-1]
ROWS = 1000
SOURCE = f"""CREATE TABLE stays AS
    SELECT CAST(700000 + i AS INTEGER) AS "select", 'hosp''ital ' || i % 40 AS hospital,
           CASE WHEN i % 9 > 0 THEN CAST(i * 7 % 300 AS DECIMAL(18, 0)) END AS ward, ['f', 'm'][1 + i % 2] AS sex,
           CAST(CASE WHEN i % 50 > 0 THEN 20 + i % 90 END AS SMALLINT) AS age,
           DATE '2019-12-01' + CAST(i * 13 % 800 AS INTEGER) AS seen,
           CASE WHEN i % 7 > 0 THEN TIMESTAMP '2020-01-03 10:11:12.123456' + INTERVAL (i % 400) HOUR END AS gone,
           DATE '1900-01-01' + CAST(i * 997 % 40000 AS INTEGER) AS born, i % 11 + 0.5e0 AS los, i AS true_row
    FROM RANGE({ROWS}) AS r(i)"""
PSEUDONYM = {**IDENTIFYING, "pseudonym": True}
SHIFT = {**INSENSITIVE, "shift": "person"}
COLUMNS = {
    "select": PSEUDONYM,
    "hospital": PSEUDONYM,
    "ward": PSEUDONYM,
    "sex": qi(),
    "age": qi({"bands": [10, 20]}, top_code=90),
    "seen": SHIFT,
    "gone": {**SENSITIVE, "shift": "person"},
    "born": {**INSENSITIVE, "shift": "birth"},
    "los": {**INSENSITIVE, "top_code": 7},
    "true_row": INSENSITIVE,
}
"""The last column tells the person, so that tests can tell whose row it is."""


@pytest.fixture(autouse=True)
def no_key_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLDEID_KEY", raising=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.duckdb"
    write(path, SOURCE)
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "other key").write_text(OTHER_KEY)
    return path


def options(source: Path, key: str = "key", **more: object) -> Options:
    return Options(key_file=source.parent / key, **more)


def wanted(target: Path | str, kind: str = "table", columns: dict[str, object] | None = None, **more: object) -> object:
    part = release(columns or COLUMNS, source="stays", k=3, limit=0.05, person="select", **more)
    return job({"into": str(target), "as": kind}, r=part)


def read(target: Path, kind: str = "table") -> tuple[pd.DataFrame, dict[str, object]]:
    """A release as it stands, in its order, and the note on it."""
    with duckdb.connect() as c:
        if kind == "parquet":
            name = f"'{target}/r.parquet'"
            notes = [row[0] for row in c.execute(f"SELECT DECODE(value) FROM parquet_kv_metadata({name})").fetchall()]
            note = next(json.loads(n)["sqldeid"] for n in notes if n.startswith('{"sqldeid"'))
        else:
            c.execute(f"ATTACH '{target}' AS t (READ_ONLY); USE t")
            name = "t.release.r"
            query = "SELECT comment FROM duckdb_tables() WHERE database_name = 't'"
            note = json.loads(c.execute(query).fetchall()[0][0])["sqldeid"]
        return c.execute(f"SELECT * FROM {name}").df(), note


def original(source: Path) -> pd.DataFrame:
    return frame(source, "SELECT *, CAST(ward AS VARCHAR) AS ward_text FROM stays ORDER BY true_row")


def pseudonym(key: str, run: object, release_name: str, column: str, value: object) -> str:
    """By the standard library, from the description in docs/explanation/pseudonyms.md."""
    parts = [b"sqldeid pseudonym 1", bytes.fromhex(str(run)), release_name.encode(), column.encode()]
    message = b"".join(len(p).to_bytes(4, "big") + p for p in parts) + str(value).encode()
    return hmac.new(bytes.fromhex(key), message, hashlib.sha256).hexdigest()[:32]


def assert_disguised(found: pd.DataFrame, note: dict[str, object], truth: pd.DataFrame) -> None:
    truth = truth.loc[found["true_row"]].reset_index(drop=True)
    for name, values in (("select", truth["select"]), ("hospital", truth["hospital"]), ("ward", truth["ward_text"])):
        expected = [None if pd.isna(v) else pseudonym(KEY, note["pseudonym_run"], "r", name, v) for v in values]
        assert [None if pd.isna(v) else v for v in found[name]] == expected
    days = (found["seen"] - truth["seen"]).dt.days
    assert days.abs().between(1, 365).all() and days.nunique() > 300
    moved = pd.to_timedelta(days, unit="D")
    moment = "datetime64[us]"  # pandas 2 makes nanoseconds of sums
    pd.testing.assert_series_equal(
        found["gone"].astype(moment), (truth["gone"] + moved).astype(moment), check_names=False
    )
    latest = pd.concat([truth["seen"], truth["gone"]], axis=1).max(axis=1)
    young = latest < truth["born"] + pd.DateOffset(years=90)
    assert 0 < young.sum() < len(young)
    expected = (truth["born"] + moved).where(young)
    pd.testing.assert_series_equal(found["born"].astype(moment), expected.astype(moment), check_names=False)
    assert found["los"].tolist() == truth["los"].clip(upper=7).tolist()
    assert truth["los"].max() > 7


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
def test_each_disguise_is_what_it_should_be(source: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    result = anonymize(wanted(target, kind), source, options=options(source)).releases["r"]
    found, note = read(target, kind)
    assert_disguised(found, note, original(source))
    assert len(found) == result.released > 900
    assert result.pseudonymised == ("select", "hospital", "ward")
    assert any("pseudonymised, not anonymous" in w and "select, hospital, ward" in w for w in result.warnings)
    assert any("intervals are fingerprints" in w for w in result.warnings)
    assert any("columns.born: tells the age to the day" in w for w in result.warnings)
    assert not any("whoever knows that value" in w and "select" in w for w in result.warnings)
    assert result.to_public()["status"] == "pseudonymised, not anonymous"
    assert result.columns["seen"].shown == "shifted by person"
    for given in (Options(), options(source)):
        assert verify(wanted(target, kind), source, options=given)["r"].released == len(found)
    with pytest.raises(VerificationError, match="the key is another"):
        verify(wanted(target, kind), source, options=options(source, "other key"))


def test_top_code_goes_before_the_hierarchy(source: Path, tmp_path: Path) -> None:
    columns = {"sex": qi(), "age": qi(top_code=90)}
    anonymize(wanted(tmp_path / "out", columns=columns), source)
    found, _ = read(tmp_path / "out")
    ages = original(source)["age"].astype("float").clip(upper=90)
    shown = found["age"].str.removeprefix("≥ ").astype("float")
    pd.testing.assert_series_equal(
        shown.value_counts(dropna=False).sort_index(), ages.value_counts(dropna=False).sort_index(), check_names=False
    )
    assert ages.isna().any() and ages.max() == shown.max() == 90
    assert set(found["age"][shown == 90]) == {"≥ 90"}
    assert verify(wanted(tmp_path / "out", columns=columns), source)["r"].k > 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("more", [{}, {"view": "computed"}, {"text": True}, {"search": {"method": "ola"}}])
@pytest.mark.parametrize(("k", "level"), [(1, 0), (20, 1), (45, 2)])
def test_labels_of_what_was_cut_are_true_at_every_level(
    tmp_path: Path, more: dict[str, object], k: int, level: int
) -> None:
    source = tmp_path / "ages.duckdb"
    write(source, "CREATE TABLE people AS SELECT i AS id, 80 + i % 24 AS age FROM RANGE(120) AS r(i)")
    target = {} if more.get("view") else {"into": str(tmp_path / "out.duckdb")}
    if more.get("view"):
        target, more = {"as": "view"}, {**more, "frozen": True}
    asked = release({"age": qi({"bands": [5, 10, 20]}, top_code=89)}, source="people", k=k, person="id", **more)
    made = job(target, tmp_path, r=asked)
    assert anonymize(made, source).releases["r"].node == {"age": level}
    with duckdb.connect(str(source if more.get("view") else tmp_path / "out.duckdb"), read_only=True) as c:
        found = dict(c.execute("SELECT age, COUNT(*) FROM release.r GROUP BY ALL").fetchall())
    expected = [{str(a): 5 for a in range(80, 89)} | {"≥ 89": 75}, {"[80, 85)": 25, "≥ 85": 95}, {"≥ 80": 120}]
    assert found == expected[level]
    assert verify(made, source)["r"].released == 120


def test_a_later_load_has_the_same_labels(tmp_path: Path) -> None:
    source = tmp_path / "ages.duckdb"
    write(source, "CREATE TABLE people AS SELECT i AS id, 80 + i % 8 AS age FROM RANGE(120) AS r(i)")
    made = job(
        {"into": str(tmp_path / "out.duckdb")},
        tmp_path,
        r=release({"age": qi({"bands": [5]}, top_code=89)}, source="people", k=20),
    )
    first = anonymize(made, source)
    write(source, "UPDATE people SET age = age + 10 WHERE id % 3 = 0")
    anonymize(made, source, options=Options(replace=True, without_ledger=True, policy=first.to_dict()))
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as c:
        assert {a for (a,) in c.execute("SELECT DISTINCT age FROM release.r").fetchall()} == {"[80, 85)", "≥ 85"}


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (qi({"mask": [1]}, top_code=89), "does not go with mask"),
        (qi({"bands": [5]}, top_code=89.5), "has 0 decimals"),
        (qi("ages.csv", top_code=89), "level 1 has a label"),
    ],
)
def test_a_top_code_that_labels_cannot_tell_is_refused(
    source: Path, tmp_path: Path, column: dict[str, object], reason: str
) -> None:
    (tmp_path / "ages.csv").write_text("89;about 80;*\n20;about 20;*\n")
    made = job({"into": str(tmp_path / "out")}, tmp_path, r=release({"sex": qi(), "age": column}, source="stays"))
    with pytest.raises(JobError, match=reason) as refused:
        anonymize(made, source)
    assert refused.value.key == "tables.r.columns.age.top_code"


def test_parts_make_no_difference(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 7, 1000):
        with monkeypatch.context() as patched:
            patched.setattr(hashing, "PART_VALUES", max(size, 97) if size < 7 else size * 50)
            target = tmp_path / str(size)
            anonymize(wanted(target), source, options=options(source))
        assert_disguised(*read(target), original(source))


def test_every_publication_release_and_column_has_its_own(source: Path, tmp_path: Path) -> None:
    columns = {"select": PSEUDONYM, "true_row": PSEUDONYM, "sex": qi(), "seen": SHIFT}
    part = release(columns, source="stays", k=3, person="select")
    seen, shifts = [], []
    for target in ("first", "second"):
        anonymize(job({"into": str(tmp_path / target)}, r=part, s=part), source, options=options(source))
        with duckdb.connect(str(tmp_path / target)) as c:
            for name in ("r", "s"):
                table = c.execute(f'SELECT "select", true_row FROM release.{name}').fetchall()
                seen += [{a for a, _ in table}, {b for _, b in table}]
                shifts.append(c.execute(f"SELECT seen FROM release.{name} ORDER BY ALL").fetchall())
    assert all(len(values) == ROWS for values in seen)
    assert len(set.union(*seen)) == ROWS * len(seen)
    assert len(set(map(str, shifts))) == len(shifts)


def test_the_key_and_the_days_are_nowhere(source: Path, tmp_path: Path) -> None:
    """Not in the release, the result, the database, nor in any statement that DuckDB was given."""
    folder = tmp_path / "made"
    folder.mkdir()
    with duckdb.connect(str(source)) as c:
        c.execute("CALL enable_logging('QueryLog')")
        found = anonymize(wanted(folder / "out", "parquet"), c, options=options(source))
        logged = "\n".join(row[0] for row in c.execute("SELECT message FROM duckdb_logs").fetchall())
        assert "sqldeid disguise of" in logged, "the log must hold what was run"
        left = c.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
    assert left == [("stays",)]
    bytes_ = b"".join(p.read_bytes() for p in [source, *folder.rglob("*")] if p.is_file())
    told = json.dumps(found.to_dict()) + json.dumps(found.to_public()) + repr(found) + logged
    for secret in (KEY, KEY.upper()):
        assert secret not in told and secret.encode() not in bytes_
    assert bytes.fromhex(KEY) not in bytes_
    released = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    released = re.sub(rb"[0-9a-f]{32,}", b"", released)  # a keyed hash has any digits by chance
    assert b"hosp'ital" not in released and b"70000" not in released


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "with_key_alone"),
    [
        ("UPDATE release.r SET seen = seen + 1 WHERE true_row = 500", False),
        ("UPDATE release.r SET gone = gone + INTERVAL 1 SECOND WHERE true_row = 500", False),
        ("UPDATE release.r SET born = NULL WHERE true_row = 30", False),
        ("UPDATE release.r SET seen = NULL WHERE true_row = 500", False),
        ("UPDATE release.r SET los = 5.5 WHERE true_row = 28", False),
        ("UPDATE release.r SET ward = NULL WHERE true_row = 500", False),
        ("""UPDATE release.r SET "select" = 'x' WHERE true_row = 500""", False),
        ("""UPDATE release.r SET "select" = (SELECT MIN("select") FROM release.r)""", False),
        ("UPDATE release.r SET hospital = MD5(CAST(true_row AS VARCHAR))", False),
        ("UPDATE release.r SET hospital = MD5(hospital)", True),
        ("""UPDATE release.r SET "select" = MD5("select") WHERE true_row < 500""", True),
    ],
)
def test_what_was_changed_is_found(source: Path, tmp_path: Path, change: str, with_key_alone: bool) -> None:
    target = tmp_path / "out"
    anonymize(wanted(target), source, options=options(source))
    write(target, change)
    if with_key_alone:
        verify(wanted(target), source)
    for given in [options(source)] if with_key_alone else [Options(), options(source)]:
        with pytest.raises(VerificationError, match="failed its re-check"):
            verify(wanted(target), source, options=given)


NOBODY = {"person": None, "rows_are_persons": True}
REFUSED = [
    ({"select": PSEUDONYM, "sex": qi()}, {}, "tables.r.columns.select.pseudonym", "needs a secret key"),
    ({"sex": {**qi(), "pseudonym": True}}, {}, "tables.r.columns.sex.pseudonym", 'role = "identifying"'),
    ({"sex": qi(), "seen": {**IDENTIFYING, "shift": "person"}}, {}, "tables.r.columns.seen.shift", "role"),
    ({"sex": qi(), "seen": SHIFT}, NOBODY, "tables.r.columns.seen.shift", "person key"),
    ({"sex": qi(), "born": {**INSENSITIVE, "shift": "birth"}}, {}, "tables.r.columns.born.shift", "another date"),
    ({"sex": qi(), "seen": SHIFT, "gone": INSENSITIVE}, {}, "tables.r.columns.gone", "tells the shift"),
    ({"sex": qi(), "los": SHIFT}, {}, "tables.r.columns.los.shift", "date or timestamp"),
    ({"sex": qi(), "los": PSEUDONYM}, {}, "tables.r.columns.los.pseudonym", "cast it in a source query"),
    ({"sex": qi(top_code=1)}, {}, "tables.r.columns.sex.top_code", "integer"),
    (
        {"sex": qi(), "seen": {**SENSITIVE, "shift": "person"}},
        {"privacy": {"k": 3, "l_diversity": {"column": "seen", "l": 2}}},
        "tables.r.columns.seen.shift",
        "none can judge it shifted",
    ),
    (
        {"sex": qi(), "select": PSEUDONYM},
        {"search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.2, "epsilon": 1.0, "delta": 0.19}}},
        "tables.r.columns.select.pseudonym",
        "epsilon-safe",
    ),
    (
        {"sex": qi(), "seen": SHIFT},
        {"view": "computed", "frozen": True},
        "tables.r.columns.seen.shift",
        "a computed view",
    ),
]


@pytest.mark.parametrize(("columns", "more", "key", "said"), REFUSED)
def test_what_is_not_sound_is_refused(
    source: Path, tmp_path: Path, columns: dict[str, object], more: dict[str, object], key: str, said: str
) -> None:
    part = {**release(columns, source="stays", k=3, person="select"), **more}
    part = {name: value for name, value in part.items() if value is not None}
    computed = part.get("view") == "computed"
    with pytest.raises(JobError) as raised:
        asked = job({"as": "view"} if computed else {"into": str(tmp_path / "out")}, r=part)
        anonymize(asked, source)
    assert raised.value.key == key and said in raised.value.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("type_", ["TIMESTAMPTZ", "TIMESTAMP_NS", "TIMESTAMP_S"])
def test_true_moments_of_every_type_beside_shifted_dates_are_refused(source: Path, tmp_path: Path, type_: str) -> None:
    write(source, f"ALTER TABLE stays ADD COLUMN moment {type_}", "UPDATE stays SET moment = gone")
    columns = {"sex": qi(), "seen": SHIFT, "moment": INSENSITIVE}
    with pytest.raises(JobError, match="tells the shift"):
        anonymize(wanted(tmp_path / "out", columns=columns), source)


def test_a_plan_needs_no_key(source: Path, tmp_path: Path) -> None:
    assert plan(wanted(tmp_path / "out"), source)[0].name == "r"


def test_dates_at_the_end_of_time_are_refused_or_stay(source: Path, tmp_path: Path) -> None:
    columns = {"sex": qi(), "seen": SHIFT, "true_row": INSENSITIVE}
    write(source, "UPDATE stays SET seen = DATE '5881580-07-10' WHERE true_row = 5")
    with pytest.raises(JobError):
        anonymize(wanted(tmp_path / "out", columns=columns), source)
    assert not (tmp_path / "out").exists()
    write(source, "UPDATE stays SET seen = DATE 'infinity' WHERE true_row = 5")
    anonymize(wanted(tmp_path / "out", columns=columns), source)
    with duckdb.connect(str(tmp_path / "out")) as c:
        assert c.execute("SELECT COUNT(*) FROM release.r WHERE seen = DATE 'infinity'").fetchall() == [(1,)]


def test_hidden_rows_stand_in_the_order_of_what_is_released(source: Path, tmp_path: Path) -> None:
    columns = {"select": PSEUDONYM, "sex": qi(), "seen": SHIFT}
    anonymize(wanted(tmp_path / "out", columns=columns), source, options=options(source))
    found, _ = read(tmp_path / "out")
    rows = list(zip(found["sex"], found["select"], found["seen"], strict=True))
    assert rows == sorted(rows)
    assert np.mean(found["seen"].diff().dt.days.dropna() >= 0) < 0.7, "no other order shows"


def test_disguises_go_with_stacks(source: Path, tmp_path: Path) -> None:
    write(
        source,
        'CREATE TABLE codes AS SELECT true_row % 3 AS code, 1 AS seq, "select" AS id FROM stays',
        'CREATE TABLE ids AS SELECT "select" AS id, sex, seen, gone, true_row FROM stays',
    )
    columns = {"id": PSEUDONYM, "sex": qi(), "seen": SHIFT, "gone": SHIFT, "true_row": INSENSITIVE}
    stack = {"from": "codes", "on": "id", "value": "code", "order": "seq", "first": 1, "role": "quasi-identifying"}
    part = {
        **release(columns, source="ids", k=3, person="id"),
        "stack": {"code": {**stack, "hierarchy": {"suppress": True}}},
    }
    asked = job({"into": str(tmp_path / "out")}, r=part)
    anonymize(asked, source, options=options(source))
    found, note = read(tmp_path / "out")
    truth = original(source).loc[found["true_row"]].reset_index(drop=True)
    assert found["id"].tolist() == [pseudonym(KEY, note["pseudonym_run"], "r", "id", v) for v in truth["select"]]
    days = (found["seen"] - truth["seen"]).dt.days
    moved = (truth["gone"] + pd.to_timedelta(days, unit="D")).astype("datetime64[us]")
    pd.testing.assert_series_equal(found["gone"].astype("datetime64[us]"), moved, check_names=False)
    for given in (Options(), options(source)):
        assert verify(asked, source, options=given)["r"].released == ROWS
    with pytest.raises(VerificationError, match="the key is another"):
        verify(asked, source, options=options(source, "other key"))


def test_a_series_of_releases_has_pseudonyms_but_no_shifts(source: Path, tmp_path: Path) -> None:
    """Whoever links releases by their intervals would have the true date between many shifted ones."""
    ledger = options(source, ledger=tmp_path / "ledger.db")
    with pytest.raises(JobError, match="does not go with a ledger"):
        anonymize(wanted(tmp_path / "out"), source, options=ledger)
    columns = {"select": PSEUDONYM, "sex": qi(), "age": qi({"bands": [10, 20]})}
    seen = []
    for night in range(2):
        anonymize(wanted(tmp_path / f"out{night}", columns=columns), source, options=ledger)
        seen.append(set(read(tmp_path / f"out{night}")[0]["select"]))
    assert len(seen[0] & seen[1]) == 0 < min(map(len, seen))


CUTS = [("day", "DATE_TRUNC('day', {})"), ("week", "DATE_TRUNC('week', {})"), ("month", "DATE_TRUNC('month', {})")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["table", "parquet"])
@pytest.mark.parametrize(("to", "cut"), CUTS)
def test_times_are_cut_alone_and_after_a_shift(source: Path, tmp_path: Path, kind: str, to: str, cut: str) -> None:
    alone = {"sex": qi(), "seen": {**INSENSITIVE, "to": to}, "gone": {**SENSITIVE, "to": to}, "true_row": INSENSITIVE}
    made = wanted(tmp_path / "alone", kind, columns=alone)
    shown = anonymize(made, source).releases["r"].columns["seen"].shown
    assert shown == f"to the {to}" and verify(made, source)["r"].k > 1
    found, _ = read(tmp_path / "alone", kind)
    truth = frame(source, f"SELECT {cut.format('seen')} AS seen, {cut.format('gone')} AS gone, true_row FROM stays")
    truth = truth.set_index("true_row").loc[found["true_row"]].reset_index(drop=True)
    for name in ("seen", "gone"):
        pd.testing.assert_series_equal(
            found[name].astype("datetime64[us]"), truth[name].astype("datetime64[us]"), check_names=False
        )
    shifted = {n: {**c, "shift": "person"} if "to" in c else c for n, c in alone.items()}
    made = wanted(tmp_path / "shifted", kind, columns=shifted)
    shown = anonymize(made, source, options=options(source)).releases["r"].columns["seen"].shown
    assert shown == f"shifted by person, to the {to}" and verify(made, source)["r"].k > 1
    found, _ = read(tmp_path / "shifted", kind)
    times = pd.concat([found["seen"], found["gone"]]).dropna().astype("datetime64[us]")
    assert len(times) and (times == times.dt.normalize()).all()
    assert to != "month" or (times.dt.day == 1).all()
    assert to != "week" or (times.dt.day_of_week == 0).all()


@pytest.mark.parametrize("to", ["day", "week", "month"])
@pytest.mark.parametrize("shift", [{}, {"shift": "person"}])
def test_a_time_that_is_finer_than_said_fails(source: Path, tmp_path: Path, to: str, shift: dict[str, str]) -> None:
    made = wanted(tmp_path / "out", columns={"sex": qi(), "gone": {**INSENSITIVE, "to": to, **shift}})
    anonymize(made, source)
    with duckdb.connect(str(tmp_path / "out")) as c:
        some = "(SELECT MAX(rowid) FROM release.r WHERE gone IS NOT NULL)"
        c.execute(f"UPDATE release.r SET gone = gone + INTERVAL 1 HOUR WHERE rowid = {some}")
    with pytest.raises(VerificationError):
        verify(made, source)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ({"role": "identifying", "to": "day"}, "goes with role"),
        ({**qi({"dates": ["year"]}), "to": "day"}, "goes with role"),
        ({**INSENSITIVE, "to": "year"}, "day"),
        ({**INSENSITIVE, "to": "day", "top_code": 3}, "does not go with"),
    ],
)
def test_what_cannot_be_cut_is_refused(column: dict[str, object], reason: str) -> None:
    with pytest.raises(JobError, match=reason):
        wanted("out", columns={"sex": qi(), "seen": column})


def test_a_true_month_beside_shifted_dates_is_refused(source: Path, tmp_path: Path) -> None:
    columns = {"sex": qi(), "seen": SHIFT, "gone": {**INSENSITIVE, "to": "month"}}
    with pytest.raises(JobError, match="tells the shift"):
        anonymize(wanted(tmp_path / "out", columns=columns), source)
    with pytest.raises(JobError, match="date or timestamp"):
        anonymize(wanted(tmp_path / "out", columns={"sex": qi(), "los": {**INSENSITIVE, "to": "day"}}), source)


@pytest.mark.parametrize("method", ["frontier", "local"])
@pytest.mark.parametrize("dates", [("seen",), ("seen", "gone")])
def test_warnings_speak_of_what_is_there(dates: tuple[str, ...], method: str, tmp_path: Path) -> None:
    """One date a person has no interval, and a date at its top narrows no shift down."""
    path = tmp_path / "db.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(DATE '1900-01-01' + INTERVAL (i * 7000) DAY AS DATE) AS far, "
            "CAST(DATE '1950-01-01' + INTERVAL (i) DAY AS DATE) AS near, DATE '2020-01-01' AS seen, "
            "DATE '2020-02-01' AS gone, CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex FROM RANGE(6) AS r(i)"
        )

    def said(born: str) -> str:
        columns = {
            born: {"role": "quasi-identifying", "hierarchy": {"dates": ["year"]}},
            "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
            **{name: {"role": "insensitive", "shift": "person"} for name in dates},
        }
        search, privacy = {"method": method}, {"k": 3}
        people = {"source": "people", "person": "id", "columns": columns, "privacy": privacy, "search": search}
        asked = sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": people}}, folder=tmp_path)
        return " ".join(anonymize(asked, path, options=Options(replace=True)).releases["people"].warnings)

    told = said("far")
    assert ("intervals are fingerprints" in told) == (len(dates) > 1)
    assert ("no interval between two" in told) == (len(dates) == 1)
    assert "generalised but not shifted" not in told
    assert "columns.near: is a date that is generalised but not shifted" in said("near")
