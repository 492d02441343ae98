"""Reports of the real data: Adult, and the MIMIC demo with stacks, in a browser at two widths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import sqldeid
from benchmarks.sources import Bench, Task
from tests.support.pages import browser_page
from tests.support.places import ROOT
from tests.support.studies import module_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["browser_page"]


def adult(data: Path, folder: Path) -> tuple[sqldeid.Job, Path]:
    bench = Bench(data, folder, quick=True)
    asked = Task("adult", attacks=True).job(bench)
    return sqldeid.Job.parse(asked, folder=folder), bench.database("adult", 0)


def mimic(data: Path, folder: Path) -> tuple[sqldeid.Job, Path]:
    study = module_of(ROOT / "examples" / "mimic_study" / "study.py")
    path = folder / "mimic.duckdb"
    study.load(data / "mimic3demo", path)
    (folder / "ola.toml").write_text((ROOT / "examples" / "mimic_study" / "ola.toml").read_text(encoding="utf-8"))
    return sqldeid.Job.load(folder / "ola.toml"), path


@pytest.fixture(scope="module", params=[adult, mimic], ids=["Adult", "MIMIC demo"])
def report(
    request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[sqldeid.Result, Path, Path]:
    folder = tmp_path_factory.mktemp("real")
    job, database = request.param(shared_data, folder)
    result = sqldeid.anonymize(job, database, options=sqldeid.Options(explain=True))
    file = folder / "report.html"
    file.write_text(result.to_html(), encoding="utf-8")
    return result, file, database


@pytest.mark.deep
@pytest.mark.parametrize("width", [375, 1440])
def test_a_browser_shows_the_report(report: tuple[sqldeid.Result, Path, Path], browser_page: Page, width: int) -> None:
    _, file, _ = report
    messages = list[str]()
    browser_page.on("console", lambda message: messages.append(message.text))
    browser_page.on("pageerror", lambda error: messages.append(str(error)))
    browser_page.set_viewport_size({"width": width, "height": 900})
    browser_page.goto(file.as_uri(), timeout=120_000)
    browser_page.wait_for_selector(".js-plotly-plot .main-svg")
    assert not messages
    assert browser_page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser_page.locator("section h3").count() == 7


@pytest.mark.deep
def test_what_is_shown_of_the_source_is_no_small_class(report: tuple[sqldeid.Result, Path, Path]) -> None:
    """Values in the table of suppression are at least k rows of the source; there is no key of a person."""
    result, file, database = report
    name, release = next(iter(result.tables.items()))
    page = file.read_text(encoding="utf-8")
    text = page.partition("<script>")[0] + page.rpartition("</script>")[2]
    with duckdb.connect(str(database), read_only=True) as connection:
        if name == "adult":
            kept = [c for c, level in release.node.items() if level == 0 and c in release.suppression_by]
            assert kept
            for c in kept:
                rows = connection.execute(f'SELECT CAST("{c}" AS VARCHAR), COUNT(*) FROM adult GROUP BY 1').fetchall()
                counted = dict(rows)
                shown = [v for v in release.suppression_by[c] if not v.startswith("(values of fewer")]
                assert shown and all(counted[v] >= release.criteria[0].asked for v in shown)
        else:
            keys = {str(k) for (k,) in connection.execute("SELECT subject_id FROM mimiciii.patients").fetchall()}
            assert len(keys) == 100 and not [k for k in keys if k in text]
