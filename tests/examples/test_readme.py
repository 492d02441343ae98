"""Every command, job and line of Python in README and docs runs, and the session that is shown is what a run prints."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.hierarchy import open_source
from tests.support.places import ROOT
from tests.support.shell import execute

README = ROOT / "README.md"
PARTS = ("tutorial", "how-to", "reference", "explanation")
FIRST = ROOT / "docs" / "tutorial" / "first-run.md"
JOB_FILE = ROOT / "docs" / "reference" / "job-file.md"
# All other pages begin in the folder that the first run leaves.
PAGES = [p for part in PARTS for p in sorted((ROOT / "docs" / part).glob("*.md")) if p != FIRST]
MOST_BYTES = 8192
BLOCK = re.compile(r"^(?:`([\w.]+)`:\n\n)?```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"\d+\.\d s\b|[\d,]+(?= of [\d,]+ nodes checked)")

pytestmark = pytest.mark.xdist_group("readme")


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """File name (or nothing), kind and text of each fenced block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def words(text: str, folder: Path) -> str:
    """What must be equal: lines may be broken elsewhere, times and checks differ from run to run."""
    return " ".join(VARYING.sub("…", text.replace(str(folder), "/home/you")).split())


def is_shown(printed: str, shown: str, folder: Path) -> bool:
    """Whether a block shows what was printed; a line of … stands for whatever was left out."""
    kept = [re.escape(words(part, folder)) for part in re.split(r"^…\n", shown, flags=re.MULTILINE)]
    return re.fullmatch(".*".join(kept), words(printed, folder)) is not None


def session(block: str) -> list[tuple[str, str]]:
    """Commands of a console block with what they print."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def run_page(page: Path, folder: Path) -> int:
    """Run a page's blocks in order, and count the commands; a job or script is kept in the file that its page names."""
    ran = 0
    for name, kind, text in blocks(page):
        if kind == "console":
            for command, shown in session(text):
                printed = execute(["bash", "-c", command], folder)
                assert is_shown(printed, shown, folder), f"{page.name}: {command}\n{printed}"
                ran += 1
        elif kind == "sh" and not name:
            for command in text.splitlines():
                execute(["bash", "-o", "pipefail", "-c", command], folder)
                ran += 1
        elif kind == "python":
            assert "classes" in execute([sys.executable, "-c", text], folder)
            ran += 1
        elif name:
            (folder / name).write_text(text, encoding="utf-8")
    return ran


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that README leaves behind."""
    folder = tmp_path_factory.mktemp("readme")
    assert run_page(README, folder) == 3
    return folder


def test_the_readme_stays_short():
    assert README.stat().st_size <= MOST_BYTES


def test_every_block_is_of_a_known_kind():
    kinds = {kind for page in (README, FIRST, *PAGES) for _, kind, _ in blocks(page)}
    assert kinds == {"console", "sh", "toml", "python"}


def test_a_session_that_shows_something_else_is_seen(tmp_path):
    assert is_shown("a 5\nb\nc 1.7 s\n", "a 5\n…\nc 9.9 s\n", tmp_path)
    assert not is_shown("a 5\nb\nc\n", "a 6\n…\nc\n", tmp_path)
    assert not is_shown("a\nb\nc\n", "a\nc\n", tmp_path)
    assert not is_shown("a\nb\n", "a\n", tmp_path)


def test_commands_of_the_first_run_print_what_it_shows(tmp_path):
    assert run_page(FIRST, tmp_path) >= 5


@pytest.mark.deep
def test_commands_and_python_run_in_the_order_of_the_pages(tmp_path):
    assert run_page(FIRST, tmp_path) >= 5
    assert sum(run_page(page, tmp_path) for page in PAGES) >= 20


def test_the_hierarchy_file_that_is_shown_is_the_one_that_is_written():
    page = (ROOT / "docs" / "how-to" / "csv.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (\S+;\S+)$", page, flags=re.MULTILINE)
    assert shown == re.findall(r"'([\w-]+;\w+)'", page) and len(shown) == 8


@pytest.mark.deep
def test_the_picture_of_before_and_after_is_that_of_the_first_run(first_run):
    """Each row of the first table is one of a kind in the source; as many rows of the release look like the second."""
    tables = re.findall(r"(?:^\|.*\|\n)+", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    before, after = ([[c.strip() for c in r.strip("|\n").split("|")] for r in t.splitlines()] for t in tables[:2])
    (head, _, *persons), (also, _, *classes) = before, after
    assert also == ["rows", *head] and len(persons) == sum(int(c[0]) for c in classes) >= 5

    def count(database: str, table: str, columns: list[str], values: list[str]) -> int:
        with duckdb.connect(str(first_run / database), read_only=True) as connection:
            where = " AND ".join(f'CAST("{c}" AS VARCHAR) = ?' for c in columns)
            return connection.execute(f"SELECT COUNT(*) FROM {table} WHERE {where}", values).fetchall()[0][0]

    for person in persons:
        assert count("demo.duckdb", "main.adult", head[:-1], person[:-1]) == 1
        assert count("demo.duckdb", "main.adult", head, person) == 1
    for number, *values in classes:
        assert count("demo_release.duckdb", "release.census", head, values) >= int(number)
        assert sum(person[-1] == values[-1] for person in persons) == int(number)


def test_the_job_is_valid_and_its_hierarchies_open():
    (text,) = (text for _, kind, text in blocks(JOB_FILE) if kind == "toml")
    job = sqldeid.Job.parse(tomllib.loads(text))
    for column in job.tables["people"].every_column.values():
        if column.hierarchy is not None:
            spec = column.hierarchy if isinstance(column.hierarchy, str) else column.hierarchy.to_mapping()
            assert open_source(spec, ROOT).height >= 2


def test_first_lines_are_make_targets_and_the_demo_runs(tmp_path):
    texts = [page.read_text(encoding="utf-8") for page in (README, FIRST, *PAGES)]
    targets = re.findall(r"^    make (\w+)", "".join(texts), flags=re.MULTILINE)
    assert targets[:2] == ["demo", "test"]
    if not (ROOT / "Makefile").exists():
        pytest.skip("not applicable: no Makefile beside the tests")
    (tmp_path / "demo").mkdir()
    for target in targets:
        printed = execute(["make", "-n", "-C", str(ROOT), target], tmp_path)
        for line in printed.splitlines():
            if line.startswith(".venv/bin/sqldeid"):
                execute(["bash", "-c", line.replace(".venv/bin/", "")], tmp_path)
    assert (tmp_path / "demo" / "result.json").exists()


@pytest.mark.parametrize("page", [README, ROOT / "CHANGELOG.md", FIRST, *PAGES], ids=lambda p: p.stem)
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:examples|tests|sqldeid|hierarchies|docs)/[\w./-]+)`", page.read_text(encoding="utf-8"))
    for path in named:
        assert (ROOT / path).exists(), path
