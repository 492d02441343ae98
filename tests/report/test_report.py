"""A report holds what a committee asks and nothing that it must not: canaries, escaping, and a browser that looks."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.report.page import public_page, report_page
from sqldeid.report.risks import size_bins
from sqldeid.report.words import FEW, binned, few, levels_shown, odds
from tests.support.pages import browser_page, made, text_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["browser_page", "made"]


def test_a_report_is_the_same_from_the_result_and_from_its_json(made: tuple[sqldeid.Result, str]) -> None:
    result, page = made
    again = json.loads(json.dumps(result.to_dict(), default=str))
    assert report_page(again) == page
    assert len(page.encode()) < 6_000_000


def test_no_value_that_must_not_leave_stands_in_a_report(made: tuple[sqldeid.Result, str]) -> None:
    result, page = made
    assert "frequent" in page
    for canary in ("CANARYNAME", "CANARYNOTE", "CANARYRARE", "PERSONKEY"):
        assert canary not in page and canary not in public_page(result.to_public())
    suppressed = next(iter(result.tables.values())).suppression_by["city"]
    assert not [value for value in suppressed if value.startswith("CANARY")]


def test_counts_and_examples_are_not_on_the_public_page(made: tuple[sqldeid.Result, str]) -> None:
    result, _ = made
    release = next(iter(result.tables.values()))
    for public in (public_page(result.to_public()), public_page(result.to_dict())):
        for number in (f"{release.rows:,}", f"{release.released:,}", f"{release.suppressed:,} of", "frequent →"):
            assert number not in public


def test_names_are_escaped_everywhere(made: tuple[sqldeid.Result, str]) -> None:
    result, page = made
    for written in (text_of(page), public_page(result.to_dict())):
        assert "alert(1)" in written
        assert "<script>alert" not in written
        assert "<script>alert" not in html.unescape(written.replace("&lt;script&gt;alert", ""))


def test_every_question_has_its_section_in_order(made: tuple[sqldeid.Result, str]) -> None:
    questions = (
        "What was released, and from what?",
        "In short",
        "What protects the people in it?",
        "How risky was the source, how risky is the release?",
        "What was lost?",
        "Whom does suppression hit?",
        "Why this one?",
        "How would it change with k and the limit?",
    )
    at = [made[1].find(question) for question in questions]
    assert -1 not in at and at == sorted(at)


def test_what_was_not_recorded_is_said_to_be_so(made: tuple[sqldeid.Result, str]) -> None:
    result, _ = made
    name, release = next(iter(result.tables.items()))
    plain = replace(result, releases={name: replace(release, tradeoff=None, uniqueness=(), neighbours=())})
    assert "Not recorded in this result" in report_page(plain.to_dict())
    with pytest.raises(JobError, match="not a result"):
        report_page({"releases": {"x": {}}})


def test_bins_hide_who_stands_alone() -> None:
    told = [(b.label, b.rows) for b in binned([(1, 4), (2, 30), (7, 1), (300, 2)])]
    assert told == [("1 to 4", 64), ("5 or more", 607)]
    assert (few(0), few(3), few(11)) == ("0", "fewer than 11", "11")
    assert (odds(0), odds(1), odds(0.2)) == ("none", "certain", "1 in 5 (20 %)")


@pytest.mark.parametrize("seed", range(60))
def test_bins_are_true_hide_the_few_and_begin_at_k(seed: int) -> None:
    random = np.random.default_rng(seed)
    k = [None, 2, 3, 4, 5, 7, 8, 10, 11, 12, 24, 60, 100, 150, 1000][seed % 15]
    least = 1 if seed % 2 else k or 1
    sizes = sorted({least + int(x): int(random.integers(1, 4)) for x in random.geometric(0.15, 6) - 1}.items())
    found = binned(sizes, k)
    assert found[0].low == 1 and found[-1].high is None
    assert all(b.low == a.high + 1 for a, b in pairwise(found) if a.high is not None)
    for b in found:
        assert b.rows == sum(s * n for s, n in sizes if b.low <= s and (b.high is None or s <= b.high))
        assert b.rows == 0 or b.rows >= FEW or b.rows == sum(s * n for s, n in sizes)
    if least == k:
        assert all(b.low >= k for b in found if b.rows)


def test_source_and_release_stand_each_in_bins_of_its_own() -> None:
    """2,996 of 3,000 are alone in the source: that nobody is must not be said."""
    risk = {"source": {"class_sizes": [(1, 2996), (2, 2)]}, "release": {"class_sizes": [(10, 1), (12, 70), (30, 60)]}}
    release = {"criteria": [{"name": "k-anonymity", "asked": 10}], "risk": risk}
    table = {label: (source, left) for label, source, left in size_bins(release)}
    assert table["1 or more"] == ("100.0 %", "–") and table["1"] == ("–", "0.0 %")
    assert table["10 to 24"] == ("–", "32.1 %") and "5 to 24" not in table
    same = {"criteria": [], "risk": {key: {"class_sizes": [(1, 50), (30, 5)]} for key in ("source", "release")}}
    assert all(source == left != "–" for _, source, left in size_bins(same))


def test_a_node_is_told_by_what_values_become() -> None:
    columns = {"age": {"example": ["34", "30-39", "*"]}, "sex": {"example": None}}
    shown = levels_shown({"age": 1, "sex": 1, "city": 0}, columns)
    assert shown == "age 1 (34 as 30-39), sex 1, city 0 (as it is)"
    assert levels_shown(None, {}) == ""


@pytest.mark.deep
@pytest.mark.parametrize("width", [375, 1440])
def test_a_browser_shows_it_without_an_error_or_a_request(
    made: tuple[sqldeid.Result, str], browser_page: Page, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "report.html"
    file.write_text(made[1], encoding="utf-8")
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
    assert page.locator("section h3").count() == 7
    traded = page.locator('.js-plotly-plot[id^="tradeoff"]')
    point = traded.locator(".scatterlayer .trace .point").first
    point.scroll_into_view_if_needed()
    point.hover(force=True)
    page.wait_for_selector('[id^="tradeoff"] .hoverlayer .hovertext')
    assert "suppressed" in (traded.locator(".hoverlayer").text_content() or "")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
