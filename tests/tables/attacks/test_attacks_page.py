"""The figures of docs/attacks.md are those of the demo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sqldeid
from sqldeid.job import Job
from tests.support.cli import run
from tests.support.places import ROOT

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
