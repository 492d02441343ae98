"""Reports of series and events: every question answered, nothing of the source in them, and a browser that looks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from markupsafe import escape

import sqldeid
from sqldeid.report.events import gap_bars, span
from sqldeid.report.interactive import PAPER_PX
from sqldeid.report.page import public_page, report_page
from sqldeid.report.words import FEW
from tests.support.pages import ALERT, browser_page, text_of
from tests.support.report_kinds import MINUTE, PERSON, events, series

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["browser_page"]

SERIES = [
    "In short",
    "What protects the people in it?",
    "What was cut to make lengths common?",
    "Were the targets met?",
    "Disagreement, before and after",
    "Who is singled out, by whom?",
    "What was lost?",
    "What is it still good for?",
]
EVENTS = [
    "In short",
    "What protects the people in it?",
    "What was spent of the privacy budget?",
    "What was kept, and what was lost?",
    "What do attackers find?",
    "How was it made?",
]


@pytest.fixture(scope="module", params=["projection", "shared", "ratio", "laplace"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, str]:
    """Kind or method, the result as JSON has it, and its page."""
    method = request.param
    folder = tmp_path_factory.mktemp("kinds")
    result = series(method) if method in ("projection", "shared") else events(method, folder)
    again = json.loads(json.dumps(result.to_dict(), default=str))
    page = result.to_html()
    assert report_page(again) == page and len(page.encode()) < 6_000_000
    assert public_page(result.to_public()) == public_page(again)
    return method, again, page


def release_of(tree: Mapping[str, Any]) -> Any:
    return next(iter(tree["releases"].values()))


@pytest.mark.sampled(1)
def test_every_question_has_its_section_in_order(made: tuple[str, Any, str]) -> None:
    method, _, page = made
    at = [page.find(f">{title}") for title in (SERIES if method in ("projection", "shared") else EVENTS)]
    assert -1 not in at and at == sorted(at)


@pytest.mark.sampled(2)
def test_nothing_of_a_person_stands_in_it(made: tuple[str, Any, str]) -> None:
    _, tree, page = made
    for written in (text_of(page), public_page(tree)):
        assert str(PERSON)[:5] not in written and str(MINUTE)[:5] not in written
        assert "<script>alert" not in written and "alert(1)" in written


@pytest.mark.sampled(1)
def test_few_people_of_the_source_are_not_counted_exactly(made: tuple[str, Any, str]) -> None:
    method, tree, page = made
    release = release_of(tree)
    if method in ("projection", "shared"):
        assert 0 < release["durations"]["before"]["alone"] < FEW
        assert f"fewer than {FEW}" in page
    else:
        assert release["source"]["most"] and "longest" not in page


def test_it_says_whether_it_is_safe_and_what_is_the_worst(made: tuple[str, Any, str]) -> None:
    method, tree, page = made
    release = release_of(tree)
    assert "Is it safe to publish?" in page and "Worst risk" in page and "Cannot be studied any more" in page
    if method == "ratio":
        assert "this is not differential privacy" in page
    if method == "laplace":
        assert "(differential privacy) for each subject_id" in page
    if method in ("ratio", "laplace"):
        assert "An AUC near .5 is no evidence of privacy" in page
        assert release["guarantee"]["differentially_private"] == (method == "laplace")


@pytest.mark.sampled(1)
def test_long_gaps_are_told_in_hours(made: tuple[str, Any, str]) -> None:
    _, tree, _ = made
    changed = deepcopy(tree)
    release_of(changed)["gaps"] = {"threshold_hours": 16800.0, "rule": "given by the job"}
    if release_of(tree)["kind"] == "events":
        assert "for more than 16,800 hours (given by the job)" in report_page(changed)


def test_the_public_page_has_the_promise_and_no_figure_of_the_source(made: tuple[str, Any, str]) -> None:
    method, tree, _ = made
    release, public = release_of(tree), public_page(tree)
    assert "What it does not protect" in public and "<script" not in public
    if method in ("projection", "shared"):
        hidden = [f"{release['records']:,}", "singled out", "shortened", "Distortion", "ROC"]
    else:
        hidden = [f"{release['source']['events']:,}", "AUC", "Similarity", "path was seen"]
        assert (f"{release['ledger'][0]['sensitivity']}</td>" in public) if method == "laplace" else "ratio" in public
    assert not [word for word in hidden if word in public]


def test_the_public_page_has_a_codebook_of_every_released_column(made: tuple[str, Any, str]) -> None:
    """It had none for series and events: who received a release had to guess what `step` and `value` are."""
    method, tree, _ = made
    public, columns = public_page(tree), release_of(tree)["columns"]
    assert "Codebook" in public and "What values are there?" in public
    for name, column in columns.items():
        assert f">{name}</th>" in public and column["meaning"].replace("'", "&#39;") in public
    coded = [code["shown"] for column in columns.values() for code in column.get("codes", ())]
    assert coded and all(str(escape(word)) in public for word in coded)
    if method in ("projection", "shared"):
        assert "1 hour" in public and coded == [ALERT]
    for broken in ("type", "meaning"):
        changed = deepcopy(tree)
        del next(iter(release_of(changed)["columns"].values()))[broken]
        with pytest.raises(sqldeid.JobError, match=rf"columns\.\w+\.{broken}"):
            public_page(changed)


@pytest.mark.sampled(1)
def test_an_empty_value_is_named_on_the_public_page(made: tuple[str, Any, str]) -> None:
    """A state may be the empty text; its row was blank."""
    _, tree, _ = made
    changed = deepcopy(tree)
    for column in release_of(changed)["columns"].values():
        for code in column.get("codes", ()):
            code["shown"] = ""
    assert "(the empty text)" in public_page(changed)


def test_what_is_released_unchanged_is_named_on_both_pages(made: tuple[str, Any, str]) -> None:
    method, tree, page = made
    assert "released as they are" not in page
    if method in ("ratio", "laplace"):
        return
    name, release = next(iter(tree["releases"].items()))
    words = f"{release['guarantee']}, but for OPENLY, released unchanged"
    opened = {**tree, "releases": {name: {**release, "as_they_are": ["OPENLY"], "guarantee": words}}}
    assert "OPENLY are released as they are" in report_page(opened) and "OPENLY" in public_page(opened)


def test_gaps_are_told_in_bins_of_many() -> None:
    assert gap_bars({}) == [] and gap_bars({"0": FEW - 1}) == []
    found = gap_bars({"-3": 30, "-1": 20, "0": 20, "20": 4, "50": 1, "52": 40})
    assert [n for n, _ in found] == ["22 min to 1 h", "1 h to 2.7 h", "2.7 h to 50,000 days"]
    assert sum(share for _, share in found) == pytest.approx(1)
    rng = np.random.default_rng(4)
    for _ in range(200):
        counts = {str(b): int(rng.integers(1, 2 * FEW)) for b in rng.integers(-20, 60, 9)}
        told = [share * sum(counts.values()) for _, share in gap_bars(counts)]
        assert sum(told) == pytest.approx(sum(counts.values())) if told else sum(counts.values()) < FEW
        assert all(n > FEW - 0.5 for n in told)
    assert [span(h) for h in (0.02, 1, 20.08, 54.6, 8103)] == ["1.2 min", "1 h", "20 h", "2.3 days", "340 days"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("width", [375, 1440])
def test_a_browser_shows_it_without_an_error_or_a_request(
    made: tuple[str, Any, str], browser_page: Page, tmp_path: Path, width: int
) -> None:
    method, _, html = made
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    page, messages, requests = browser_page, list[str](), list[str]()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: (messages.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(file.as_uri(), timeout=120_000)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    assert not messages
    assert [r for r in requests if not r.startswith(("file:", "data:", "blob:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    titles = page.locator("section h3").all_text_contents()
    assert titles == (SERIES if method in ("projection", "shared") else EVENTS)
    assert page.locator("table:not(:has(caption))").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    widths = page.evaluate(
        "[...document.querySelectorAll('.main-svg')].map((svg) => Number(svg.getAttribute('width')))"
    )
    assert widths and set(widths) == {PAPER_PX}
