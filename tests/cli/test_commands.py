"""What the commands do when all is well."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from types import ModuleType

import duckdb
import pytest

import sqldeid
import sqldeid.job
from tests.support.cli import Ran, run, tree


def keys_of(found: object) -> set[str]:
    """All keys of a JSON value, at any depth."""
    if isinstance(found, list):
        return set().union(*map(keys_of, found))
    return set(found).union(*map(keys_of, found.values())) if isinstance(found, dict) else set()


def anonymize(capsys: pytest.CaptureFixture[str], *more: object) -> Ran:
    return run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", *more)


def test_plan_touches_nothing(folder, capsys):
    before = tree(folder), folder.stat().st_mtime_ns
    plain, verbose = anonymize(capsys, "--plan"), anonymize(capsys, "--plan", "-v")
    assert (plain.code, verbose.code) == (0, 0)
    assert (tree(folder), folder.stat().st_mtime_ns) == before
    for word in (
        "age",
        "bands 10, 50",
        "k = 3",
        "20 %",
        "frontier",
        "release.people",
        "8 nodes",
        "check_person",
    ):
        assert word in " ".join(plain.out.split()), word
    assert "COUNT(DISTINCT" not in plain.out
    assert 'COUNT(DISTINCT "s"."id")' in verbose.out


def test_plan_says_that_the_target_exists(folder, capsys):
    assert anonymize(capsys).code == 0
    assert "exists: needs --replace" in " ".join(anonymize(capsys, "--plan").out.split())


def test_summary_and_json_and_public(folder, capsys):
    ran = anonymize(capsys, "--json", "result.json", "--public", "public.json")
    assert (ran.code, ran.err) == (0, "")
    result = json.loads((folder / "result.json").read_text())
    people = result["releases"]["people"]
    assert ran.out.startswith("For the data holder only")
    assert f"{people['released']:,} of 60 rows" in ran.out
    assert "sqldeid verify db.duckdb --job job.toml" in ran.out
    assert people["k"] >= 3
    with duckdb.connect(folder / "out.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT COUNT(*) FROM release.people").fetchone() == (people["released"],)
    public = json.loads((folder / "public.json").read_text())
    assert "data holder" in result["audience"]
    assert public["releases"]["people"]["node"] == people["node"]
    assert public["releases"]["people"].keys() == {"kind", "node", "columns", "criteria", "suppression_limit"}
    assert not keys_of(public) & {"suppressed", "rows", "released", "loss", "risk", "search", "achieved", "seconds"}


def test_json_to_standard_output_leaves_the_summary_to_the_other(folder, capsys):
    ran = anonymize(capsys, "--json", "-")
    assert set(ran.json["releases"]) == {"people", "all"}
    assert "For the data holder only" in ran.err


def test_json_is_for_its_owner_and_keeps_the_mode_of_what_it_replaces(folder, capsys):
    anonymize(capsys, "--json", "result.json")
    assert stat.S_IMODE((folder / "result.json").stat().st_mode) == 0o600
    (folder / "result.json").chmod(0o640)
    anonymize(capsys, "--json", "result.json", "--replace")
    assert stat.S_IMODE((folder / "result.json").stat().st_mode) == 0o640
    assert json.loads((folder / "result.json").read_text())["releases"]


def test_quiet_prints_nothing_and_verbose_prints_steps_and_promises(folder, capsys):
    quiet, verbose = anonymize(capsys, "-q"), anonymize(capsys, "-v", "--replace")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert "people: folding the source" in verbose.err
    assert "Whoever knows a person's quasi-identifying values" in " ".join(verbose.out.split())


def test_only_and_replace(folder, capsys):
    assert anonymize(capsys, "--only", "people").code == 0
    assert anonymize(capsys, "--only", "all").code == 2
    beside = anonymize(capsys, "--only", "all", "--replace")  # other persons than `people` may hold: to be subtracted
    assert (beside.code, "--without-ledger" in beside.err) == (2, True)
    assert anonymize(capsys, "--only", "all", "--replace", "--without-ledger").code == 0
    with duckdb.connect(folder / "out.duckdb", read_only=True) as connection:
        names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    assert names == [("all",), ("people",)]


def test_verify_and_assess(folder, capsys):
    result = anonymize(capsys, "--json", "-").json["releases"]
    verified = run(capsys, "verify", "db.duckdb", "--job", "job.toml", "--json", "-").json["releases"]
    risk = run(capsys, "assess", "db.duckdb", "--job", "job.toml", "--json", "-").json
    left = run(capsys, "assess", "db.duckdb", "--job", "job.toml", "--release", "--json", "-").json
    for name, release in result.items():
        assert {k: verified[name][k] for k in ("k", "released", "classes")} == {
            k: release[k] for k in ("k", "released", "classes")
        }
        assert risk["releases"][name] == release["risk"]["source"]
        assert left["releases"][name] == release["risk"]["release"]
    assert (risk["of"], left["of"]) == ("source", "release")
    assert "is what job and source say" in run(capsys, "verify", "db.duckdb", "--job", "job.toml").out
    assert "Prosecutor" in run(capsys, "assess", "db.duckdb", "--job", "job.toml", "--only", "people").out


def test_settings_reach_the_engine(folder, capsys):
    assert anonymize(capsys, "--memory-limit", "1GB", "--threads", "1", "--temp-dir", folder).code == 0
    refused = anonymize(capsys, "--replace", "--memory-limit", "plenty")
    assert refused.code == 2
    assert "--memory-limit" in refused.err


def test_schema_is_that_of_the_library(capsys):
    assert run(capsys, "schema").json == sqldeid.job.schema()


@pytest.mark.parametrize(("name", "number"), [("adult", "--rows"), ("mimic", "--patients")])
def test_demos_run(name, number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = run(capsys, "demo", name, "d.duckdb", number, 400, "--seed", 3)
    assert made.code == 0
    assert "no real person" in made.out
    assert run(capsys, "anonymize", "d.duckdb", "--job", "d.job.toml").code == 0


COMMANDS = ["", "init", "anonymize", "assess", "verify", "schema", "demo", "demo adult", "demo mimic", "hierarchy"]
COMMANDS += ["completion", "doctor", "evidence", "hierarchy show", "hierarchy check", "hierarchy build", "import-arx"]
COMMANDS += ["demo omop", "demo mimiciv", "demo eicu"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ran = run(capsys, *command.split(), "--help")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 120
    if command not in ("demo", "hierarchy"):
        assert f"Examples:\n    sqldeid {command}".rstrip() in ran.out
        assert "--version" in ran.out
    if command.split()[-1:] not in ([], ["demo"], ["hierarchy"]):
        for option in ("--memory-limit", "--threads", "--temp-dir", "--quiet", "--verbose"):
            assert option in ran.out


@pytest.mark.parametrize("width", [60, 80])
def test_nothing_is_wider_than_the_window(width, folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    runs = [anonymize(capsys, "--plan"), anonymize(capsys), run(capsys, "assess", "db.duckdb", "--job", "job.toml")]
    runs.append(run(capsys, "hierarchy", "show", "adult/education"))
    for line in "\n".join(r.out for r in runs).splitlines():
        assert len(line) <= width or line.startswith("  sqldeid "), line
        assert line == line.rstrip(), line


def test_help_loads_neither_database_nor_arrow():
    code = "import sys; from sqldeid.cli import app; "
    code += "print([m for m in ('duckdb', 'pyarrow', 'pydantic') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_every_public_name_is_there():
    public = {name: getattr(sqldeid, name) for name in sqldeid.__all__}
    homes = [f.__name__ if isinstance(f, ModuleType) else f.__module__ for f in public.values()]
    assert all(home.startswith("sqldeid.") for home in homes)
    assert set(sqldeid.__all__) <= set(dir(sqldeid))
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        sqldeid.anonymise  # noqa: B018
