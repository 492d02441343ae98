"""Reports of results that somebody changed, reports that fail, and those of releases by Mondrian."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sqldeid
from sqldeid.cli import main
from sqldeid.errors import JobError, SqldeidError
from sqldeid.report.page import public_page, report_page
from tests.support.cli import run
from tests.support.examples import examples
from tests.support.report_kinds import charted, events, series

CUT = """
[release]
into = "out.duckdb"

[tables.cut]
source = "main.people"
person = "id"

[tables.cut.columns]
age = { role = "quasi-identifying", hierarchy = { median = "range" } }
illness = { role = "sensitive" }

[tables.cut.privacy]
k = 3
l_diversity = { column = "illness", l = 2 }

[tables.cut.search]
method = "mondrian"
"""
OUTPUTS = ("--json", "r.json", "--report", "report.html", "--public", "about.html")


@pytest.fixture
def cut(folder: Path) -> Path:
    (folder / "cut.toml").write_text(CUT)
    return folder


def test_a_release_by_mondrian_is_reported(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "cut.toml", *OUTPUTS)
    assert ran.code == 0, ran.err
    assert run(capsys, "report", "r.json", "-o", "again.html").code == 0
    assert run(capsys, "report", "r.json", "--public", "-o", "about2.html").code == 0
    page, about = (cut / "report.html").read_text(), (cut / "about.html").read_text()
    assert page == (cut / "again.html").read_text()
    assert about == (cut / "about2.html").read_text()
    assert "distinct l-diversity of illness" in page and "Is it safe to publish?" in page
    assert "a class that was not cut" in about and "rows (" not in about


@pytest.mark.deep
@pytest.mark.parametrize("broken", ["report_page", "public_page"])
def test_a_report_that_fails_leaves_the_result_and_says_what_was_published(cut: Path, broken: str) -> None:
    code = f"import sqldeid.report.page as p; p.{broken} = lambda r: {{}}['x']; from sqldeid.cli import main; main()"
    given = [sys.executable, "-c", code, "anonymize", "db.duckdb", "--job", "cut.toml", *OUTPUTS]
    ran = subprocess.run(given, cwd=cut, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "the releases were published" in ran.stderr and "KeyError" in ran.stderr and "Traceback" not in ran.stderr
    found = json.loads((cut / "r.json").read_text())
    assert found["releases"]["cut"]["kind"] == "table" and "error" not in found
    assert (cut / "out.duckdb").exists()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("at", "value", "named"),
    [
        (("risk", "source", "prosecutor"), "high", r"releases\.people\.risk\.source\.prosecutor"),
        (("risk",), None, r"releases\.people\.risk"),
        (("columns", "age", "level"), 9, r"releases\.people\.columns\.age: level must be below height"),
        (("criteria", 0, "name"), "trust", r"releases\.people\.criteria\.0\.name: must be a criterion"),
        (("search", "loss"), "made-up", r"releases\.people\.search\.loss"),
        (("kind",), "made-up", r"releases\.people\.kind: must be table, child, series or events"),
    ],
)
def test_a_change_is_refused_with_its_place(
    results: dict[str, Any], at: tuple[Any, ...], value: object, named: str
) -> None:
    tree = changed(results["table"], ("releases", "people", *at), value)
    with pytest.raises(JobError, match=named):
        report_page(tree)
    with pytest.raises(JobError):
        report_page({**tree, "releases": []})
    assert public_page(results["table"])


# ---- changed results ----------------------------------------------------------------------------------------------


def table(folder: Path) -> sqldeid.Result:
    """A table release with a trade-off, neighbours and a policy."""
    path = folder / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE TABLE people AS "
            "SELECT i AS id, i % 9 AS age, i % 2 AS sex, i % 3 AS ill FROM range(200) t(i)"
        )
    options = sqldeid.Options(explain=True, replace=True, without_ledger=True)
    return sqldeid.anonymize(job_of(folder), path, options=options)


def job_of(folder: Path) -> sqldeid.Job:
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [3, 6]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "ill": {"role": "sensitive"},
    }
    privacy = {"k": 12, "suppression_limit": 0.2, "l_diversity": {"column": "ill", "l": 2}}
    part = {"source": "people", "person": "id", "columns": columns, "privacy": privacy}
    return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": part}}, folder=folder)


def parted(folder: Path) -> sqldeid.Result:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, i % 90 AS age, i % 3 AS illness FROM range(200) t(i)"
        )
        found = sqldeid.Job.parse({"tables": {"cut": _cut()}})
        return sqldeid.anonymize(found, connection)


def _cut() -> dict[str, object]:
    part = tomllib.loads(CUT)["tables"]["cut"]
    return {**part, "source": "people"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `--json` writes, a result a kind."""
    folder = tmp_path_factory.mktemp("changed")
    made = {
        "table": table(folder),
        "mondrian": parted(folder),
        "series": series("shared"),
        "laplace": events("laplace", folder),
        "ratio": events("ratio", folder),
    }
    return {name: json.loads(json.dumps(result.to_dict(), default=str)) for name, result in made.items()}


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree but its root."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        yield (*at, key)
        yield from places(value, (*at, key))


GONE = object()
INSTEAD = [GONE, None, True, "", "x", "<b>", -1, 0, 3, 0.5, 10**400, 1e308, math.nan, math.inf, [], ["x"], {}, {"x": 1}]


def changed(tree: Any, at: tuple[Any, ...], value: object) -> Any:
    """The tree with another value at one place, or without it."""
    found = copy.deepcopy(tree)
    parent = found
    for key in at[:-1]:
        parent = parent[key]
    if value is GONE:
        del parent[at[-1]]
    else:
        parent[at[-1]] = value
    return found


def shapes(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of another kind: of lists the first item, of entries of one shape the first."""
    inside = (
        list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))[:1] if isinstance(tree, list) else []
    )
    seen: set[tuple[str, ...]] = set()
    for key, value in inside:
        yield (*at, key)
        shape = tuple(value) if isinstance(value, dict) else ()
        if not shape or shape not in seen:
            yield from shapes(value, (*at, key))
        seen.add(shape)


def linked_series() -> sqldeid.Result:
    """Series with all that a job may ask for: a linked table, a feature of its own, disagreement, an outcome."""
    connection = charted()
    connection.execute("CREATE TABLE stays AS SELECT DISTINCT stay, CAST(stay % 2 AS INTEGER) AS ward FROM charted")
    columns = {"ward": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
    table = {"source": "stays", "person": "stay", "columns": columns, "privacy": {"k": 4}}
    part = {
        **{"source": "charted", "person": "stay", "time": "minute", "time_unit": "minutes", "variable": "item"},
        **{"value": "value", "durations": {"k": 6}, "privacy": {"k": 4}, "features": {"own": "sum(value)"}},
        **{"disagreement": {}, "link": "t", "labels": {"source": "deaths", "person": "stay", "column": "died"}},
    }
    return sqldeid.anonymize(sqldeid.Job.parse({"tables": {"t": table}, "series": {"s": part}}), connection)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["series", "laplace", "ratio", "mondrian"])
def test_each_key_that_is_missing_or_of_another_type_is_named(results: dict[str, Any], kind: str) -> None:
    """What nobody had thought of ended as a mistake of the file's without its place."""
    tree = results[kind]
    if kind == "series":
        tree = json.loads(json.dumps(linked_series().to_dict(), default=str))
        del tree["releases"]["t"]
    refused = 0
    for at in shapes(tree):
        was = reduce(lambda inner, key: inner[key], at, tree)
        for value in (GONE, "x" if not isinstance(was, str) else ["x"]):
            for page in (report_page, public_page):
                try:
                    page(changed(tree, at, value))
                except JobError as error:
                    place = [str(key) for key in at[-2:]]
                    assert any(key in error.message for key in place), (at, value, error.message)
                    refused += 1
    assert refused > len(list(shapes(tree))) / 2


@pytest.mark.deep
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_changed_result_is_shown_or_refused(
    results: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tree = results[data.draw(st.sampled_from(sorted(results)))]
    for _ in range(data.draw(st.integers(1, 2))):
        there = [p for p in places(tree) if "policy" not in p]
        at = data.draw(st.sampled_from(there))
        tree = changed(tree, at, data.draw(st.sampled_from(INSTEAD)))
    (folder := tmp_path_factory.mktemp("result")).joinpath("r.json").write_text(json.dumps(tree))
    for more in ((), ("--public",)):
        with pytest.raises(SystemExit) as end:
            main(["report", str(folder / "r.json"), "-o", str(folder / "page.html"), "-q", *more])
        assert end.value.code in (0, 2)


@pytest.mark.deep
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_changed_policy_is_applied_or_refused(
    results: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("policy")
    table(folder)
    tree = results["table"]
    there = [p for p in places(tree) if "policy" in p and len(p) < 9]
    tree = changed(tree, data.draw(st.sampled_from(there)), data.draw(st.sampled_from(INSTEAD)))
    try:
        sqldeid.anonymize(
            job_of(folder),
            folder / "people.duckdb",
            options=sqldeid.Options(replace=True, without_ledger=True, policy=tree),
        )
    except SqldeidError as error:
        assert error.code in (2, 4), error.message
