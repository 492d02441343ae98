"""Dates that give away the secret shift of others: a stranger's attack finds every shift; such releases are refused.

The attack joins two tables, as whoever is given both does. That it succeeds is shown on releases of which the job says
that nobody is given both (`never_with`), or the holder that nobody was ever given the first (`--without-ledger`).
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sqldeid.engine.base import Column
from sqldeid.errors import JobError, VerificationError
from sqldeid.job import Job
from sqldeid.run import Options, anonymize, plan, verify
from sqldeid.run.dates import like_dates
from sqldeid.tables.plan.days import tells_days
from tests.support.files import write
from tests.support.foreign import running
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job, qi, release

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"
PERSONS, SHARED = 60, 3
"""Of a ward there are `SHARED` persons, who all came on one day, and were seen by the laboratory on it."""
SOURCE = f"""CREATE TABLE stays AS
    SELECT i AS id, i // {SHARED} AS ward,
           CAST(DATE '2019-03-01' + CAST(i // {SHARED} * 11 AS INTEGER) AS DATE) AS came,
           TIMESTAMP '2019-03-01 00:00:00' + INTERVAL ((i // {SHARED}) * 11) DAY + INTERVAL (i * 7) MINUTE AS lab,
           TIMESTAMP '2019-03-05 12:00:00' + INTERVAL (i * 17) DAY AS gone, i AS true_row
    FROM RANGE({PERSONS}) AS r(i)"""
PSEUDONYM = {**IDENTIFYING, "pseudonym": True}
SHIFT = {**INSENSITIVE, "shift": "person"}
SHIFTED = {"id": IDENTIFYING, "ward": qi(), "lab": SHIFT, "gone": {**SENSITIVE, "shift": "person"}}
DATES = qi({"dates": ["month", "year"]})
DAY = "CAST(told AS DATE)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.duckdb"
    write(path, SOURCE)
    return path


def shifted(**columns: object) -> dict[str, object]:
    """A release with shifted dates; `true_row` lets the test tell whose row it is."""
    return release({**SHIFTED, "true_row": INSENSITIVE, **columns}, source="stays", k=SHARED, person="id")


def telling(role: dict[str, object], value: str = "came", method: str = "frontier") -> dict[str, object]:
    """A release of the same persons, in which the day on which k of a ward came is told."""
    columns = {"id": IDENTIFYING, "ward": qi(), "told": role}
    query = {"query": f"SELECT id, ward, {value} AS told FROM stays"}
    return release(columns, source=query, k=SHARED, person="id", search={"method": method})


def attack(source: Path, day: str = DAY, told: str = "release.telling", moved: str = "release.shifted") -> int:
    """How many persons' true discharges come out, where a stranger reads by `day` when all of a ward came."""
    with duckdb.connect(str(source)) as c:
        days = dict(c.execute(f"SELECT ward, MAX({day}) FROM {told} GROUP BY ward").fetchall())
        rows = c.execute(f"SELECT ward, CAST(lab AS DATE), gone, true_row FROM {moved}").fetchall()
        truth = dict(c.execute("SELECT true_row, gone FROM stays").fetchall())
    return sum(gone - (lab - days[ward]) == truth[row] for ward, lab, gone, row in rows)


TELLING = {
    "insensitive": (telling(INSENSITIVE), DAY),
    "sensitive": (telling(SENSITIVE), DAY),
    "quasi-identifying, shared by k": (telling(DATES), DAY),
    "a moment, shared by k": (telling(DATES, "CAST(came AS TIMESTAMP)"), DAY),
    "by local recoding": (telling(DATES, method="local"), DAY),
    "median of a class": (telling(qi({"aggregate": "median"})), DAY),
    "mean of a class": (telling(qi({"aggregate": "mean"})), DAY),
    "mode of a class": (telling(qi({"aggregate": "mode"})), DAY),
    "in a list": (telling(INSENSITIVE, "[came]"), "told[1]"),
    "in a struct": (telling(INSENSITIVE, "{'seen': came}"), "told.seen"),
    "in a map": (telling(INSENSITIVE, "MAP {'a': CAST(came AS TIMESTAMP)}"), "CAST(told['a'] AS DATE)"),
    "ISO text": (telling(INSENSITIVE, "CAST(came AS VARCHAR)"), DAY),
    "text of a moment": (telling(INSENSITIVE, "STRFTIME(came, '%Y-%m-%dT%H:%M:%SZ')"), DAY),
    "German text": (telling(SENSITIVE, "STRFTIME(came, '%d.%m.%Y')"), "CAST(STRPTIME(told, '%d.%m.%Y') AS DATE)"),
    "American text": (telling(INSENSITIVE, "STRFTIME(came, '%-m/%-d/%y')"), "CAST(STRPTIME(told, '%m/%d/%y') AS DATE)"),
    "Oracle's text": (telling(INSENSITIVE, "STRFTIME(came, '%d-%b-%y')"), "CAST(STRPTIME(told, '%d-%b-%y') AS DATE)"),
    "quasi-identifying text": (telling(qi(), "CAST(came AS VARCHAR)"), DAY),
    "blanks among it": (
        telling(INSENSITIVE, "CASE id % 3 WHEN 0 THEN CAST(came AS VARCHAR) ELSE ' ' END"),
        "TRY_" + DAY,
    ),
    "digits": (
        telling(INSENSITIVE, "CAST(STRFTIME(came, '%Y%m%d') AS INTEGER)"),
        "STRPTIME(CAST(told AS VARCHAR), '%Y%m%d')::DATE",
    ),
    "digits of a float": (
        telling(INSENSITIVE, "CAST(STRFTIME(came, '%Y%m%d') AS DOUBLE)"),
        "STRPTIME(CAST(told::INT AS VARCHAR), '%Y%m%d')::DATE",
    ),
    "seconds": (telling(INSENSITIVE, "CAST(EPOCH(came) AS BIGINT)"), "TO_TIMESTAMP(told)::TIMESTAMP::DATE"),
    "milliseconds": (telling(INSENSITIVE, "CAST(1000 * EPOCH(came) AS BIGINT)"), "EPOCH_MS(told)::DATE"),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", TELLING)
def test_what_tells_the_day_gives_every_shift_away(kind: str, source: Path) -> None:
    part, day = TELLING[kind]
    apart = job({}, shifted=shifted(), telling={**part, "never_with": ["shifted"]})
    anonymize(apart, source)
    assert attack(source, day) == PERSONS
    assert verify(apart, source).keys() == {"shifted", "telling"}
    with pytest.raises(VerificationError) as found:
        verify(job({}, shifted=shifted(), telling=part), source)
    assert found.value.key == "tables.telling.columns.told" and "tables.shifted.columns.lab" in found.value.message
    assert "make it anew" in found.value.message and "2019" not in found.value.message
    with pytest.raises(JobError) as refused:
        anonymize(job({"schema": "both"}, shifted=shifted(), telling=part), source)
    assert refused.value.key == "tables.telling.columns.told" and "tables.shifted.columns.lab" in refused.value.message
    assert "source query" in refused.value.message and "2019" not in refused.value.message.replace("2020", "")
    with duckdb.connect(str(source)) as c:
        assert c.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE schema_name = 'both'").fetchall() == [(0,)]


@pytest.mark.parametrize("told", ["insensitive", "quasi-identifying, shared by k", "ISO text"])
@pytest.mark.parametrize("first", ["telling", "shifted"])
def test_two_runs_are_refused_as_one_is(told: str, first: str, source: Path) -> None:
    """The second goes where the first is; nobody else can know of both."""
    parts = {"shifted": shifted(), "telling": TELLING[told][0]}
    second = next(name for name in parts if name != first)
    anonymize(job({}, **{first: parts[first]}), source)
    again = job({}, **{second: parts[second]})
    if told == "ISO text" and first == "telling":
        anonymize(again, source)  # whose note says nothing of text
    else:
        with pytest.raises(JobError, match=r"tables\.(telling|shifted)\.columns\.") as refused:
            anonymize(again, source)
        assert refused.value.key.startswith(f"tables.{second}.columns.")
        anonymize(again, source, options=Options(without_ledger=True))
    assert attack(source) == PERSONS


@pytest.mark.parametrize("at_once", [True, False])
def test_a_view_that_renames_the_key_hides_nobody(at_once: bool, source: Path) -> None:
    write(source, "CREATE VIEW seen AS SELECT id AS pid, ward, came AS told FROM stays")
    columns = {"pid": IDENTIFYING, "ward": qi(), "told": INSENSITIVE}
    part = release(columns, source="seen", k=SHARED, person="pid")
    if at_once:
        asked = job({}, shifted=shifted(), telling=part)
    else:
        anonymize(job({}, shifted=shifted()), source)
        asked = job({}, telling=part)
    with pytest.raises(JobError, match="shows dates finer than years") as refused:
        anonymize(asked, source)
    assert refused.value.key == "tables.telling.columns.told"


def test_a_release_that_is_replaced_was_perhaps_given_out(source: Path) -> None:
    true = shifted(lab=INSENSITIVE, gone=SENSITIVE)
    anonymize(job({}, shifted=true), source)
    with pytest.raises(JobError, match="without-ledger") as refused:
        anonymize(job({}, shifted=shifted()), source, options=Options(replace=True))
    assert refused.value.key == "tables.shifted.columns.lab"
    anonymize(job({}, shifted=shifted()), source, options=Options(replace=True, without_ledger=True))
    anonymize(job({}, shifted=shifted()), source, options=Options(replace=True))  # shifted both times
    with pytest.raises(JobError, match="without-ledger"):
        anonymize(job({}, shifted=true), source, options=Options(replace=True))


def test_other_persons_and_who_is_given_both(source: Path) -> None:
    """Neither the dates of others, nor what nobody is given beside it, tell a shift."""
    write(source, "CREATE TABLE staff AS SELECT id AS nurse, came AS told, ward FROM stays")
    columns = {"nurse": IDENTIFYING, "ward": qi(), "told": INSENSITIVE}
    others = release(columns, source="staff", k=SHARED, person="nurse")
    anonymize(job({}, shifted=shifted(), telling=others), source)
    anonymize(job({"schema": "one"}, telling=others), source)
    anonymize(job({"schema": "one"}, shifted=shifted()), source)
    apart = {"shifted": shifted(), "telling": {**telling(DATES), "never_with": ["shifted"]}}
    for name in apart:
        anonymize(job({"schema": "two"}, **apart), source, options=Options(only=(name,)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["frontier", "local"])
@pytest.mark.parametrize("role", [DATES, qi({"dates": ["day"]}), qi("days.csv"), qi()])
def test_a_date_that_k_share_beside_shifted_ones_is_refused(
    role: dict[str, object], method: str, source: Path, tmp_path: Path
) -> None:
    days = [f"2019-{m:02d}-{d:02d};2019-{m:02d};*" for m in range(3, 11) for d in range(1, 32)]
    (tmp_path / "days.csv").write_text("\n".join(days))
    with pytest.raises(JobError, match="finer than years beside lab") as refused:
        anonymize(_within(role, method, tmp_path), source)
    assert refused.value.key == "tables.shifted.columns.came"


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Versions before 2026-11-28, which refused no date beside shifted ones and noted none."""
    for name in ("write.disguised.refuse_fine_dates", "local.release.refuse_fine_dates"):
        monkeypatch.setattr(f"sqldeid.tables.{name}", lambda *_: None)
    monkeypatch.setattr("sqldeid.tables.disguise.disguise.refuse_bare_dates", lambda _: None)
    for name in ("disguise.disguise.noted_days", "mondrian.release.noted_days"):
        monkeypatch.setattr(f"sqldeid.tables.{name}", lambda *_: {})
    for name in ("refuse_planned", "refuse_in_source", "ToldDays.refuse_made"):
        monkeypatch.setattr(f"sqldeid.run.orchestrator.{name}", lambda *_: None)
    return monkeypatch


OLDER = {
    "insensitive": (INSENSITIVE, "came"),
    "cut, and not shifted": ({**INSENSITIVE, "to": "month"}, "came"),
    "in a list": (INSENSITIVE, "[came]"),
    "text": (INSENSITIVE, "CAST(came AS VARCHAR)"),
    "digits": (SENSITIVE, "CAST(STRFTIME(came, '%Y%m%d') AS INTEGER)"),
    "shared by k": (DATES, "came"),
    "a mean": (qi({"aggregate": "mean"}), "came"),
}


@pytest.mark.parametrize(("kind", "method"), [*((kind, "frontier") for kind in OLDER), ("shared by k", "local")])
def test_a_release_of_an_older_version_is_found_out(
    kind: str, method: str, source: Path, older: pytest.MonkeyPatch
) -> None:
    """By what was written, for its note says nothing of days."""
    role, value = OLDER[kind]
    part = shifted(told=role) | {"source": {"query": f"SELECT *, {value} AS told FROM stays"}}
    made = job({}, shifted=part | {"search": {"method": method}})
    anonymize(made, source)
    older.undo()
    with pytest.raises(VerificationError, match=r"columns\.lab, whose dates are shifted") as found:
        verify(made, source)
    assert found.value.key == "tables.shifted.columns.told"
    assert "leave" in found.value.message and "failed its re-check" not in found.value.message


def test_two_tables_of_an_older_version_are_found_out(source: Path, older: pytest.MonkeyPatch) -> None:
    columns = {"id": IDENTIFYING, "came": qi({"median": "range"})}
    parts = release(columns, source="stays", k=SHARED, person="id", search={"method": "mondrian"})
    made = job({}, shifted=shifted(), parts=parts)
    anonymize(made, source)
    older.undo()
    with pytest.raises(VerificationError, match="never_with") as found:
        verify(made, source)
    assert found.value.key == "tables.parts.columns.came"
    for name in ("shifted", "parts"):
        assert verify(made, source, options=Options(only=(name,))).keys() == {name}


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_its_year_is_told(method: str, source: Path, tmp_path: Path) -> None:
    """Where nobody shares a day, k persons share the year: half of the shifts are left."""
    write(source, "UPDATE stays SET came = DATE '2019-01-01' + CAST(id * 6 AS INTEGER), ward = 0")
    asked = _within(qi({"dates": ["year"]}), method, tmp_path)
    made = anonymize(asked, source).releases["shifted"]
    assert verify(asked, source).keys() == {"shifted"}
    assert any("columns.came: is a date that is generalised but not shifted" in w for w in made.warnings)
    with duckdb.connect(str(source)) as c:
        assert c.execute("SELECT DISTINCT came FROM release.shifted").fetchall() == [("2019",)]


def _within(role: dict[str, object], method: str, folder: Path) -> Job:
    columns = {"id": IDENTIFYING, "ward": qi(), "came": role, "lab": SHIFT}
    part = release(columns, source="stays", k=SHARED, person="id", search={"method": method})
    return job({}, folder, shifted=part)


@pytest.mark.parametrize("statistic", ["median", "mean", "mode", "interval"])
@pytest.mark.parametrize("grid", ["day", "week"])
def test_a_statistic_of_dates_beside_shifted_ones_is_refused(statistic: str, grid: str, source: Path) -> None:
    with pytest.raises(JobError, match="as a statistic of its class beside lab"):
        anonymize(_within(qi({"aggregate": statistic, "grid": grid}), "frontier", source.parent), source)


@pytest.mark.parametrize("value", ["CAST(came AS VARCHAR)", "CAST(STRFTIME(came, '%Y%m%d') AS INTEGER)", "[came]"])
def test_a_written_date_in_the_table_itself_is_refused(value: str, source: Path) -> None:
    part = shifted(told=INSENSITIVE) | {"source": {"query": f"SELECT *, {value} AS told FROM stays"}}
    with pytest.raises(JobError) as refused:
        anonymize(job({}, shifted=part), source)
    assert refused.value.key == "tables.shifted.columns.told" and "tell" in refused.value.message


@pytest.mark.parametrize(
    "value",
    [
        "YEAR(came)",
        "CAST(YEAR(came) AS VARCHAR)",
        "id % 7",
        "10000000 + id",
        "ward / 3",
        "'code 20190301'",
        "CAST(NULL AS VARCHAR)",
    ],
)
def test_years_and_codes_are_no_dates(value: str, source: Path) -> None:
    part = shifted(told=INSENSITIVE) | {"source": {"query": f"SELECT *, {value} AS told FROM stays"}}
    assert anonymize(job({}, shifted=part), source).releases["shifted"].released == PERSONS


def test_half_of_the_values_are_not_most(source: Path) -> None:
    halves = "CASE WHEN id % 60 < {} THEN CAST(came AS VARCHAR) ELSE 'none' END"
    for few, query in ((True, halves.format(30)), (False, halves.format(31))):
        part = shifted(told=INSENSITIVE) | {"source": {"query": f"SELECT *, {query} AS told FROM stays"}}
        made = job({"schema": f"half_{few}"}, shifted=part)
        if few:
            anonymize(made, source)
        else:
            with pytest.raises(JobError, match="most of its values are written like dates"):
                anonymize(made, source)


HOLDING = {
    "a sentence": "'seen on ' || came || ', sent home'",
    "another order": "'seen ' || STRFTIME(came, '%d.%m.%Y')",
    "an American one": "STRFTIME(came, 'on %-m/%-d/%Y')",
    "JSON": "note",
    "a struct": "{'seen': 'on ' || came}",
    "a list": "[CAST(came AS VARCHAR)]",
    "codes": "'1' || STRFTIME(came, '%Y-%m-%d') || '7'",
    "years": "'in ' || YEAR(came)",
    "a few": "CASE WHEN id % 2 = 0 THEN 'on ' || came ELSE 'none' END",
}
"""Dates within longer values; the last three are none, or too few."""


@pytest.mark.parametrize("kind", HOLDING)
def test_dates_within_longer_texts_are_warned_of(kind: str, source: Path) -> None:
    """In the release that shifts, and in another one of the same persons; where nothing is shifted, nothing is said."""
    write(source, "ALTER TABLE stays ADD COLUMN note JSON", "UPDATE stays SET note = JSON_OBJECT('seen', came)")
    query = f"SELECT * EXCLUDE (note), {HOLDING[kind]} AS told FROM stays"
    own = shifted(told=INSENSITIVE) | {"source": {"query": query}}
    other = telling(INSENSITIVE, HOLDING[kind])
    told = {
        "shifted": anonymize(job({"schema": "a"}, shifted=own), source).warnings,
        "other": anonymize(job({"schema": "b"}, shifted=shifted(), other=other), source).warnings,
        "": anonymize(job({"schema": "c"}, other=other), source).warnings,
    }
    for name, warnings in told.items():
        said = [w for w in warnings if "hold a date within a longer text" in w]
        asked = name and kind not in ("codes", "years", "a few")
        assert [w.partition(": ")[0].removeprefix("job: ") for w in said] == (
            [f"tables.{name}.columns.told"] if asked else []
        )
        assert all("beside tables.shifted.columns.lab, whose dates are shifted" in w for w in said)


def test_a_written_date_is_refused_before_the_search(source: Path) -> None:
    """Also in a table that is made after another one; and nothing is made of either."""
    asked = {"shifted": shifted(), "telling": telling(INSENSITIVE, "CAST(came AS VARCHAR)")}
    with running() as ran, pytest.raises(JobError, match="most of its values are written like dates") as refused:
        anonymize(job({}, **asked), source)
    assert refused.value.key == "tables.telling.columns.told"
    assert "run/count_written" in ran and not any(name.startswith("tables/") for name in ran)


@pytest.mark.parametrize(("few", "late"), [("id < 9", False), ("id >= 9", True)])
def test_the_first_rows_decide_nothing(few: str, late: bool, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are dates, all rows are counted; where they are none, what was written is."""
    monkeypatch.setattr("sqldeid.run.dates_before.FIRST", 9)
    query = f"SELECT *, CASE WHEN {few} THEN CAST(came AS VARCHAR) ELSE 'none' END AS told FROM stays ORDER BY id"
    asked = job({}, shifted=shifted(told=INSENSITIVE) | {"source": {"query": query}})
    if late:
        with running() as ran, pytest.raises(JobError, match="most of its values are written like dates"):
            anonymize(asked, source)
        assert any(name.startswith("tables/") for name in ran)
    else:
        assert anonymize(asked, source).releases["shifted"].released == PERSONS


@pytest.mark.parametrize("kind", ["insensitive", "mean of a class", "in a struct"])
def test_a_plan_is_refused_as_its_run_is(kind: str, source: Path) -> None:
    """What types tell takes no run; and no release of a run is made before a later one is refused for them."""
    part = TELLING[kind][0]
    columns = {**SHIFTED, "told": part["columns"]["told"]}
    alone = release(
        columns,
        source=part["source"] | {"query": f"SELECT * FROM ({part['source']['query']}) JOIN stays USING (id, ward)"},
        k=SHARED,
        person="id",
    )
    first = release({"id": IDENTIFYING, "ward": qi()}, source="stays", k=SHARED, person="id")
    for asked in (job({}, shifted=shifted(), telling=part), job({}, first=first, telling=alone)):
        with running() as ran:
            for refusing in (plan, anonymize):
                with pytest.raises(JobError) as refused:
                    refusing(asked, source)
                assert refused.value.key == "tables.telling.columns.told"
        assert not ran


def test_a_plan_says_what_its_run_will_look_at(source: Path) -> None:
    query = "SELECT *, 'I' || id AS code FROM stays"
    more = {"came": DATES, "code": SENSITIVE}
    parts = {
        "shifted": shifted(**more) | {"source": {"query": query}},
        "labels": release({"id": IDENTIFYING, "ward": qi()}, source="stays", k=SHARED, person="id"),
    }
    for linked in (False, True):
        if linked:
            for part in parts.values():
                part["columns"] = {**part["columns"], "id": PSEUDONYM}
            parts["labels"] |= {"link": "shifted"}
        found = plan(job({}, **parts), source).explained
        said = [dict(told.parts[-1].facts)["Dates"] for told in found]
        assert len(said) == (1 if linked else 2)
        assert all("before the search" in said[0] and name in said[0] for name in ("lab", "gone", "code", "came"))
        assert said[0].index("code") < said[0].index("before the search") < said[0].index("finer than years")
        assert "shifted.columns.lab" in str(found[0].content["shifted_dates"])
        assert "looked at before the search" in plan(job({}, **parts), source)._repr_html_()
    assert "Dates" not in dict(plan(job({}, labels=telling(INSENSITIVE)), source).explained[0].parts[-1].facts)


def test_no_scan_is_made_where_nothing_is_shifted(source: Path) -> None:
    """And one of each table where something is."""
    asked = {
        "alone": job({"schema": "a"}, telling=telling(INSENSITIVE)),
        "shifted": job({"schema": "b"}, shifted=shifted()),
    }
    for kind, made in asked.items():
        with running() as ran:
            anonymize(made, source)
        assert ("run/count_written" in ran) == (kind == "shifted"), kind


def test_a_column_of_series_is_called_by_its_name() -> None:
    """The job does not list it."""
    key, said = like_dates("series.vitals", "seen")
    assert key == "series.vitals" and said.startswith("most of the values of seen are")


def test_a_child_table_tells_no_days_in_text(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its items and its sensitive columns are of the persons whose dates the parent shifts."""
    write(source, "CREATE TABLE codes AS SELECT id, 'c' || id % 2 AS code, CAST(came AS VARCHAR) AS told FROM stays")
    (tmp_path / "key").write_text(KEY)
    columns = {"code": qi(), "told": SENSITIVE}
    child = {"source": "codes", "person": "id", "parent": "shifted", "items": "code", "known": 1, "columns": columns}
    parent = shifted(id={**IDENTIFYING, "pseudonym": True})
    made = job({}, shifted=parent, codes={**child, "privacy": {"k": SHARED, "suppression_limit": 1.0}})
    given = Options(key_file=tmp_path / "key")
    with pytest.raises(JobError, match="written like dates") as refused:
        anonymize(made, source, options=given)
    assert refused.value.key == "tables.codes.columns.told"
    with monkeypatch.context() as patched:
        for name in ("refuse_in_source", "ToldDays.refuse_made"):
            patched.setattr(f"sqldeid.run.orchestrator.{name}", lambda *_: None)
        anonymize(made, source, options=given)
    with pytest.raises(VerificationError, match="written like dates") as found:
        verify(made, source, options=given)
    assert found.value.key == "tables.codes.columns.told"


def test_ranges_of_mondrian_are_refused_beside_shifted_dates(source: Path) -> None:
    columns = {"id": IDENTIFYING, "came": qi({"median": "range"})}
    parts = release(columns, source="stays", k=SHARED, person="id", search={"method": "mondrian"})
    with pytest.raises(JobError) as refused:
        anonymize(job({}, shifted=shifted(), parts=parts), source)
    assert refused.value.key == "tables.parts.columns.came"


@pytest.mark.parametrize(
    ("type_", "tells"),
    [
        *[
            (t, True)
            for t in ("DATE[]", 'STRUCT("a b" INTEGER, d TIMESTAMP_NS)', "MAP(VARCHAR, TIMESTAMP WITH TIME ZONE)")
        ],
        *[
            (t, True)
            for t in ("array<date>", "struct<a:int,t:timestamp_ntz>", "DATERANGE", "TSTZMULTIRANGE", "TSRANGE[]")
        ],
        *[(t, False) for t in ("VARCHAR[]", 'STRUCT("the date" INTEGER)', "ENUM('date', 'x')", "TIME", "INT4RANGE")],
        ('MAP(VARCHAR, STRUCT("update" INTEGER, updated BOOLEAN))', False),
    ],
)
def test_types_of_every_engine_that_hold_days(type_: str, tells: bool) -> None:
    assert tells_days(Column("c", type_, "other")) == tells
