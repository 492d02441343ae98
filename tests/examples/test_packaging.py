"""What is installed is what the checkout holds: built as sdist and wheel, installed clean, started from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import sqldeid.sql
from sqldeid.sql.templates import statements_in
from tests.support.places import ROOT

DATA = {"sql/templates": "sqldeid/_sql", "hierarchies": "sqldeid/_hierarchies"}

pytestmark = pytest.mark.xdist_group("packaging")  # one worker builds and installs, once


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed; it sees nothing of the checkout or its environment."""
    known = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON") and k != "VIRTUAL_ENV"}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=known, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, target: Path, kind: str) -> Path:
    run(sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", target, source, cwd=target)
    return next(target.glob("*.whl" if kind == "--wheel" else "*.tar.gz"))


def checkout_files() -> set[str]:
    """Templates and hierarchies of the checkout, by their path once installed; what Python keeps is left out."""
    return {
        f"{inside}/{path.relative_to(ROOT / outside).as_posix()}"
        for outside, inside in DATA.items()
        for path in (ROOT / outside).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def wheel_files(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    target = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(ROOT, target, "--sdist")) as archive:
        archive.extractall(target)  # our own; Debian 12 has no `filter` yet
    return next(p for p in target.iterdir() if p.is_dir())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a clean environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet", wheel, cwd=folder)
    return programs


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return tmp_path


def test_wheel_holds_every_template_and_hierarchy(wheel):
    files = {f for f in wheel_files(wheel) if f.startswith(tuple(DATA.values()))}
    assert files == checkout_files()
    assert {f.split("/")[1] for f in files} == {"_sql", "_hierarchies"}
    assert "sqldeid/py.typed" in wheel_files(wheel)


def test_wheel_of_the_sdist_is_the_wheel_of_the_checkout(wheel, sdist, tmp_path):
    assert wheel_files(build(sdist, tmp_path, "--wheel")) == wheel_files(wheel)


def test_sdist_can_be_tested_and_says_what_it_is(sdist):
    for name in ("tests/conftest.py", "Makefile", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        assert (sdist / name).is_file()


@pytest.mark.deep
def test_installed_package_parses_every_template(installed, elsewhere):
    code = (
        "import json; from sqldeid import sql; names = sql.template_names();"
        "bare = [n.rpartition('.') if '.' in n else (n, '', 'duckdb') for n in names];"
        "of = {'each': ['duckdb', 'postgres', 'spark']};"
        "[sql.load(name, d) for name, _, dialect in bare for d in of.get(dialect, [dialect])]; print(json.dumps(names))"
    )
    names = json.loads(run(installed / "python", "-I", "-c", code, cwd=elsewhere))
    assert names
    assert tuple(names) == sqldeid.sql.template_names()


def test_editable_package_reads_the_checkout():
    assert sqldeid.sql.templates.folder() == ROOT / "sql/templates"
    for path in (ROOT / "sql/templates").rglob("*.sql.jinja"):
        name = path.relative_to(ROOT / "sql/templates").as_posix().removesuffix(".sql.jinja")
        held = sqldeid.sql.templates.source_of(name) is not None and name in sqldeid.sql.template_names()
        assert held or statements_in(path.read_text(encoding="utf-8")), path


@pytest.mark.deep
@pytest.mark.parametrize("name", ["adult", "mimic"])
def test_installed_program_runs_the_demo(name, installed, elsewhere):
    program = installed / "sqldeid"
    run(program, "demo", name, "demo.duckdb", cwd=elsewhere)
    out = run(program, "anonymize", "demo.duckdb", "--job", "demo.job.toml", "--json", "-", cwd=elsewhere)
    releases = json.loads(out)["releases"]
    assert releases
    for release in releases.values():
        assert release["released"] > 0
        assert release["released"] + release["suppressed"] == release["rows"]
    run(program, "verify", "demo.duckdb", "--job", "demo.job.toml", cwd=elsewhere)


@pytest.mark.deep
def test_installed_version_is_that_of_the_source(installed, elsewhere):
    assert sqldeid.__version__ in run(installed / "sqldeid", "--version", cwd=elsewhere)
