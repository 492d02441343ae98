"""A job gives the same release on every engine: node, losses, criteria, risks and rows are those of DuckDB."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv

from sqldeid import (
    Asked,
    Job,
    JobError,
    Options,
    anonymize,
    assess,
    explore,
    explore_job,
    explore_sequences,
    plan,
    tradeoff,
    verify,
    verify_certificates,
)
from sqldeid.tables.release.steps import in_dialect, steps
from tests.end_to_end.tables.test_real_data import ADULT
from tests.support.foreign import Both, Foreign, bag, foreign, hold_listed, in_duckdb, running
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job, qi, release

__all__ = ["foreign"]

SEX, AGE, WARD = 'we"ird; DROP TABLE x; --', "select", "Wärd"


def people(rows: int = 300) -> pa.Table:
    """Hostile names, NULLs, texts with quotes, line ends and emoji, and every type that travels."""
    every = range(rows)
    return pa.table(
        {
            "id": pa.array(every, pa.int64()),
            SEX: [["f", "it's", None, "a\nb"][i % 4 if i % 7 else 2] for i in every],
            AGE: pa.array([None if i % 41 == 0 else 20 + (i * 7) % 30 for i in every], pa.int32()),
            WARD: pa.array([i % 3 for i in every], pa.int16()),
            "money": pa.array([Decimal(i % 4) / 4 for i in every], pa.decimal128(10, 2)),
            "height": pa.array([None if i % 29 == 0 else (i % 2) * 1.5 - 0.0 for i in every], pa.float64()),
            "alive": [None if i % 37 == 0 else i % 5 > 0 for i in every],
            "born": pa.array([date(1950 + i % 4, 1, 1 + i % 2) for i in every], pa.date32()),
            "seen": pa.array([datetime(2020, 1, 1) + timedelta(hours=i % 2, microseconds=i % 2) for i in every]),
            "illness": [["", "😀", "flu", None, "cold"][(i * i + i // 9) % 5] for i in every],
            "days": pa.array([(i * 13) % 6 for i in every], pa.int64()),
        }
    )


COLUMNS = {
    "id": IDENTIFYING,
    SEX: qi(),
    AGE: qi({"bands": [5, 10]}),
    WARD: INSENSITIVE,
    "seen": INSENSITIVE,
    "illness": SENSITIVE,
    "days": SENSITIVE,
}
TYPED = {
    "money": qi({"bands": [0.5, 1]}),
    "height": qi(),
    "alive": qi(),
    "born": qi({"dates": ["month", "year"]}),
    "seen": qi({"dates": ["month", "year"]}),
    "illness": INSENSITIVE,
}
L, T = {"column": "illness", "l": 2}, {"column": "days", "t": 0.4}
AGES = """
    SELECT p.id, p."we""ird; DROP TABLE x; --", EXTRACT(YEAR FROM p.seen) - EXTRACT(YEAR FROM p.born) AS years,
           a.mean, a.place
    FROM people AS p JOIN (SELECT id, AVG(n) OVER (PARTITION BY n) AS mean, YEAR(DATE '2020-01-31') - n AS place
                           FROM visits) AS a ON a.id = p.id
    WHERE DATE_DIFF('day', p.born, p.seen) > 25200"""
VISITS = {"query": f'SELECT p.*, v.n FROM people AS p JOIN visits AS v ON v.id = p.id WHERE p."{AGE}" > 21'}


def asked(columns: dict[str, Any], *, privacy: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A release of the people; `privacy` adds criteria."""
    found = release(columns, source=more.pop("source", "people"), limit=0.3, person="id", **more)
    found["privacy"] |= privacy or {}
    return found


OWNED = {"query": "SELECT p.*, MOD(p.id, 70) AS owner FROM people AS p"}
MANY = {name: c for name, c in COLUMNS.items() if name != "id"}

RELEASES = {
    "k": asked(COLUMNS, k=4),
    "blank": asked(COLUMNS, k=4, suppression="blank"),
    "types": asked(TYPED, k=3),
    "types as text": asked({n: c for n, c in TYPED.items() if n != "height"}, k=3, text=True),  # engines spell 0.0
    "many rows": release(MANY, source=OWNED, person="owner", rows="many", k=3, limit=0.3),
    "many rows, l": asked(MANY, source=OWNED, rows="many", k=3, privacy={"l_diversity": L}) | {"person": "owner"},
    "only quasi-identifiers": asked({SEX: qi(), AGE: qi({"bands": [5, 10]})}, k=5),
    "times cut": asked({SEX: qi(), "seen": {**INSENSITIVE, "to": "week"}, "born": {**SENSITIVE, "to": "month"}}, k=3),
    "cut, every value": asked({AGE: qi({"bands": [5, 10]}, top_code=42)}, k=3),
    "cut, bands": asked({AGE: qi({"bands": [5, 10]}, top_code=42), "money": qi(top_code=0.5)}, k=20),
    "filter": asked(COLUMNS, k=3, where=f'"{WARD}" <> 1 AND "{AGE}" / 2 > 12.2'),
    "query": asked({**COLUMNS, "n": INSENSITIVE}, k=3, source=VISITS),
    "dates and means": asked(
        {SEX: qi(), "years": qi({"bands": [2]}), "mean": qi(), "place": qi()}, k=3, source={"query": AGES}
    ),
    "l distinct": asked(COLUMNS, k=3, privacy={"l_diversity": [{**L, "kind": "distinct"}]}),
    "l entropy, blank": asked(COLUMNS, k=3, suppression="blank", privacy={"l_diversity": [{**L, "kind": "entropy"}]}),
    "l recursive": asked(COLUMNS, k=3, privacy={"l_diversity": [{**L, "kind": "recursive", "c": 4.0}]}),
    "t": asked(COLUMNS, k=3, privacy={"t_closeness": [{**T, "distance": "ordered"}]}),
    "m": asked(COLUMNS, k=3, privacy={"m_concealing": {"m": 0.4, "known": {"days": 0.5, "illness": 0.2}}}),
}

RELEASES["m, blank"] = asked(
    COLUMNS, k=3, suppression="blank", privacy={"m_concealing": {"m": 0.4, "known": {"days": 0.5, "illness": 0.2}}}
)
RELEASES["by k, then l"] = asked(COLUMNS, k=3, privacy={"l_diversity": [{**L, "l": 3}], "criteria_limit": 0.6}) | {
    "search": {"choose": "by-k"}
}

STACK = {"from": "codes", "on": "id", "value": "code", "role": "quasi-identifying", "hierarchy": {"keep_first": [1]}}
ORDERED = {"through": "stays", "through_on": "stay", "order": ["came", "seq"], "then": "code"}
FIRST = {"through": "stays", "through_on": "stay", "pick": "first", "pick_order": "came", "pick_then": "stay"}
SUMMED = {"from": "codes", "on": "id", "role": "sensitive"}
RELEASES |= {
    f"stack {name}": asked({SEX: qi()}, k=3, stack=stacks)
    for name, stacks in {
        "first of all": {"c": {**STACK, **ORDERED, "first": 2}},
        "unordered": {"c": {**STACK, **ORDERED, "first": 3, "unordered": True}},
        "last": {"c": {**STACK, **ORDERED, "aggregate": "last"}},
        "of a picked stay": {"c": {**STACK, **FIRST, "order": "seq", "then": "code", "items": [1, 3]}},
        "of the last stay": {"c": {**STACK, **FIRST, "pick": "last", "order": "seq", "then": "code", "first": 1}},
        "summaries": {
            "n": {**SUMMED, "aggregate": "count"},
            "mean": {**SUMMED, "aggregate": "mean", "value": "seq"},
            "high": {**SUMMED, "aggregate": "max", "value": "seq", "empty": "drop"},
        },
    }.items()
}
KEYED = asked(
    {
        "id": {"role": "identifying", "pseudonym": True},
        SEX: qi(),
        "seen": {"role": "insensitive", "shift": "person"},
        "born": {"role": "insensitive", "shift": "birth"},
    },
    k=3,
)


def children() -> dict[str, pa.Table]:
    """Stays of people, and codes of stays, in no order; with ties, NULLs, and people who have none."""
    stays = [(i, i * 4 + j, date(2020, 1, 1 + (j * 2) % 3)) for i in range(280) for j in range(i % 4)]
    codes = [
        (
            i,
            stay,
            None if (stay + q) % 11 == 0 else (stay * 7 + q) % 4,
            [f"0{stay % 2}", "1é", None][(stay + q) % 3],
        )
        for i, stay, _ in reversed(stays)
        for q in range((stay + i) % 4)
    ]
    return {
        "stays": pa.table(
            {
                "id": pa.array([s[0] for s in stays], pa.int64()),
                "stay": pa.array([s[1] for s in stays], pa.int64()),
                "came": pa.array([s[2] for s in stays], pa.date32()),
            }
        ),
        "codes": pa.table(
            {
                "id": pa.array([c[0] for c in codes], pa.int64()),
                "stay": pa.array([c[1] for c in codes], pa.int64()),
                "seq": pa.array([c[2] for c in codes], pa.int32()),
                "code": pa.array([c[3] for c in codes], pa.string()),
            }
        ),
    }


@pytest.fixture(scope="module")
def both(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Both:
    visits = pa.table({"id": pa.array(range(300), pa.int64()), "n": pa.array([i % 2 for i in range(300)], pa.int64())})
    tables = {"people": people(), "visits": visits, **children()}
    for name, rows in tables.items():
        foreign.load(name, rows)
    return Both(foreign, in_duckdb(tmp_path_factory.mktemp("both") / "people.duckdb", tables))


ASSESSED = ("types", "by k, then l", "query", "l recursive", "t", "m")
LEFT_OUT = ("search", "moved", "written", "seconds", "statements")


class Summed(float):
    """A number that may come of a sum: its last bits change with the order of the rows, from run to run."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isclose(self, other, rel_tol=1e-12)

    __hash__ = None  # type: ignore[assignment]


def told(found: Any) -> Any:
    """What of a release, or of a look, must be the same on every engine."""
    whole = found.to_dict() if hasattr(found, "to_dict") else asdict(found) if is_dataclass(found) else found
    if isinstance(whole, dict):
        # A column's type is named as the engine names what it wrote: JSON there is VARCHAR here.
        own = ("type",) if "role" in whole else ()
        return {name: told(value) for name, value in whole.items() if name not in (*LEFT_OUT, *own)}
    if isinstance(whole, list | tuple):
        return [told(value) for value in whole]
    return Summed(whole) if isinstance(whole, float) else whole


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_the_same_on_every_engine(name: str, both: Both) -> None:
    wanted = job({"schema": f"of {name}"}, r=RELEASES[name])
    there, here = anonymize(wanted, both.foreign.database), anonymize(wanted, both.file)
    assert told(there.releases["r"]) == told(here.releases["r"])
    assert there.releases["r"].released, "an empty release says nothing"
    assert bag(both.foreign.read(f'"of {name}".r')) == bag(both.rows(f'"of {name}".r'))
    assert told(verify(wanted, both.foreign.database)) == told(verify(wanted, both.file))
    for released in (False, True) if name in ASSESSED else ():
        there, here = (assess(wanted, d, release=released) for d in (both.foreign.database, both.file))
        assert told(there) == told(here)


@pytest.mark.parametrize("name", ["query", "l entropy, blank", "m", "dates and means"])
def test_the_steps_of_a_plan_are_those_of_a_run(name: str, both: Both) -> None:
    wanted = job({"schema": f"steps of {name}"}, r=RELEASES[name])
    [planned] = plan(wanted, both.foreign.database)
    with running() as ran:
        anonymize(wanted, both.foreign.database)
    hold_listed(in_dialect(steps(planned, "table", both.foreign.name), both.foreign.name), ran)


def test_only_classes_go_over_the_wire(both: Both) -> None:
    found = anonymize(job({"schema": "moved"}, r=RELEASES["only quasi-identifiers"]), both.foreign.database)
    assert 0 < found.releases["r"].moved["rows"] < 300
    assert "hidden-word" not in str(found.to_dict())
    assert found.to_dict()["source"]["engine"] == both.foreign.name


def test_a_view_stands_on_a_frozen_snapshot(both: Both) -> None:
    wanted = job({"schema": "seen", "as": "view"}, r=RELEASES["k"])
    anonymize(wanted, both.foreign.database)
    anonymize(wanted, both.file)
    assert bag(both.foreign.read("seen.r")) == bag(both.rows("seen.r"))
    assert told(verify(wanted, both.foreign.database)["r"]) == told(verify(wanted, both.file)["r"])
    anonymize(wanted, both.foreign.database, options=Options(replace=True, without_ledger=True))
    assert bag(both.foreign.read("seen.r")) == bag(both.rows("seen.r"))


def test_a_plan_reads_and_writes_nothing(both: Both) -> None:
    before = both.foreign.catalogue()
    assert [p.name for p in plan(job({"schema": "planned"}, r=RELEASES["k"]), both.foreign.database)] == ["r"]
    assert both.foreign.catalogue() == before


def test_what_is_looked_at_is_the_same(both: Both) -> None:
    there, here = both.foreign.database, both.file
    for person in (None, "id"):
        found = [explore(d, "people", columns=[SEX, AGE, WARD], person=person, max_size=2) for d in (there, here)]
        assert [(f.persons, f.columns, f.sets, f.smallest) for f in found[:1]] == [
            (f.persons, f.columns, f.sets, f.smallest) for f in found[1:]
        ]
    wanted = job({}, r=RELEASES["stack first of all"])
    assert explore_job(wanted, there).sets == explore_job(wanted, here).sets
    asked = {"per": ["id"], "value": "code", "order": ["stay", "seq"], "places": [[1], [1, 2]], "unordered": [[1, 2]]}
    assert told(explore_sequences(there, "codes", **asked)) == told(explore_sequences(here, "codes", **asked))


def test_nothing_of_ours_is_left(both: Both) -> None:
    before = both.foreign.catalogue()
    wanted = job({"schema": "left over"}, r=RELEASES["l distinct"])
    anonymize(wanted, both.foreign.database)
    assert {entry[:2] for entry in both.foreign.catalogue() - before} == {("left over", ""), ("left over", "r")}


def test_pseudonyms_and_shifted_dates(both: Both, tmp_path: Path) -> None:
    """The secrets are fresh at each publication; what they leave as it is, is the same."""
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    options, wanted = Options(key_file=tmp_path / "key"), job({"schema": "keyed"}, r=KEYED)
    there, here = (anonymize(wanted, d, options=options).releases["r"] for d in (both.foreign.database, both.file))
    assert told(there) == told(here)
    assert told(verify(wanted, both.foreign.database, options=options)) == told(
        verify(wanted, both.file, options=options)
    )
    assert verify(wanted, both.foreign.database)["r"].released == there.released
    rows = both.foreign.read("keyed.r")
    assert len({row[0] for row in rows}) == len(rows)
    days = Counter((seen.date() - born).days for _, _, seen, born in rows if seen and born)
    assert days == Counter((seen.date() - born).days for _, _, seen, born in both.rows("keyed.r") if seen and born)


def test_shifted_and_cut_dates(both: Both) -> None:
    cut = {SEX: qi(), "seen": {**INSENSITIVE, "shift": "person", "to": "week"}}
    wanted = job({"schema": "cut"}, r=asked({**cut, "born": {**SENSITIVE, "shift": "person", "to": "month"}}, k=3))
    there, here = (anonymize(wanted, d).releases["r"] for d in (both.foreign.database, both.file))
    assert told(there) == told(here)
    assert verify(wanted, both.foreign.database)["r"].released == there.released
    for _, seen, born in both.foreign.read("cut.r"):
        assert seen is None or (seen.weekday() == 0 and seen.hour == seen.microsecond == 0)
        assert born is None or born.day == 1


def test_a_policy_is_applied_on_another_engine(both: Both) -> None:
    wanted = job({"schema": "earlier"}, r=RELEASES["l distinct"])
    found = anonymize(wanted, both.file)
    again = job({"schema": "again"}, r=RELEASES["l distinct"])
    there = anonymize(again, both.foreign.database, options=Options(policy=found.to_dict())).releases["r"]
    assert there.node == found.releases["r"].node
    assert bag(both.foreign.read("again.r")) == bag(both.rows("earlier.r"))


@pytest.mark.parametrize("name", ["k", "l distinct", "m"])
def test_what_goes_with_a_release_is_the_same(name: str, both: Both) -> None:
    """The certificate, checked on the other engine, too; other k and limits; what a report tells of column sets."""
    hold_beside(job({"schema": f"proven {name}"}, r=RELEASES[name]), both.foreign.database, both.file)


def hold_beside(wanted: Job, *databases: Any) -> None:
    """Hold what goes with release `r` on one database to the same on another."""
    options = Options(certificate=True, explain=True)
    there, here = (anonymize(wanted, d, options=options).releases["r"] for d in databases)
    assert told(there) == told(here)
    for certificate in (there.certificate, here.certificate):
        proven = [verify_certificates(wanted, d, {"r": certificate}) for d in databases]
        assert proven[0] == proven[1]
    traded = [told(tradeoff(wanted, d, Asked((2, 5), (0.0, 0.1)))["r"]) for d in databases]
    assert traded[0] == traded[1]


def sampled(folder: Path, **into: str) -> Job:
    """A seeded sample, with its hierarchies in the folder."""
    (folder / "age.csv").write_text("\n".join(f"{a};{a // 10 * 10};*" for a in range(60)))
    (folder / "ward.csv").write_text("\n".join(f"{w};*" for w in range(5)))
    found = release({AGE: qi("age.csv", uncovered="top"), WARD: qi("ward.csv")}, source="people", k=8, person="id")
    drawn = {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.4, "epsilon": 2.0, "delta": 0.39, "seed": 7}}
    return job({"schema": "sampled", **into}, folder, r={**found, "privacy": {"k": 8}, "search": drawn})


def test_a_seeded_sample_is_the_same(both: Both, tmp_path: Path) -> None:
    """Only with a seed can two draws be compared; the sample goes back to the source engine, to be written there."""
    wanted = sampled(tmp_path)
    there, here = (anonymize(wanted, d).releases["r"] for d in (both.foreign.database, both.file))
    assert told(there) == told(here)
    assert there.released
    assert bag(both.foreign.read("sampled.r")) == bag(both.rows("sampled.r"))
    assert told(verify(wanted, both.foreign.database)["r"]) == told(verify(wanted, both.file)["r"])
    seen = sampled(tmp_path, **{"schema": "seen", "as": "view"})
    for database in (both.foreign.database, both.file):
        with pytest.raises(JobError, match="and no view"):
            anonymize(seen, database)


def test_adult(foreign: Foreign, shared_data: Path, tmp_path: Path) -> None:
    """The figures of the main job on real data (test_real_data.py), and its released rows."""
    rows = csv.read_csv(shared_data / "adult/adult.csv", parse_options=csv.ParseOptions(delimiter=";"))
    rows = rows.append_column("id", pa.array(range(len(rows)), pa.int64()))
    foreign.load("adult", rows)
    file = in_duckdb(tmp_path / "adult.duckdb", {"adult": rows})
    columns = {c: qi(str(shared_data / f"adult/adult_hierarchy_{c}.csv")) for c in ADULT}
    wanted = job({"schema": "adults"}, adult=release(columns, source="adult", k=5, limit=0.05, person="id"))
    there, here = anonymize(wanted, foreign.database).releases["adult"], anonymize(wanted, file).releases["adult"]
    assert told(there) == told(here)
    assert tuple(there.node.values()) == (0, 3, 0, 0, 2, 1, 1, 2, 0)
    assert (there.suppressed, there.classes) == (1346, 397)
    assert there.loss["loss"] == pytest.approx(0.269634662789, abs=1e-12)
    with duckdb.connect(str(file)) as c:
        assert bag(foreign.read("adults.adult")) == bag(c.execute("SELECT * FROM adults.adult").fetchall())
