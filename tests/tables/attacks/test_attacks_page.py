"""The figures of docs/attacks.md are those of the demo, of recorded runs, and of the listed small tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sqldeid
from benchmarks import blunted
from sqldeid.demo import adult
from sqldeid.job import Job
from tests.support.cli import run
from tests.support.downcoded import by_k, full_domain, local
from tests.support.places import ROOT
from tests.tables.attacks.test_downcoding import COUNTED

pytestmark = pytest.mark.usefixtures("control_groups")

PAGE = (ROOT / "docs" / "attacks.md").read_text()
DEMOS = [
    ("adult", "", 1),
    pytest.param("adult", 'method = "local"', 2, marks=pytest.mark.deep),
    ("mimic", "", 3),
]
"""Demo, what is added below its search, and its column of the page's table."""


def cell(row: str, column: int) -> str:
    """A cell of the row that has these words."""
    [line] = [line for line in PAGE.splitlines() if line.startswith("|") and row in line]
    return line.split("|")[2 + column].strip()


@pytest.mark.deep
@pytest.mark.parametrize(("demo", "search", "column"), DEMOS)
def test_the_page_has_the_demo_s_figures(
    demo: str, search: str, column: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "demo", demo, str(tmp_path / "db.duckdb"))
    path = tmp_path / "db.job.toml"
    path.write_text(re.sub(r"(\[tables\.\w+\.search\]\n)", rf"\1{search}\n", path.read_text()))
    result = sqldeid.anonymize(Job.load(path), tmp_path / "db.duckdb")
    [release] = result.releases.values()
    found: dict[str, Any] = release.attacks.to_dict()
    told = found["downcoding"]
    assert cell("finer counts certain, of the rows", column) == f"{100 * told['rows']['value']:.2g} %"
    assert cell("of coarse cells", column) == f"{100 * told['present']['value']:.2g} %"
    assert cell("| bits a row", column).split(" (")[0] == f"{told['bits']['value']:.2g}"
    risk = re.search(r"risk (.*)$", release.attacks.singling_out.said)
    assert risk is not None and cell("singling out (with", column) == risk[1]
    share = re.search(r"; (\S+ %) of the rows are in a class with one value", f"; {release.attacks.disclosure.said}")
    assert share is not None and cell("homogeneity", column) == share[1]


def test_the_price_of_blunting_is_that_of_the_recorded_runs() -> None:
    losses = blunted.recorded()
    assert blunted.on_page(PAGE) == blunted.table(losses), "python -m benchmarks.blunted prints the table"
    assert {key: len(of) for key, of in losses.items()} == {
        (kind, a): runs if a else 1 for kind, runs in blunted.RUNS.items() for a in blunted.AMOUNTS
    }


@pytest.mark.deep
def test_the_recorded_runs_are_of_this_program(tmp_path: Path) -> None:
    """What draws nothing is the same again."""
    text = adult(tmp_path / "db.duckdb").jobs[0].read_text(encoding="utf-8")
    assert [blunted.loss(text, "a node", 0.0, tmp_path / "db.duckdb")] == pytest.approx(
        blunted.recorded()["a node", 0.0], abs=1e-6
    )


def test_means_stand_with_student_s_intervals() -> None:
    assert blunted.cell([0.1, 0.2, 0.3]) == "0.200 (-0.048 to 0.448)"  # 4.303 * 0.1 / sqrt(3)
    assert blunted.cell([0.5, None]) == "0.500; 1 of 2 none" and blunted.cell([None]) == "no release in 1"


def test_what_is_found_in_small_tables_is_what_the_page_says() -> None:
    """`COUNTED` is compared with the enumeration of all sources; the page tells of its worst cases."""
    node = [(exact, present) for made, _, exact, present in COUNTED if made is full_domain]
    assert all(found == there for pair in node for found, there in pair)
    assert "\n- of a node: all;\n" in PAGE
    alone = [present for made, _, _, present in COUNTED if made is by_k]
    found, there = min(alone, key=lambda e: e[0] / e[1])
    assert f"by k alone, of which other criteria suppressed rows: a part ({found} of {there} in the worst case)" in PAGE
    rest = [(asked, exact, present) for made, asked, exact, present in COUNTED if made is local]
    [(found, there)] = [present for *_, present in rest if present[0] < present[1]]
    assert f"(all but {there - found} of {there} in one case)" in PAGE
    some = [exact for _, exact, _ in rest if exact[0]]
    found, there = min(some, key=lambda e: e[0] / e[1])
    [none] = [(asked.k, exact) for asked, exact, _ in rest if exact[1] and not exact[0]]
    assert f"({found} of {there} in the worst case that has any, 0 of {none[1][1]} where k is {none[0]})" in PAGE
