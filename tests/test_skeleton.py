"""The house stands as CONTRIBUTING.md describes it."""

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import sqldeid
from tests.support.places import ROOT

PACKAGE = ROOT / "sqldeid"
MODULES = sorted(PACKAGE.rglob("*.py"))


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    if not program.exists():
        pytest.skip("import-linter is not installed (pip install -e .[dev])")
    command = [str(program), "--config", str(folder / "pyproject.toml"), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_rooms_import_only_what_they_may():
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("room", "line", "contract"),
    [
        ("tables/model/lattice.py", "import duckdb", "lattice and losses"),
        ("tables/search/base.py", "from sqldeid.engine import base", "never a database"),
        ("engine/base.py", "import sqldeid.tables.model.lattice", "imports go down only"),
        ("tables/verify/verify.py", "import sqldeid.tables.search.base", "shares nothing"),
        ("sql/names.py", "import duckdb", "Drivers"),
        ("engine/base.py", "import jinja2", "rendered by sqldeid.sql only"),
        ("unplaced.py", "", "every room has its place"),
    ],
)
def test_a_forbidden_import_is_seen(tmp_path, room, line, contract):
    shutil.copytree(PACKAGE, tmp_path / "sqldeid", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "sqldeid" / room).open("a") as module:
        module.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    broken = " ".join(done.stdout.partition("Broken contracts")[2].split())
    assert done.returncode != 0
    assert contract in broken


def test_version_is_that_of_the_distribution():
    assert sqldeid.__version__ == version("sqldeid")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_modules_and_functions_stay_short(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [f.name for f in functions if f.end_lineno - f.lineno >= 60] == []


@pytest.mark.parametrize("folder", ["sql", "hierarchies"])
def test_folders_outside_the_package_hold_no_code(folder):
    assert list((ROOT / folder).rglob("*.py")) == []


def test_every_page_stands_in_the_navigation_of_the_site():
    """What is made at the build (keys, options, errors, Python, notebooks, examples, README) is no file."""
    made = {"index.md", "contributing.md", "changelog.md", "how-to/nightly-files.md"}
    made |= {f"reference/{name}.md" for name in ("job-keys", "command-line", "errors", "python", "result")}
    made |= {f"tutorial/notebook-{path.stem}.md" for path in (ROOT / "examples" / "notebooks").glob("*.ipynb")}
    nav = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"(\S+\.md)$", nav, flags=re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) - made == pages, "a page under docs/ needs a line in the nav of docs/site/mkdocs.yml"


def test_no_stale_copy_of_templates_or_hierarchies_in_the_checkout():
    assert not (PACKAGE / "_sql").exists()
    assert not (PACKAGE / "_hierarchies").exists()


@pytest.mark.parametrize("deep", [True, False])
def test_deep_tests_alone_run_out_of_time_and_are_listed(deep):
    given = {"SQLDEID_DEEP": "1" if deep else "", "SQLDEID_DEEP_UNTIL": "1", "CI": "true"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/test_arrays.py"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert bool(re.search(r"\d+ TESTS LEFT OUT: no time was left", done.stdout)) == deep
    assert bool(re.search(r"\d+ x tests/test_arrays.py", done.stdout)) == deep
    assert (" passed" in done.stdout) != deep
