"""Releases of events from job to file: both kinds, the real data, every bad input, and what a re-check refuses."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.demo.sequences import procedure_rows
from sqldeid.errors import JobError, SqldeidError, VerificationError
from sqldeid.job import Job
from sqldeid.run import explain
from tests.support.events import WARD_STATES, database, kind_c, kind_t, laplace, procedures, transfers

pytestmark = pytest.mark.usefixtures("stages")


def release(connection: Any, section: dict[str, Any], **options: object) -> Any:
    job = Job.parse({"events": {"x": {"attacks": False, **section}}})
    return sqldeid.anonymize(job, connection, **options).releases["x"]  # type: ignore[arg-type]


def verify(connection: Any, section: dict[str, Any]) -> Any:
    return sqldeid.verify(Job.parse({"events": {"x": {"attacks": False, **section}}}), connection)["x"]


@pytest.fixture(scope="module", params=["T", "C"])
def paper(request: pytest.FixtureRequest) -> Any:
    """Both kinds at the size of the paper, with nothing suppressed."""
    if request.param == "T":
        return request.param, release(transfers(4_370), kind_t(generate={"seed": 1}))
    return request.param, release(procedures(3_171), kind_c(generate={"seed": 1}))


@pytest.mark.sampled(1)
def test_patterns_are_kept_at_the_size_of_the_paper(paper: Any) -> None:
    kind, found = paper
    figures = found.evaluation
    assert figures["similarity"] >= {"T": 0.76, "C": 0.90}[kind]
    assert figures["cover"] >= {"T": 0.82, "C": 0.85}[kind]
    assert figures["tvd_2gram"] <= 0.15
    assert figures["tvd_length"] <= 0.20
    assert figures["suppressed_entries"] == 0


def test_suppression_and_support_fall_with_epsilon_and_cover_rises() -> None:
    connection = transfers(500)
    found = []
    for epsilon in (0.05, 0.35, 0.65):
        section = kind_t(privacy={"method": "ratio", "epsilon": epsilon}, generate={"seed": 1}, clusters={"hashes": 10})
        found.append(
            release(connection, section, options=sqldeid.Options(replace=True, without_ledger=True)).evaluation
        )
    for name in ("suppressed_entries", "suppressed_records", "mean_support", "tvd_2gram"):
        assert found[0][name] > found[1][name] > found[2][name], name
    assert found[0]["cover"] < found[1]["cover"] < found[2]["cover"]


def test_a_plan_shows_the_statements_of_its_stages() -> None:
    connection = transfers(80)
    job = Job.parse({"events": {"x": {"attacks": False, **kind_t()}}})
    [planned] = sqldeid.plan(job, connection)
    names = [s.template for s in explain(planned, job, connection).statements or ()]
    assert names.index("events/order_events") < names.index("events/write_events") < names.index("events/check_numbers")
    assert "events/plant_object" not in names


def test_what_a_release_says_of_itself() -> None:
    connection = transfers(80)
    ratio = {"method": "ratio", "epsilon": 0.65}
    section = kind_t(privacy=ratio, attacks=True, gap_hours="auto", clusters={"hashes": 10})
    found = release(connection, section)
    assert not found.guarantee.differentially_private and "not differential privacy" in found.guarantee.text
    assert found.ledger == () and found.kind == "events" and found.written == ("release.x",)
    assert {"membership", "canary"} == set(found.attacks)
    assert 0 <= found.attacks["membership"]["auc"] <= 1 and found.attacks["membership"]["ceiling"] > 0.6
    assert "no evidence of privacy" in found.attacks["membership"]["reading"]
    assert set(found.to_public()) == {"kind", "columns", "guarantee", "ledger"}
    assert any("differential privacy" in w for w in found.warnings)
    assert all(isinstance(line, tuple) and len(line) == 2 for line in found.facts())
    assert found.gaps["threshold_hours"] > 0 and found.gaps["histogram"]
    told = found.to_public()["columns"]
    there = connection.execute("DESCRIBE release.x").fetchall()
    assert list(told) == [name for name, *_ in there]
    for name in ("curr_wardid", "eventtype"):
        shown = connection.execute(f"SELECT {name}, COUNT(*) AS n FROM release.x GROUP BY ALL").fetchall()
        codes = {code["shown"] for code in told[name]["codes"]}
        assert codes <= {"NULL" if value is None else str(value) for value, _ in shown}, "a state that no row shows"
        assert len(codes) == min(len(shown), 24) and told[name]["more_codes"] == (len(shown) > 24)
    rows = connection.execute("SELECT * FROM release.x").fetchall()
    assert len(rows) == found.events
    assert [c[0] for c in connection.description] == ["object_number", "intime", "curr_wardid", "eventtype"]
    checked = verify(connection, section)
    assert checked.events == found.events
    assert "whether these rows are those that were drawn" in dict(checked.facts())["Not checked"]
    assert "an ending can rest on one record" in found.guarantee.text


TAMPERED = {
    "a state that is not there": "UPDATE release.x SET eventtype = 'nowhere' WHERE object_number = 1",
    "another numbering": "UPDATE release.x SET object_number = object_number + 1",
    "a missing time": "UPDATE release.x SET intime = NULL WHERE object_number = 2",
    "one time for all": "UPDATE release.x SET intime = TIMESTAMP '2101-01-01' WHERE object_number < 9",
    "one column more": "ALTER TABLE release.x ADD COLUMN hadm_id INTEGER",
    "a pair that nobody has": "UPDATE release.x SET eventtype = 'discharge', curr_wardid = NULL",
}


TAMPERED_SECTION = kind_t(privacy={"method": "ratio", "epsilon": 2.0}, clusters={"hashes": 10}, generate={"seed": 1})
"""With a seed: where each of the first eight objects has one event by chance, one time for all is no damage."""


@pytest.fixture(scope="module")
def tampered() -> duckdb.DuckDBPyConnection:
    """A release, and a copy of its rows from which each case starts: the note on the release stays."""
    connection = transfers(40)
    release(connection, TAMPERED_SECTION)
    connection.execute("CREATE TABLE kept AS FROM release.x")
    return connection


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_changed_release_is_refused(tampered: duckdb.DuckDBPyConnection, change: str) -> None:
    tampered.execute("ALTER TABLE release.x DROP COLUMN IF EXISTS hadm_id; DELETE FROM release.x")
    tampered.execute("INSERT INTO release.x FROM kept")
    verify(tampered, TAMPERED_SECTION)
    tampered.execute(change)
    with pytest.raises(VerificationError):
        verify(tampered, TAMPERED_SECTION)


def test_a_release_of_another_promise_is_refused(tmp_path: Path) -> None:
    """As many objects as the job says: the noised number can be 0."""
    wards = tmp_path / "wards.txt"
    wards.write_text("\n".join(WARD_STATES), encoding="utf-8")
    connection = transfers(60)
    section = kind_t(privacy=laplace(wards), generate={"objects": 120})
    del section["gap_hours"]
    release(connection, section)
    found = verify(connection, section)
    assert found.states > 10 and found.pairs == 0 and found.objects == 120
    for changes, message in [
        ({"epsilon": 0.5}, "epsilon"),
        ({"events_max": 4}, "not those of the job"),
        ({"events_max": "private"}, "not those of the job"),
    ]:
        with pytest.raises(VerificationError, match=message):
            verify(connection, {**section, "privacy": laplace(wards, **changes)})
    with pytest.raises(VerificationError, match="not those of the job"):
        verify(connection, {**section, "factors": ["hour"]})
    with pytest.raises(VerificationError, match="method"):
        verify(connection, kind_t(privacy={"method": "ratio", "epsilon": 1.0}))
    connection.execute("UPDATE release.x SET intime = TIMESTAMP '2090-01-01' WHERE object_number = 1")
    with pytest.raises(VerificationError, match="range"):
        verify(connection, section)
    connection.execute("UPDATE release.x SET intime = intime + INTERVAL 20 YEAR WHERE object_number = 1")
    shorter = tmp_path / "fewer.txt"
    shorter.write_text("\n".join(WARD_STATES[:4]), encoding="utf-8")
    with pytest.raises(VerificationError):
        verify(connection, {**section, "privacy": laplace(shorter)})


def test_the_options_of_laplace_are_released_and_verified(tmp_path: Path) -> None:
    """L chosen with noise, and tables of factors: all of it in the ledger, which adds up."""
    (tmp_path / "states.txt").write_text("a\nb", encoding="utf-8")
    connection = events(*[(o, 30 * o + h, "ab"[(o + h) % 2]) for o in range(40) for h in range(1 + o % 4)])
    privacy = laplace(tmp_path / "states.txt", events_max="private", length_bins=[1, 2, 3])
    section = SMALL | {"privacy": privacy, "factors": ["weekday", "year"], "generate": {"objects": 30}}
    found = release(connection, section)
    assert verify(connection, section).events == found.events > 0
    spends = {str(s["statistic"]): s for s in found.ledger}
    assert sum(Fraction(str(s["epsilon_exact"])) for s in spends.values()) == 1
    chosen = spends["states"]["sensitivity"]
    assert chosen in (1, 2, 3) and spends["transitions"]["sensitivity"] == chosen + 1
    for name, values in (("weekday", 7), ("year", 30)):
        spend = spends[f"transitions by {name}"]
        assert (spend["sensitivity"], spend["cells"]) == (chosen + 1, values * 3 * 5)
        # Where one event is looked at, there are no gaps, and their tenth of epsilon is the transitions'.
        assert Fraction(str(spend["epsilon_exact"])) == Fraction(65 if chosen == 1 else 55, 400)
    assert ("lengths", "1/10") in {(n, s["epsilon_exact"]) for n, s in spends.items()}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["view", "parquet", "file"])
def test_every_place(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "source.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("rows", procedure_rows(80, 1))
        connection.execute("CREATE TABLE e AS SELECT * FROM rows")
    where = {"view": {"as": "view"}, "parquet": {"as": "parquet", "into": str(tmp_path / "out")}}
    job = {"release": where.get(kind, {"into": str(tmp_path / "out.duckdb")}), "events": {"x": kind_c(attacks=False)}}
    found = sqldeid.anonymize(Job.parse(job), path).releases["x"]
    assert found.events > 0
    assert sqldeid.verify(Job.parse(job), path)["x"].events == found.events


def events(*rows: tuple[object, object, object]) -> duckdb.DuckDBPyConnection:
    """(object, hour, state)"""
    who, hours, states = zip(*rows, strict=True)
    moments = [None if h is None else 4_102_444_800 * 10**6 + int(h) * 3_600_000_000 for h in hours]  # type: ignore[call-overload]
    return database(
        pa.table(
            {
                "who": pa.array(who),
                "at": pa.array(moments, pa.int64()).cast(pa.timestamp("us")),
                "what": pa.array(states, pa.string()),
            }
        )
    )


SMALL: dict[str, Any] = {"source": "e", "object": "who", "time": "at", "state": "what", "privacy": {"method": "none"}}
HOSTILE = "'; DROP TABLE e; --"
ODD = {
    "one event": [(1, 0, "a")],
    "one state": [(o, h, "a") for o in range(5) for h in range(4)],
    "one object with half of all events": [(0, h, "ab"[h % 2]) for h in range(60)]
    + [(o, 1, "a") for o in range(1, 61)],
    "NULL states and times": [(1, 0, "a"), (1, 1, None), (1, None, "b"), (None, 2, "b"), (2, 3, "b")],
    "equal timestamps": [(o, 0, s) for o in range(6) for s in "abcab"],
    "states that look like SQL": [(o, h, s) for o in range(6) for h, s in enumerate([HOSTILE, '"x', "NULL", ""])],
    "more clusters than parts": [(1, 0, "a"), (2, 0, "b")],
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("method", ["none", "ratio", "laplace"])
@pytest.mark.parametrize("rows", ODD.values(), ids=ODD)
def test_odd_sources_are_released(rows: list[tuple[object, object, object]], method: str, tmp_path: Path) -> None:
    connection = events(*rows)
    before = connection.execute("SELECT COUNT(*) FROM e").fetchall()
    (tmp_path / "states.txt").write_text("\n".join(["a", "b", "c", HOSTILE, '"x']), encoding="utf-8")
    privacy = {
        "none": {"method": "none"},
        "ratio": {"method": "ratio", "epsilon": 0.65},
        "laplace": laplace(tmp_path / "states.txt", events_max="private"),
    }[method]
    section = SMALL | {"privacy": privacy, "attacks": method == "ratio"}
    if method == "laplace":
        section |= {"factors": ["weekday", "year"]}
    else:
        section |= {"clusters": {"share": 1.0, "hashes": 10}, "factors": ["weekday", "length(what) > 0"]}
    found = release(connection, section)
    assert found.objects >= 0 and found.source["events"] <= len(rows)
    assert verify(connection, section).events == found.events
    assert connection.execute("SELECT COUNT(*) FROM e").fetchall() == before
    states = {s for _, _, s in rows if s is not None} | {"OTHER", "a", "b", "c", HOSTILE, '"x'}
    assert {r[0] for r in connection.execute("SELECT DISTINCT what FROM release.x").fetchall()} <= states


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1e"])
def test_a_public_state_keeps_what_only_some_take_for_the_end_of_a_line(tmp_path: Path, mark: str) -> None:
    """It was parted in two states, which nobody has, and whoever has it became one of the others."""
    (tmp_path / "states.txt").write_text(f"a\r\nb{mark}c\r", encoding="utf-8", newline="")
    connection = events(*[(o, 1, f"b{mark}c") for o in range(40)])
    section = SMALL | {"privacy": laplace(tmp_path / "states.txt", 100.0), "generate": {"objects": 40, "seed": 1}}
    release(connection, section | {"privacy": section["privacy"] | {"gap_bins_hours": [1]}})
    shown = {r[0] for r in connection.execute("SELECT DISTINCT what FROM release.x").fetchall()}
    assert f"b{mark}c" in shown <= {"a", f"b{mark}c", "OTHER"}


def test_parts_of_dates_are_told_apart_by_days(tmp_path: Path) -> None:
    """Two days between parts can be 31 hours, from an evening to a morning: less than the gap, once days alone show."""
    draw, rows = np.random.default_rng(0), []
    for who in range(60):
        day = int(draw.integers(0, 300))
        for part in (("ab", "cd"), ("ae", "cf"), ("ag", "ch"))[int(draw.integers(0, 3))]:
            for state in part * 2:
                rows.append((who, 24 * day, f"{state}{who % 3}"))
                day += 1
            day += int(draw.choice([1, 1, 1, 2, 5]))
    connection = events(*rows)
    connection.execute('ALTER TABLE e ALTER "at" TYPE DATE')
    section = SMALL | {"gap_hours": 30, "privacy": {"method": "ratio", "epsilon": 3.0}}
    for seed in range(3):
        asked = section | {"clusters": {"hashes": 10, "share": 0.01}, "generate": {"objects": 300, "seed": seed}}
        found = release(connection, asked, options=sqldeid.Options(replace=True, without_ledger=True))
        assert found.parts > found.objects > 200, "parts follow each other"
        assert verify(connection, asked).events == found.events


def test_a_gap_of_years_is_told_in_hours() -> None:
    """It was told as 1.68e+04."""
    section = SMALL | {"gap_hours": 16800, "privacy": {"method": "ratio", "epsilon": 3.0}}
    rows = [(who, 20000 * n, "ab"[n % 2]) for who in range(40) for n in range(3)]
    asked = section | {"clusters": {"hashes": 10}, "generate": {"objects": 30, "seed": 1}}
    made = release(events(*rows), asked)
    assert dict(made.facts())["Split"] == "at gaps of more than 16,800 hours (given by the job)"


REFUSED = [
    ({"privacy": {"method": "ratio", "epsilon": 0}}, "privacy.epsilon"),
    ({"privacy": {"method": "ratio", "epsilon": -1.0}}, "privacy.epsilon"),
    ({"privacy": {"method": "ratio"}}, "privacy.epsilon: missing"),
    ({"privacy": {"method": "none", "epsilon": 1.0}}, "privacy.epsilon"),
    ({"privacy": {"method": "laplace", "epsilon": 1.0}}, "privacy.states: missing"),
    ({"privacy": {"method": "ratio", "epsilon": 1.0, "events_max": 8}}, "events_max"),
    ({"privacy": {}}, "privacy.method: missing"),
    ({"time": None, "order": None}, "time: missing"),
    ({"time": "who"}, "time: who is of type BIGINT"),
    ({"state": "who", "object": "who"}, "state: names the column of object"),
    ({"state": ["what", "what"]}, "state: names a column twice"),
    ({"state": "nowhere"}, 'state: e has no column "nowhere"'),
    ({"source": "nothing"}, "there is no table or view nothing"),
    ({"gap_hours": 0}, "gap_hours"),
    ({"gap_hours": "often"}, 'gap_hours: must be "auto", "none" or a number'),
    ({"clusters": {"share": 0.0}}, "clusters.share"),
    ({"clusters": {"hashes": 3}}, "clusters.hashes"),
    ({"clusters": {"shingle": 4}}, "clusters.shingle"),
    ({"factors": ["weekday", "weekday"]}, "factors: names a factor twice"),
    ({"factors": ["SUM(who)"]}, "factors"),
    ({"factors": ["nowhere > 1"]}, "factors"),
    ({"factors": ["NULL"]}, "factors: NULL is NULL on every row"),
    ({"factors": ["what::INT"]}, "source or factors: "),
    ({"where": "who > (SELECT 1 FROM nothing)"}, "where"),
    ({"generate": {"objects": 0}}, "generate.objects"),
    ({"end": "never"}, "end"),
    ({"colour": 1}, "unknown key"),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_cannot_be_is_refused_in_a_sentence(changes: dict[str, Any], message: str) -> None:
    connection = events((1, 0, "a"), (2, 0, "b"))
    section = {k: v for k, v in (SMALL | changes).items() if v is not None}
    with pytest.raises(JobError) as refused:
        release(connection, section)
    assert message in refused.value.message
    assert not connection.execute("SELECT 1 FROM duckdb_tables() WHERE schema_name = 'release'").fetchall()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap_hours": 5}, "gap_hours: does not go with laplace"),
        ({"factors": ["what"]}, "factors: may be weekday, hour, month and year with laplace"),
        ({"privacy": {"time_range": ["2100-01-01", "2000-01-01"]}}, "time_range: must rise"),
        ({"privacy": {"time_range": ["soon", "later"]}}, "time_range: must be two dates"),
        ({"privacy": {"time_range": ["2100-W01", "2101-W01"]}}, "time_range: must be two dates"),
        ({"privacy": {"time_range": ["2100-01-01+00:00", "2101-01-01"]}}, "time_range: must be without a time zone"),
        ({"privacy": {"time_range": ["2100-01-01", "2101-01-01T00:00Z"]}}, "time_range: must be without a time zone"),
        ({"privacy": {"events_max": "some"}}, "events_max"),
        ({"privacy": {"events_max": "private", "length_bins": [1, 5000]}}, "length_bins: must be at most 1000"),
        ({"factors": ["hour", "hour"]}, "factors: names a factor twice"),
        ({"privacy": {"gap_bins_hours": [5, 1]}}, "gap_bins_hours: must rise"),
        ({"privacy": {"gap_bins_hours": [5, 1e12]}}, "gap_bins_hours: must be at most"),
        ({"privacy": {"states": "nowhere.txt"}}, "cannot be read"),
        ({"privacy": {"states": "wide.txt"}}, "do not hold 1 columns"),
        ({"privacy": {"states": "twice.txt"}}, "lists a state twice"),
        ({"privacy": {"states": "empty.txt"}}, "lists no state"),
    ],
)
def test_public_domains_are_checked(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    for name, text in [("s", "a\nb"), ("wide", "a\tb"), ("twice", "a\na"), ("empty", "\n")]:
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    privacy = laplace(tmp_path / "s.txt") | changes.pop("privacy", {})
    if not Path(privacy["states"]).is_absolute():
        privacy["states"] = str(tmp_path / privacy["states"])
    with pytest.raises(JobError) as refused:
        release(events((1, 0, "a")), SMALL | {"privacy": privacy} | changes)
    assert message in refused.value.message


@pytest.mark.parametrize("gap", [1e12, 1e290, 10**400])
def test_a_gap_beyond_every_time_splits_nothing_or_is_refused(gap: float) -> None:
    connection = events(*[(o, h, "ab"[h % 2]) for o in range(4) for h in range(5)])
    if gap > 1e300:
        with pytest.raises(JobError, match="gap_hours"):
            release(connection, SMALL | {"gap_hours": gap})
    else:
        assert release(connection, SMALL | {"gap_hours": gap}).source["parts"] == 4


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("first", "method"),
    [
        ("0001-01-01", "none"),
        ("1582-10-10", "none"),
        ("1969-12-31 22:30:00", "ratio"),
        ("8500-06-30", "none"),
        ("9999-11-30", "ratio"),
        ("9999-12-31 20:30:00", "ratio"),
    ],
)
def test_times_of_every_year_are_released(first: str, method: str) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE e AS SELECT i // 4 AS who, $1::TIMESTAMP + INTERVAL (i % 4) HOUR AS at, "
        "['a', 'b'][1 + i % 2] AS what FROM range(160) t(i)",
        [first],
    )
    privacy = {"method": method} | ({"epsilon": 5.0} if method == "ratio" else {})
    attacks = first.startswith("9999-12-31")  # the canary goes on for days
    section = SMALL | {"privacy": privacy, "attacks": attacks, "clusters": {"hashes": 10}, "factors": ["weekday"]}
    section |= {"generate": {"seed": 1}}  # forty objects and noise: without a seed it can leave any number
    found = release(connection, section)
    assert found.source["left_out"] == 0 and not any("left out" in w for w in found.warnings)
    assert found.objects > 20 and verify(connection, section).objects == found.objects
    least, most = connection.execute("SELECT min(x.at), max(x.at) FROM release.x AS x").fetchall()[0]
    day = datetime.fromisoformat(first)
    assert day.replace(hour=0, minute=0) <= least <= most <= datetime.max


@pytest.mark.parametrize("odd", ["44-03-15 (BC)", "infinity", "-infinity", "12000-01-01"])
def test_times_that_no_calendar_has_are_left_out_and_said(odd: str) -> None:
    connection = events(*[(o, h, "ab"[h % 2]) for o in range(6) for h in range(4)])
    connection.execute('UPDATE e SET "at" = $1::TIMESTAMP WHERE who = 3', [odd])
    found = release(connection, SMALL)
    assert (found.source["objects"], found.source["left_out"]) == (5, 4)
    assert any("4 rows are left out" in w and "years 1 to 9999" in w for w in found.warnings)
    connection.execute('UPDATE e SET "at" = $1::TIMESTAMP', [odd])
    with pytest.raises(JobError, match="no event with object, state and a time within the years 1 to 9999"):
        release(connection, SMALL, options=sqldeid.Options(replace=True, without_ledger=True))


@pytest.mark.parametrize("method", ["ratio", "laplace"])
def test_a_date_that_no_timestamp_reaches_is_left_out_and_refuses_nothing(tmp_path: Path, method: str) -> None:
    """With `laplace` a refusal would tell of one object; `ratio` looks for the threshold again in `verify`."""
    connection = events(*[(o, 24 * h, "ab"[h % 2]) for o in range(6) for h in range(4)])
    connection.execute('ALTER TABLE e ALTER COLUMN "at" TYPE DATE')
    connection.execute("UPDATE e SET \"at\" = '5000000-01-01' WHERE who = 3")
    (tmp_path / "states.txt").write_text("a\nb", encoding="utf-8")
    privacy = {"laplace": laplace(tmp_path / "states.txt"), "ratio": {"method": "ratio", "epsilon": 2.0}}
    found = release(connection, SMALL | {"privacy": privacy[method]})
    assert found.source["objects"] == 5
    assert verify(connection, SMALL | {"privacy": privacy[method]}).events == found.events


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("method", ["ratio", "laplace"])
def test_a_time_beyond_microseconds_is_left_out_and_refuses_nothing(tmp_path: Path, method: str, unit: str) -> None:
    """Seconds since 1970 that no TIMESTAMP holds: the conversion ended the run."""
    connection = events(*[(o, 24 * h, "ab"[h % 2]) for o in range(6) for h in range(4)])
    connection.execute(f'ALTER TABLE e ALTER COLUMN "at" TYPE TIMESTAMP_{unit.upper()}')
    far = pa.table({"x": pa.array([10**13 * (1000 if unit == "ms" else 1)], pa.int64()).cast(pa.timestamp(unit))})
    connection.register("far", far)
    connection.execute('UPDATE e SET "at" = (SELECT x FROM far) WHERE who = 3')
    connection.unregister("far")
    (tmp_path / "states.txt").write_text("a\nb", encoding="utf-8")
    privacy = {"laplace": laplace(tmp_path / "states.txt"), "ratio": {"method": "ratio", "epsilon": 2.0}}
    found = release(connection, SMALL | {"privacy": privacy[method], "factors": ["hour", "year"]})
    assert found.source["objects"] == 5
    assert verify(connection, SMALL | {"privacy": privacy[method], "factors": ["hour", "year"]}).events == found.events


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_time_beyond_microseconds_is_called_so_elsewhere(unit: str) -> None:
    connection = duckdb.connect()
    far = pa.table({"at": pa.array([10**13 * (1000 if unit == "ms" else 1)] * 9, pa.int64()).cast(pa.timestamp(unit))})
    connection.register("far", far)
    connection.execute("CREATE TABLE e AS SELECT * FROM far")
    rule = {"role": "quasi-identifying", "hierarchy": {"dates": ["month", "year"]}}
    part = {"source": "e", "rows_are_persons": True, "columns": {"at": rule}, "privacy": {"k": 2}}
    with pytest.raises(JobError, match=r"a time .*is beyond the year 294246.* make it NULL in the source"):
        sqldeid.anonymize(Job.parse({"tables": {"x": part}}), connection)


def test_types_that_one_object_can_change_are_told(tmp_path: Path) -> None:
    """12.5 among wards that are whole numbers makes 12.0 of every 12, which no list of states has."""
    (tmp_path / "states.txt").write_text("1\n2", encoding="utf-8")
    text, typed = tmp_path / "text.csv", tmp_path / "typed.parquet"
    rows = [f"{o},2100-01-01 0{h}:00:00,{1 + h % 2}" for o in range(20) for h in range(3)]
    text.write_text("\n".join(["who,at,what", *rows]), encoding="utf-8")
    duckdb.read_csv(str(text)).write_parquet(str(typed))
    section = SMALL | {"privacy": laplace(tmp_path / "states.txt"), "attacks": False}
    found = {}
    for file in (text, typed):
        into = {"into": str(tmp_path / f"released_{file.stem}"), "as": "parquet"}
        job = Job.parse({"release": into, "events": {"x": section | {"source": file.stem}}})
        found[file.stem] = sqldeid.anonymize(job, file).releases["x"]
    assert any("types that are guessed from all rows" in w for w in found["text"].warnings)
    assert not any("guessed" in w for w in found["typed"].warnings)
    assert "moved" in found["text"].to_dict()["audience"], "how many rows a query had is not noised"


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("method", "epsilon"),
    [("ratio", 5e-324), ("ratio", 1e300)] + [("laplace", e) for e in (1e-300, 5e-324, 1e-13, 1e-9, 1e-3, 1e4, 1e300)],
)
def test_no_epsilon_gives_a_traceback_or_a_warning_of_numpy(tmp_path: Path, epsilon: float, method: str) -> None:
    (tmp_path / "s.txt").write_text("a\nb", encoding="utf-8")
    privacy = laplace(tmp_path / "s.txt", epsilon) if method == "laplace" else {"method": method, "epsilon": epsilon}
    section = SMALL | {"privacy": privacy, "generate": {"objects": 5}}
    if method == "ratio":
        section["clusters"] = {"hashes": 10}
    connection = events(*[(o, h, "ab"[h % 2]) for o in range(4) for h in range(4)])
    if method == "laplace" and epsilon < 1e-10:
        with pytest.raises(JobError, match=r"events\.x\.privacy\.epsilon: .* nothing but noise"):
            release(connection, section)
    else:
        assert release(connection, section).objects <= 5


def test_noise_alone_does_not_decide_how_many_objects_are_made(tmp_path: Path) -> None:
    """Epsilon 1e-9 would make 10,000,000,000; what is refused depends on the job alone."""
    (tmp_path / "s.txt").write_text("a\nb", encoding="utf-8")
    section = SMALL | {"privacy": laplace(tmp_path / "s.txt", 1e-9)}
    connection = events((1, 0, "a"))
    with pytest.raises(JobError, match=r"epsilon: so small .* generate\.objects"):
        release(connection, section)
    assert release(connection, section | {"generate": {"objects": 5}}).objects <= 5


def test_nothing_to_release_is_said() -> None:
    with pytest.raises(SqldeidError, match="nothing to release"):
        release(events((1, None, "a")), SMALL)


def test_new_numbers_do_not_stand_under_the_sources_key(tmp_path: Path) -> None:
    """Whoever joins a release with other tables would take them for its values."""
    with duckdb.connect(str(tmp_path / "e.duckdb")) as connection:
        connection.execute("CREATE TABLE e (subject_id BIGINT, intime TIMESTAMP, object_number BIGINT)")
        connection.execute("INSERT INTO e VALUES (1, TIMESTAMP '2020-01-01', 1)")
    part: dict[str, Any] = {"source": "e", "object": "subject_id", "time": "intime", "state": ["object_number"]}
    part["privacy"] = {"method": "none"}
    with pytest.raises(JobError, match="a column is called object_number"):
        sqldeid.anonymize(
            sqldeid.Job.parse({"release": {"into": "o.duckdb"}, "events": {"x": part}}, folder=tmp_path),
            tmp_path / "e.duckdb",
        )
