"""A job gives the same release on every engine: node, losses, criteria, risks and rows are those of DuckDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv

from sqldeid import (
    Job,
    JobError,
    Options,
    VerificationError,
    anonymize,
    assess,
    explore,
    explore_job,
    explore_sequences,
    plan,
    verify,
)
from sqldeid.run import explain
from tests.support.foreign import Both, Foreign, bag, foreign, hold_listed, in_duckdb, running
from tests.support.foreign_tables import (
    AGE,
    KEYED,
    RELEASES,
    SEX,
    WARD,
    asked,
    both,
    hold_beside,
    sampled,
    sampled_alike,
    told,
)
from tests.support.real_data import ADULT
from tests.support.sources import INSENSITIVE, SENSITIVE, job, qi, release

__all__ = ["both", "foreign"]


ASSESSED = ("types", "by k, then l", "query", "l recursive", "t", "delta", "k-map", "delta-presence", "average", "m")


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        *("query", "l entropy, blank", "m", "dates and means", "k-map, the rest", "delta-presence"),
        *("average, at risk, l", "aggregated"),
    ],
)
def test_the_steps_of_a_plan_are_those_of_a_run(name: str, both: Both) -> None:
    wanted = job({"schema": f"steps of {name}"}, r=RELEASES[name])
    [planned] = plan(wanted, both.foreign.database)
    with running() as ran:
        anonymize(wanted, both.foreign.database)
    hold_listed(explain(planned, wanted, both.foreign.database).statements or (), ran)


def test_a_sample_holds_the_same_persons_on_every_engine(both: Both, tmp_path: Path) -> None:
    sampled_alike(both, tmp_path)


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


def test_a_view_that_was_made_live_is_refused(both: Both) -> None:
    """It changes with its source: who looks twice sees who came."""
    wanted = job({"schema": "lively", "as": "view"}, r=RELEASES["k"])
    anonymize(wanted, both.foreign.database)
    verify(wanted, both.foreign.database)
    both.foreign.run(  # type: ignore[attr-defined]
        "CREATE TABLE lively.live AS SELECT * FROM lively.r__snapshot",
        "CREATE OR REPLACE VIEW lively.r AS SELECT * FROM lively.live",
    )
    with pytest.raises(VerificationError, match=r"tables\.r: .*r__snapshot are not a view and all that it shows"):
        verify(wanted, both.foreign.database)


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


def test_what_tells_the_shift_is_refused_and_found(both: Both) -> None:
    """Written dates before the search; what stands beside shifted dates, and is given to whom has these, by verify."""
    moved = asked({SEX: qi(), "seen": {**INSENSITIVE, "shift": "person"}}, k=3)
    query = {"query": "SELECT p.*, CAST(p.born AS VARCHAR(10)) AS noted FROM people AS p"}
    apart = asked({SEX: qi(), "noted": INSENSITIVE}, k=3, source=query)
    with running() as ran, pytest.raises(JobError, match="most of its values are written like dates"):
        anonymize(job({"schema": "noted"}, moved=moved, apart=apart), both.foreign.database)
    assert "run/count_written" in ran and not any(name.startswith("tables/") for name in ran)
    anonymize(job({"schema": "noted"}, moved=moved, apart=apart | {"never_with": ["moved"]}), both.foreign.database)
    with pytest.raises(VerificationError, match="most of its values are written like dates") as found:
        verify(job({"schema": "noted"}, moved=moved, apart=apart), both.foreign.database)
    assert found.value.key == "tables.apart.columns.noted"


def test_dates_within_texts_lists_and_json_are_warned_of(both: Both) -> None:
    foreign = both.foreign
    foreign.run(
        "CREATE VIEW holding AS SELECT p.*, 'on ' || p.born AS noted, JSONB_BUILD_OBJECT('on', p.born) AS packed, "
        "ARRAY['on', 'day ' || p.born] AS listed, ARRAY['none'] AS nothing FROM people AS p"
    )
    held = dict.fromkeys(("noted", "packed", "listed", "nothing"), INSENSITIVE)
    moved = asked({SEX: qi(), "seen": {**INSENSITIVE, "shift": "person"}, **held}, k=3, source="holding")
    warnings = anonymize(job({"schema": "held"}, moved=moved), foreign.database).warnings
    said = {w.partition(": ")[0] for w in warnings if "hold a date within a longer text" in w}
    assert said == {f"tables.moved.columns.{name}" for name in ("noted", "packed", "listed")}


def test_spellings_that_a_collation_holds_equal_are_one_value(foreign: Foreign) -> None:
    """As docs/spelling.md says: a cast in the job keeps the collation, a view with another one tells them apart."""
    foreign.run("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    foreign.run("CREATE TABLE spelt (a TEXT COLLATE ci, b TEXT COLLATE ci, p TEXT COLLATE ci)")
    foreign.run(
        "INSERT INTO spelt SELECT SUBSTR('xX', 1 + i % 2, 1), SUBSTR('yY', 1 + i % 2, 1), SUBSTR('pP', 1 + i % 2, 1) "
        "|| i / 2 FROM GENERATE_SERIES(0, 11) AS r(i)"
    )
    foreign.run('CREATE VIEW apart AS SELECT a COLLATE "C" AS a, b COLLATE "C" AS b FROM spelt')
    cast = {"query": "SELECT CAST(a AS VARCHAR) AS a, CAST(b AS VARCHAR) AS b FROM spelt"}
    for name, source, k, shown in (("plain", "spelt", 12, 1), ("cast", cast, 12, 1), ("apart", "apart", 6, 2)):
        wanted = job({"schema": f"spelt {name}"}, r=release({"a": qi(), "b": INSENSITIVE}, source=source, k=3))
        assert anonymize(wanted, foreign.database).releases["r"].k == k
        assert verify(wanted, foreign.database)["r"].released == 12
        rows = foreign.read(f'"spelt {name}".r')
        assert len({a for a, _ in rows}) == shown and {b for _, b in rows} == {"y", "Y"}
    with pytest.raises(JobError, match="12 rows but 6 values of p"):
        anonymize(job({}, r=release({"a": qi()}, source="spelt", person="p", k=3)), foreign.database)
    refuses_two_spellings(foreign)


def refuses_two_spellings(foreign: Foreign) -> None:
    """Where keys are compared by their bytes, a person of two spellings would be two: with links, and in series."""
    keyed = {"p": {"role": "identifying", "pseudonym": True}}
    person = {"source": "spelt", "person": "p", "k": 3}
    pair = {"r": release({"a": qi(), **keyed}, **person, link="s"), "s": release({"b": qi(), **keyed}, **person)}
    told = r'p has a collation that takes two spellings for one value.*read a view with UPPER\("p"\) COLLATE'
    with pytest.raises(JobError, match=told) as found:
        plan(job({}, **pair), foreign.database)
    assert found.value.key == "tables.r.person"
    foreign.run("CREATE VIEW timed AS SELECT p, NOW() AS at, 'hr' AS item, 1.0::float8 AS v FROM spelt")
    foreign.run('CREATE VIEW timed_once AS SELECT DISTINCT UPPER(p) COLLATE "C" AS p, at, item, v FROM timed')
    asked = {"person": "p", "time": "at", "variable": "item", "value": "v", "step_hours": 1}
    asked |= {"durations": {"k": 3}, "privacy": {"k": 3}}
    for source in ("timed", {"query": "SELECT UPPER(p) AS p, at, item, v FROM timed"}):
        with pytest.raises(JobError, match=told):
            plan(Job.parse({"series": {"t": {"source": source, **asked}}}), foreign.database)
    once = plan(Job.parse({"series": {"t": {"source": "timed_once", **asked}}}), foreign.database)
    assert [p.name for p in once] == ["t"]


@pytest.mark.deep
def test_a_policy_is_applied_on_another_engine(both: Both) -> None:
    wanted = job({"schema": "earlier"}, r=RELEASES["l distinct"])
    found = anonymize(wanted, both.file)
    again = job({"schema": "again"}, r=RELEASES["l distinct"])
    there = anonymize(again, both.foreign.database, options=Options(policy=found.to_dict())).releases["r"]
    assert there.node == found.releases["r"].node
    assert bag(both.foreign.read("again.r")) == bag(both.rows("earlier.r"))


@pytest.mark.deep
@pytest.mark.parametrize("name", ["k", "l distinct", "m"])
def test_what_goes_with_a_release_is_the_same(name: str, both: Both) -> None:
    """The certificate, checked on the other engine, too; other k and limits; what a report tells of column sets."""
    hold_beside(job({"schema": f"proven {name}"}, r=RELEASES[name]), both.foreign.database, both.file)


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


@pytest.mark.deep
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
