"""`sqldeid doctor`: what works, what is missing and how to mend it; no data value, no secret, no traceback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.metadata import requires
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.run import doctor
from tests.support.cli import run, tree

MISSING = """
import importlib.metadata as metadata, sys
gone = sys.argv[1].split(",")
old = metadata.version
def version(name):
    if name in gone:
        raise metadata.PackageNotFoundError(name)
    return old(name)
metadata.version = version
class Gone:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in gone:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Gone)
from sqldeid.cli import main
main(sys.argv[2:])
"""


def without(packages: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program where some packages are not installed."""
    return subprocess.run([sys.executable, "-c", MISSING, packages, *arguments], capture_output=True, text=True)


def test_all_is_told_where_all_works(folder, capsys):
    before = tree(folder)
    ran = run(capsys, "doctor", "db.duckdb", "--job", "job.toml")
    assert (ran.code, ran.err) == (0, "")
    assert tree(folder) == before
    for words in (f"duckdb {duckdb.__version__}", "it runs statements", "can be written", "encoding", "(UTC)"):
        assert words in ran.out, words
    assert "  ok  tables" in ran.out and "main.people" in ran.out
    assert "valid; 2 releases" in ran.out
    assert "sqldeid works here" in ran.out.splitlines()[-1]
    assert not any(value in ran.out for value in ("person 1", "illness", "income"))


def test_a_bare_checkout_releases_and_is_told(folder, capsys, monkeypatch):
    """Its folder on PYTHONPATH, and no metadata of a distribution: the version is the package's own."""
    find = metadata.Distribution.from_name

    def from_name(name: str) -> metadata.Distribution:
        if name == "sqldeid":
            raise metadata.PackageNotFoundError(name)
        return find(name)

    monkeypatch.setattr(metadata.Distribution, "from_name", from_name)
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--json", "result.json", "-q")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads((folder / "result.json").read_text())["versions"]["sqldeid"] == sqldeid.__version__
    for more in (["-o", "e.zip", "result.json"], ["--check", "e.zip"]):
        assert run(capsys, "evidence", *more).code == 0
    ran = run(capsys, "doctor")
    assert (ran.code, ran.err) == (0, "") and sqldeid.__version__ in ran.out
    said = " ".join(ran.out.split())
    assert (
        "-- sqldeid" in said
        and "is no installed package; what it needs is read from pyproject.toml -> pip install -e" in said
    )
    assert "click" in said and "ok report" in said, "what is there is told as of an installed one"
    assert sorted(doctor._checkout() or ()) and {e for _, _, e in doctor._needed()} >= {"", *doctor.EXTRAS}


def test_json_has_the_same(folder, capsys):
    ran = run(capsys, "doctor", "--json", "-")
    found = ran.json["doctor"]
    assert {one["state"] for one in found} <= {"ok", "note", "fail"}
    assert {one["group"] for one in found} >= {"program", "extras", "engines", "surroundings"}
    run(capsys, "doctor", "--json", "found.json", "-q")
    assert (folder / "found.json").exists()


def test_every_extra_has_its_purpose():
    extras = {extra for _, _, extra in doctor._needed() if extra} - {"all", "dev", "test"}
    assert extras == set(doctor.EXTRAS)
    assert len([line for line in requires("sqldeid") or () if "extra" not in line]) == len(
        [name for name, _, extra in doctor._needed() if not extra]
    )


def test_a_bare_checkout_that_lacks_a_package_is_told_which(monkeypatch):
    monkeypatch.setattr(doctor, "_installed", lambda name: None if name in ("sqldeid", "scipy") else "1")
    found = {one.name: one for one in (*doctor._program(), *doctor._packages(), *doctor._extras())}
    assert found["sqldeid"].state == "note" and found["scipy"].mend.startswith("pip install 'scipy>=")
    assert [name for name, one in found.items() if one.state == "fail"] == ["scipy"]
    monkeypatch.setattr(doctor, "_checkout", lambda: None)  # a copy of the package's folder
    assert [one.state for one in doctor._program()] == ["ok", "fail"]


def test_no_advice_looks_for_the_package_in_an_index(monkeypatch, tmp_path):
    """No index has it: it is installed from the repository's folder, and an extra by name only once that is done."""
    root = Path(sqldeid.__file__).parents[1]
    installed = metadata.version
    monkeypatch.setattr(doctor, "_installed", lambda name: None if name in ("sqldeid", "pyspark") else installed(name))
    (spark,) = [one for one in doctor._extras() if one.name == "spark"]
    assert spark.mend == f"pip install -e '{root}[spark]'"
    monkeypatch.setattr(doctor, "_checkout", lambda: None)
    assert [one.mend for one in doctor._program()][1].startswith("pip install . in the folder of the repository")
    copied = tmp_path / "sqldeid"
    shutil.copytree(Path(sqldeid.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-S", "-m", "sqldeid", "doctor"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 1 and done.stderr.endswith(" says what else is missing\n")
    assert f"run {sys.executable} -m pip install . in the folder of the repository, and" in done.stderr


def test_without_click_even_the_doctor_says_what_to_install():
    """All that may be missing is, as for the system's Python in a bare checkout: no traceback, but the command."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "sqldeid", "doctor"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(sqldeid.__file__).parents[1])},
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("Error: click, which every run needs, is not installed for ")
    assert " -m pip install " in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "package"),
    [
        *(("anonymize", name) for name in ("rich", "pydantic", "pyarrow", "sqlglot")),
        *(("verify", "rich"), ("explore", "pydantic")),
    ],
)
def test_no_command_ends_in_a_traceback_for_want_of_a_package(command, package, tmp_path):
    job = tmp_path / "job.toml"
    job.write_text("[tables.people]\nsource = 'people'\n")
    given = ["--table", "people", "--columns", "a"] if command == "explore" else ["--job", str(job)]
    done = without(package, command, str(tmp_path / "x.csv"), *given, "--json", str(tmp_path / "said.json"))
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
    if package != "sqlglot":  # of which the job or the file is told first
        assert done.returncode == 1
        assert done.stderr.startswith(f"Error: {package}, which every run needs, is not installed for ")
        assert " -m pip install " in done.stderr and len(done.stderr.splitlines()) == 1
        assert json.loads((tmp_path / "said.json").read_text())["error"]["code"] == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("package", ["pyarrow,rich", "duckdb,pydantic"])
def test_a_package_that_every_run_needs_is_missed_in_words(package):
    done = without(package, "doctor")
    assert done.returncode == 1
    for name in package.split(","):
        assert f"!!  {name}" in done.stdout
        assert f"pip install '{name}" in done.stdout
    assert "Traceback" not in done.stderr
    assert f"sqldeid does not work here: {package.replace(',', ', ')}" in done.stderr


def test_an_extra_that_is_missing_is_no_failure():
    done = without("psycopg,opendp", "doctor")
    assert done.returncode == 0, done.stderr
    assert "--  postgres" in done.stdout and "pip install 'sqldeid[postgres]'" in done.stdout
    assert "--  dp" in done.stdout
    assert "of what only some runs need are not there" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere.duckdb",), "does not exist"),
        (("job.toml",), "job.toml"),
        (("--job", "nowhere.toml"), "no such file"),
        (("--memory-limit", "lots"), "--memory-limit"),
        (("--json", "nowhere/x.json"), "there is no folder"),
    ],
)
def test_what_cannot_be_is_refused(arguments, told, folder, capsys):
    ran = run(capsys, "doctor", *arguments)
    assert ran.code in (1, 2)
    assert told in ran.out + ran.err


def test_the_environment_is_told_and_no_secret(folder, capsys, monkeypatch):
    secret = "0123456789abcdef" * 4
    monkeypatch.setenv("SQLDEID_KEY", secret)
    monkeypatch.setenv("SQLDEID_HOUSE_RULES", "rules.toml")
    (folder / "rules.toml").write_text('organisation = "House"\n[tables]\n')
    ran = run(capsys, "doctor")
    assert "rules of House in rules.toml bind every run" in ran.out
    assert "holds a key" in ran.out and secret not in ran.out
    monkeypatch.setenv("SQLDEID_KEY", "short")
    monkeypatch.setenv("SQLDEID_HOUSE_RULES", "")
    ran = run(capsys, "doctor")
    assert ran.code == 0  # some runs alone need a key, and rules are refused by each run
    assert ran.out.count("  --  SQLDEID_") == 2 and "short" not in ran.out


def test_a_password_is_not_told(folder, capsys):
    ran = run(capsys, "doctor", "postgresql://me:hidden-word@127.0.0.1:1/x")
    assert ran.code == 1
    assert "hidden-word" not in ran.out + ran.err


def test_a_name_is_shown_with_its_control_characters_written_out(folder, capsys):
    with duckdb.connect(folder / "db.duckdb") as connection:
        connection.execute('CREATE TABLE "a\x1b[31mb" (i INTEGER)')
    ran = run(capsys, "doctor", "db.duckdb")
    assert "\x1b" not in ran.out and "x1b[31mb" in ran.out


def test_a_poor_terminal_is_told(folder: Path):
    program = [sys.executable, "-m", "sqldeid", "doctor"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii", "HOME": str(folder)}
    done = subprocess.run(program, capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    assert "--  terminal" in done.stdout and "encoding ascii" in done.stdout


def test_postgres_is_opened(postgres, capsys):
    host = postgres.info.host.replace("/", "%2F")
    ran = run(capsys, "doctor", f"postgresql://{postgres.info.user}@/{postgres.info.dbname}?host={host}")
    assert ran.code == 0, ran.err
    assert "Postgres, opened for reading" in ran.out
