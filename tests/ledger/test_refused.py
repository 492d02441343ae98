"""What does not go with a ledger: told at once, from the job, before anything else; and refused again later."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.job.ledger_rules import REFUSED, unfit
from sqldeid.run import orchestrator
from tests.support.changing import SERIES
from tests.support.child_tables import child_job, database, write_tree
from tests.support.ledgers import change, folder, options
from tests.support.places import ROOT
from tests.support.sources import INSENSITIVE, SENSITIVE, qi, release

__all__ = ["folder"]

COLUMNS = {"age": qi({"bands": [10, 20]}), "illness": SENSITIVE}
L = {"column": "illness", "l": 2}
EVENTS = {"source": "moves", "object": "id", "time": "at", "state": ["ward"], "attacks": False}


def table(privacy: dict[str, object] | None = None, **more: Any) -> dict[str, Any]:
    """A table release of the people; `columns` come beside its own."""
    columns = {**COLUMNS, **more.pop("columns", {})}
    part = release(columns, **{"source": "people", "k": 4, "limit": 0.9, "person": "id", "attacks": False, **more})
    part["privacy"] |= privacy or {}  # type: ignore[operator]
    if part["search"] == {"method": "mondrian"}:
        part["privacy"] = {"k": 4}
    return {"tables": {"p": {name: value for name, value in part.items() if value is not None}}}


def series(**more: object) -> dict[str, object]:
    return {"series": {"v": {"source": "charted", **SERIES, **more}}}


LINKED = {"person": "id", "attacks": False, "columns": {**COLUMNS, "id": {"role": "identifying", "pseudonym": True}}}
TWO = {n: table(**LINKED)["tables"]["p"] | more for n, more in (("p", {}), ("q", {"link": "p"}))}
POPULATION = {"population": {"table": "people"}}
FOLLOWED = {**table(**LINKED), **series(link="p")}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    'rows = "many"': (table(rows="many"), "tables.p.rows"),
    "rows_are_persons": (table(person=None), "tables.p.rows_are_persons"),
    "shift": (table(columns={"seen": {**INSENSITIVE, "shift": "person"}}), "tables.p.columns.seen.shift"),
    "link": ({"tables": TWO}, "tables.q.link"),
    "parent": ({}, "tables.codes.parent"),
    'method = "mondrian"': (
        table(columns={"age": qi({"median": "range"})}, search={"method": "mondrian"}),
        "tables.p.search.method",
    ),
    'choose = "by-k"': (
        table({"l_diversity": L, "criteria_limit": 0.5}, search={"method": "local", "choose": "by-k"}),
        "tables.p.search.choose",
    ),
    "blunt": (table(search={"method": "local", "blunt": True}), "tables.p.search.blunt"),
    'suppression = "blank"': (table({"suppression": "blank"}), "tables.p.privacy.suppression"),
    'view = "computed"': (
        {"release": {"as": "view"}, **table(columns={"illness": INSENSITIVE}, view="computed", frozen=True)},
        "tables.p.view",
    ),
    "aggregate": (
        table(columns={"mark": qi({"aggregate": "mean", "grid": 5})}),
        "tables.p.columns.mark.hierarchy.aggregate",
    ),
    "m_concealing": (
        table({"m_concealing": {"m": 0.5, "known": {"illness": 0.1}}}),
        "tables.p.privacy.m_concealing",
    ),
    "k_map": (table({"k_map": 4, **POPULATION}), "tables.p.privacy.k_map"),
    "delta_presence": (table({"delta_presence": {"most": 1.0}, **POPULATION}), "tables.p.privacy.delta_presence"),
    "average_risk": (table({"average_risk": 0.5}), "tables.p.privacy.average_risk"),
    "at_risk": (table({"at_risk": {"threshold": 0.2, "share": 0.5}}), "tables.p.privacy.at_risk"),
    'scope = "joint"': (
        table({"l_diversity": {**L, "scope": "joint"}}, columns={"sex": SENSITIVE}),
        "tables.p.privacy.l_diversity",
    ),
    'distance = "hierarchical"': (
        table({"t_closeness": {"column": "illness", "t": 0.9, "distance": "hierarchical", "hierarchy": "ill.csv"}}),
        "tables.p.privacy.t_closeness",
    ),
    "nulls": (series(privacy={"k": 4, "nulls": "null-strict"}), "series.v.privacy.nulls"),
    "link of series": (FOLLOWED, "series.v.link"),
    "method of events": ({"events": {"e": {**EVENTS, "privacy": {"method": "none"}}}}, "events.e.privacy.method"),
}
"""By the words of `REFUSED`: a job, and the key that is at fault."""
OTHERWISE = {
    "parent": "--ledger is for tables whose classes",
    'method = "mondrian"': "--ledger is for tables whose classes",
    'choose = "by-k"': "--ledger is for tables whose classes",
    "rows_are_persons": "the ledger follows persons from release to release",
    "link of series": "--ledger keeps account of tables alone",
    "method of events": "--ledger is for tables whose classes",
}
"""What is refused in other words where the run no longer sees the job's."""


CHARTED = """CREATE TABLE charted AS
    SELECT id, h AS hour, 'HR' AS item, 60.0 + id % 9 AS value FROM people, RANGE(6) AS q(h)"""
MOVES = """CREATE TABLE moves AS
    SELECT id, 'A' AS ward, TIMESTAMP '2024-01-01' + h * INTERVAL '5 hours' AS at FROM people, RANGE(3) AS q(h)"""


@pytest.fixture
def source(folder: Path) -> Path:
    seen = "UPDATE people SET seen = DATE '2024-01-01' + CAST(id % 9 AS INTEGER)"
    change(folder, "ALTER TABLE people ADD COLUMN seen DATE", seen, CHARTED, MOVES)
    (folder / "ill.csv").write_text("flu;x;*\ngout;x;*\nmumps;y;*\n")
    return folder / "db.duckdb"


def made(folder: Path, what: str) -> sqldeid.Job:
    if what == "parent":
        write_tree(folder)
        return child_job(folder, release={"into": "out.duckdb"})
    content = {"release": {"into": "out.duckdb"}} | CASES[what][0]
    if what == 'view = "computed"':
        content["release"] = {"as": "view"}
    return sqldeid.Job.parse(content, folder=folder)


def test_every_kind_that_is_refused_is_tried() -> None:
    assert CASES.keys() == REFUSED.keys()


@pytest.mark.sampled(7)
@pytest.mark.parametrize("what", CASES)
def test_it_is_told_from_the_job_and_refused_again_without_it(
    what: str, source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, key = made(folder, what), CASES[what][1]
    names = [*asked.tables, *asked.series, *asked.events]
    assert (key, what) in list(unfit(asked, names))
    if what == "parent":
        source.unlink()
        with duckdb.connect(source) as c:
            database(dict.fromkeys(range(6), "x"), {i: ["a1"] for i in range(6)}).close()
            c.execute("CREATE TABLE people AS SELECT i AS id, 'x' AS \"group\", i AS true_id FROM RANGE(6) r(i)")
            c.execute("CREATE TABLE codes AS SELECT id, 'a1' AS code FROM people")
    with pytest.raises(JobError) as early:
        sqldeid.anonymize(asked, source, options=options(folder))
    assert f"job: {key}: {REFUSED[what]}" in early.value.message.splitlines()
    assert not (folder / "ledger.duckdb").exists() and not (folder / "out.duckdb").exists()
    monkeypatch.setattr(orchestrator, "refuse_unfit", lambda *_: None)
    with pytest.raises(JobError) as late:
        sqldeid.anonymize(asked, source, options=options(folder))
    assert OTHERWISE.get(what, REFUSED[what]) in late.value.message, late.value
    assert not (folder / "out.duckdb").exists()


def test_the_page_lists_all_that_is_refused_as_the_messages_say_it() -> None:
    page = (ROOT / "docs" / "how-to" / "nightly.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)`(?: of (?:series|events))? \| (.+) \|$", page, flags=re.MULTILINE)
    told = {what.removesuffix(" of series").removesuffix(" of events"): set[str]() for what in REFUSED}
    for what, text in REFUSED.items():
        told[what.removesuffix(" of series").removesuffix(" of events")].add(text)
    assert len(rows) == len(REFUSED)
    for what, text in rows:
        assert text in told[what], what


def test_what_goes_with_a_ledger_is_not_refused(folder: Path) -> None:
    fine = [
        table({"l_diversity": L}),
        table({"t_closeness": {"column": "illness", "t": 0.9}}),
        table(search={"method": "local"}),
        table({"l_diversity": L, "criteria_limit": 0.5}, search={"choose": "by-k"}),
        series(),
    ]
    for content in fine:
        asked = sqldeid.Job.parse(content, folder=folder)
        assert list(unfit(asked, [*asked.tables, *asked.series])) == []
    both = {"tables": {**table(rows="many")["tables"], "q": table()["tables"]["p"]}}
    assert list(unfit(sqldeid.Job.parse(both), ["q"])) == [], "only what the run makes"


def test_all_faults_are_told_at_once_and_before_a_release_that_is_there(source: Path, folder: Path) -> None:
    asked = sqldeid.Job.parse({"release": {"into": "out.duckdb"}, **table()}, folder=folder)
    sqldeid.anonymize(asked, source, options=sqldeid.Options(key_file=folder / "key"))
    bad = table({"average_risk": 0.5}, columns={"seen": {**INSENSITIVE, "shift": "person"}})["tables"]["p"]
    many = table(rows="many")["tables"]["p"]
    job = sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"p": bad, "q": many}}, folder=folder)
    with pytest.raises(JobError) as refused:
        sqldeid.anonymize(job, source, options=sqldeid.Options(ledger=folder / "ledger.duckdb"))
    lines = refused.value.message.splitlines()
    keys = ["tables.p.columns.seen.shift", "tables.p.privacy.average_risk", "tables.q.rows"]
    assert [line.split(": ")[1] for line in lines[:3]] == keys and refused.value.key == keys[0]
    assert lines[3].startswith("--ledger: it keeps persons by a keyed hash; name the key") and len(lines) == 4
    with pytest.raises(JobError, match="exists already; allow it to be replaced with --replace"):
        sqldeid.anonymize(asked, source, options=options(folder, replace=False))


def test_where_the_job_has_changed_the_way_out_succeeds(source: Path, folder: Path) -> None:
    """A release without a ledger; then its source is declared otherwise, and a ledger begins."""

    def asked(**more: object) -> sqldeid.Job:
        return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, **table(**more)}, folder=folder)

    sqldeid.anonymize(asked(), source)
    job = asked(source={"query": "SELECT * FROM people WHERE id % 9 > 0"})
    with pytest.raises(JobError) as refused:
        sqldeid.anonymize(job, source, options=options(folder))
    said = refused.value.message
    assert "its job reads the source otherwise by now" in said and "source has changed" not in said
    assert "say so by --without-ledger and keep --ledger" in said and "hold releases" not in said
    sqldeid.anonymize(job, source, options=options(folder, without_ledger=True))
    sqldeid.anonymize(job, source, options=options(folder))
    with pytest.raises(JobError, match="name it with --ledger"):
        sqldeid.anonymize(job, source, options=sqldeid.Options(replace=True))


def test_a_changed_source_of_a_child_table_has_a_way_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No step that is named is refused: a ledger, which keeps no child tables, is not among them."""
    write_tree(folder)
    job = child_job(folder)
    c = database(dict.fromkeys(range(6), "x"), {i: ["a1"] for i in range(6)})
    key = {"key_file": folder / "key"}
    sqldeid.anonymize(job, c, options=sqldeid.Options(**key))  # type: ignore[arg-type]
    c.execute("DELETE FROM codes WHERE id = 3")
    with pytest.raises(sqldeid.VerificationError, match="release it again with --replace"):
        sqldeid.verify(job, c, options=sqldeid.Options(**key))  # type: ignore[arg-type]
    with pytest.raises(JobError, match="its source has changed since") as refused:
        sqldeid.anonymize(job, c, options=sqldeid.Options(replace=True, **key))  # type: ignore[arg-type]
    assert "say so by --without-ledger." in refused.value.message
    assert "--ledger" not in refused.value.message.replace("--without-ledger", "")
    with pytest.raises(JobError, match=r"tables\.codes\.parent: is a child table, and --ledger does not keep"):
        sqldeid.anonymize(job, c, options=options(folder))
    sqldeid.anonymize(job, c, options=sqldeid.Options(replace=True, without_ledger=True, **key))  # type: ignore[arg-type]
    sqldeid.verify(job, c, options=sqldeid.Options(**key))  # type: ignore[arg-type]
