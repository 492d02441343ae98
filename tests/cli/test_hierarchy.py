"""`sqldeid hierarchy`: on files, on shipped hierarchies, on a table's column."""

from __future__ import annotations

import shlex
from pathlib import Path

import duckdb
import pytest
import tomlkit

from sqldeid.cli.hierarchy import rule
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import shipped
from tests.support.cli import run
from tests.support.files import write

AGE = ("--db", "db.duckdb", "--table", "main.people", "--column", "AGE")


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("bands=5,10,20", {"bands": [5, 10, 20]}),
        ("bands=0.5, 1", {"bands": [0.5, 1]}),
        ("mask=1,2", {"mask": [1, 2]}),
        ("dates=month,year", {"dates": ["month", "year"]}),
        ("keep_first=3,1", {"keep_first": [3, 1]}),
        ("suppress", {"suppress": True}),
        ("{ edges = [[1, 2], [2]], tails = true }", {"edges": [[1, 2], [2]], "tails": True}),
        ("edges=[[1, 2], [2]]", {"edges": [[1, 2], [2]]}),
        ("adult/age", "adult/age"),
    ],
)
def test_a_rule_is_read_as_a_job_writes_it(spec, found):
    assert rule(spec) == found


@pytest.mark.parametrize("spec", ["bands=[5", "{ bands", "{ bands = 1", 'x"=1', "bands=nan\n[x]"])
def test_a_broken_rule_is_refused(spec):
    with pytest.raises(HierarchyError, match="rule"):
        rule(spec)


def test_list_names_all_that_is_shipped_with_its_steps(capsys):
    lines = run(capsys, "hierarchy", "list").out.splitlines()
    listed = dict(line.split(maxsplit=1) for line in lines if "/" in line.partition(" → ")[0][:24] and " → " in line)
    assert set(listed) == set(shipped())
    for name, steps in listed.items():
        if name.startswith("adult/"):  # what becomes of one of its values, which `show` prints, too
            assert f"  {steps}\n" in run(capsys, "hierarchy", "show", name, "-v").out
    assert listed["age/5-10-20"] == "original → 5 → 10 → 20 → *"
    assert "For the variables of series: mimic3/vitals" in lines
    assert run(capsys, "hierarchy", "list", "-q").out == ""


def test_show_prints_levels_and_paths(folder, capsys):
    ran = run(capsys, "hierarchy", "show", "adult/education")
    assert "16 leaves" in ran.out
    assert "Some-college → College → Education" in ran.out
    assert len(run(capsys, "hierarchy", "show", "adult/age", "-v").out.splitlines()) > 120
    assert "100 more" in run(capsys, "hierarchy", "show", "adult/age").out


def test_show_needs_a_column_for_a_rule(folder, capsys):
    assert "to see them, add --db" in run(capsys, "hierarchy", "show", "age/5-10-20").out
    assert "→ [15, 20) → [10, 20) → [0, 20) → *" in run(capsys, "hierarchy", "show", "age/5-10-20", *AGE).out


def test_check_counts_what_is_not_covered_and_names_no_value(folder, capsys):
    good = run(capsys, "hierarchy", "check", "adult/age", *AGE)
    assert (good.code, "60 of 60 values covered" in good.out) == (0, True)
    (folder / "short.csv").write_text("15;young;*\n16;young;*\n")
    bad = run(capsys, "hierarchy", "check", "short.csv", *AGE)
    assert bad.code == 2
    assert "2 of 60 values covered" in bad.out
    assert "58 values" in bad.err and "--uncovered lists what it does not cover" in bad.err
    assert "short.csv: 2 leaves" in bad.out and "58 values of the column AGE. Add them to the hierarchy" in bad.err
    (folder / "torn.csv").write_text("a;x;p;*\nb;x;q;*\n")
    assert run(capsys, "hierarchy", "check", "torn.csv").code == 2


def test_check_lists_what_is_not_covered_where_it_is_asked(folder, capsys):
    (folder / "short.csv").write_text("15;young;*\n16;young;*\n")
    listed = run(capsys, "hierarchy", "check", "short.csv", *AGE, "--uncovered")
    assert listed.code == 2 and listed.out.splitlines()[-58:] == [f"  {age}" for age in range(17, 75)]
    assert "--db, --table and --column" in run(capsys, "hierarchy", "check", "short.csv", "--uncovered").err
    write("db.duckdb", "CREATE TABLE w AS SELECT unnest(['A', 'B', NULL]) AS ward")
    (folder / "w.csv").write_text("A;x\n")
    one = run(
        capsys, "hierarchy", "check", "w.csv", "--db", "db.duckdb", "--table", "w", "--column", "ward", "--uncovered"
    )
    assert one.out.splitlines()[-1] == "  B" and "does not cover 1 value of the column ward. Add it to" in one.err
    assert "w.csv: 2 leaves, NULL among them" in one.out and "1 of 3 values covered" not in one.out
    assert "2 of 3 values covered, NULL among them" in one.out


@pytest.mark.parametrize("source", ["main.w", {"query": "SELECT * FROM w WHERE ward <> 'SECRET'"}])
@pytest.mark.parametrize("hierarchy", ["the wards.csv", {"edges": [[1, 2]]}])
def test_a_run_says_how_to_see_what_is_not_covered_and_shows_none(folder, capsys, source, hierarchy):
    """The command, or the query, is run as it is printed, and names the value that the message does not."""
    write(
        "db.duckdb",
        "CREATE TABLE w AS SELECT i AS id, CASE i % 2 WHEN 0 THEN 'A' ELSE 'xSECRETx' END AS ward, 7 AS n "
        "FROM range(20) AS r(i)",
    )
    (folder / "the wards.csv").write_text("A;x\nC;x\n")
    name = "n" if isinstance(hierarchy, dict) else "ward"
    columns = {name: {"role": "quasi-identifying", "hierarchy": hierarchy}}
    release = {"source": source, "person": "id", "columns": columns, "privacy": {"k": 2}}
    tables = tomlkit.dumps({"release": {"into": "w.duckdb"}, "tables": {"w": release}})
    (folder / "sub").mkdir()
    (folder / "the wards.csv").rename(folder / "sub" / "the wards.csv")
    (folder / "sub" / "w.toml").write_text(tables)
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "sub/w.toml")
    assert (
        ran.code == 2
        and "does not cover 1 value" in ran.err
        and ("A rule cannot be added to" if name == "n" else "Add it to the hierarchy") in ran.err
    )
    assert "SECRET" not in ran.err and "--db DB" not in ran.err
    if " To see which: sqldeid " in ran.err:
        listed = run(capsys, *shlex.split(ran.err.split(" To see which: sqldeid ")[1]))
        assert listed.out.splitlines()[-1] == "  xSECRETx"
        return
    asked = ran.err.split(": SELECT ")[1].replace('"source_query"', "(SELECT * FROM w)")
    with duckdb.connect("db.duckdb") as c:
        assert (7 if name == "n" else "xSECRETx", 20 if name == "n" else 10) in c.sql(f"SELECT {asked}").fetchall()


def test_build_writes_a_file_that_a_job_reads(folder, capsys):
    assert run(capsys, "hierarchy", "build", "bands=10,50", "-o", "age.csv", *AGE).code == 0
    by_rule = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--only", "people", "--json", "-").json
    text = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(text.replace("{ bands = [10, 50] }", '"age.csv"'))
    by_file = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--only", "people", "--replace", "--json", "-")
    found, expected = (r["releases"]["people"] for r in (by_file.json, by_rule))
    assert (found["node"], found["suppressed"]) == (expected["node"], expected["suppressed"])
    assert found["loss"]["loss"] == pytest.approx(expected["loss"]["loss"], abs=1e-12)


def test_build_from_a_shipped_hierarchy_and_a_date(folder, capsys):
    write("db.duckdb", "CREATE TABLE d AS SELECT DATE '2001-02-03' AS born, 12.50::DECIMAL(8,2) AS price, [1] AS list")
    born = ("--db", "db.duckdb", "--table", "d", "--column", "born")
    assert run(capsys, "hierarchy", "build", "dates=month,year", "-o", "b.csv", *born).code == 0
    assert Path("b.csv").read_text() == '"2001-02-03";"2001-02";"2001";"*"\n'
    assert run(capsys, "hierarchy", "build", "adult/sex", "-o", "sex.csv").code == 0
    price = ("--db", "db.duckdb", "--table", "d", "--column", "price")
    assert run(capsys, "hierarchy", "build", "bands=5", "-o", "p.csv", *price).code == 0
    refused = run(capsys, "hierarchy", "check", "adult/sex", "--db", "db.duckdb", "--table", "d", "--column", "list")
    assert (refused.code, "INTEGER[]" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "nothing.csv"], "no such file"),
        (["show", "adult/age", "--db", "db.duckdb"], "belong together"),
        (["check", "adult/age", "--db", "db.duckdb", "--table", "nobody", "--column", "age"], "nobody"),
        (["check", "adult/age", "--db", "db.duckdb", "--table", "people", "--column", "x"], "it has id, age"),
        (["check", "adult/age", "--db", "none.duckdb", "--table", "people", "--column", "x"], "none.duckdb"),
        (["build", "bands=10", "-o", "x.csv"], "--db"),
        (["build", "bands=10", "-o", "job.toml", *AGE], "exists already"),
        (["build", "bands=10", "-o", "none/x.csv", *AGE], "none"),
        (["build", "bands=10,15", "-o", "x.csv", *AGE], "bands"),
        (["build", "dates=month", "-o", "x.csv", *AGE], "dates"),
        (["build", "rule=1", "-o", "x.csv", *AGE], "exactly one of"),
    ],
)
def test_what_is_wrong_is_said(arguments, said, folder, capsys):
    ran = run(capsys, "hierarchy", *arguments)
    assert ran.code == 2, ran
    assert said in ran.err
    assert not Path("x.csv").exists()
