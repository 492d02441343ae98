"""A report holds what a committee asks and nothing that it must not: canaries, escaping, and a browser that looks."""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.report.page import public_page, report_page
from sqldeid.report.words import FEW, binned, few, levels_shown, odds

if TYPE_CHECKING:
    from playwright.sync_api import Page

QI = "quasi-identifying"
ALERT = "<script>alert(1)</script>"
ROWS = 6_000
SOURCE = f"""CREATE TABLE "{ALERT}" AS
    SELECT 'PERSONKEY' || i AS person, 'CANARYNAME' || i AS name, 'CANARYNOTE' || i AS note,
           CASE WHEN i % 1500 = 7 THEN 'CANARYRARE' || i WHEN i % 3 = 0 THEN 'common {ALERT}'
                ELSE 'frequent' END AS city,
           CAST(20 + HASH(i) % 60 AS INTEGER) AS age, CASE WHEN HASH(i + 1) % 2 = 0 THEN 'f' ELSE 'm' END AS sex,
           'ill' || HASH(i * 7) % 5 AS "{ALERT}"
    FROM RANGE({ROWS}) AS r(i)"""


def job(folder: Path, **more: Any) -> sqldeid.Job:
    return sqldeid.Job.parse(
        {
            "release": {"into": "out.duckdb"},
            "tables": {
                ALERT.replace("/", "|"): {
                    "source": f'"{ALERT}"',
                    "person": "person",
                    "columns": {
                        "name": {"role": "identifying"},
                        "note": {"role": "free-text"},
                        "city": {"role": QI, "hierarchy": {"keep_first": [2]}},
                        "age": {"role": QI, "hierarchy": {"bands": [5, 10, 30]}},
                        "sex": {"role": QI, "hierarchy": {"suppress": True}},
                        ALERT: {"role": "sensitive"},
                    },
                    "privacy": {"k": 5, "suppression_limit": 0.01, "l_diversity": {"column": ALERT, "l": 2}, **more},
                }
            },
        },
        folder=folder,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[sqldeid.Result, str]:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "source.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SOURCE)
    result = sqldeid.anonymize(job(folder), path, options=sqldeid.Options(explain=True))
    return result, result.to_html()


def text_of(page: str) -> str:
    """What stands in a page beside the charts' library."""
    head, _, rest = page.partition("<script>")
    return head + rest.partition("</script>")[2]


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
    sizes = [(1, 4), (2, 30), (7, 1), (300, 2)]
    assert binned(sizes) == [("1 to 4", 64), ("5 to 24", 7), ("25 to 99", 0), ("100 or more", 600)] or all(
        rows == 0 or rows >= FEW for _, rows in binned(sizes)
    )
    assert all(rows == 0 or rows >= FEW for _, rows in binned([(1, 3), (50, 9), (400, 1)]))
    assert sum(rows for _, rows in binned(sizes)) == sum(s * n for s, n in sizes)
    assert binned([]) == [(label, 0) for label, _ in binned([])]
    assert (few(0), few(3), few(11)) == ("0", "fewer than 11", "11")
    assert (odds(0), odds(1), odds(0.2)) == ("none", "certain", "1 in 5 (20 %)")


def test_a_node_is_told_by_what_values_become() -> None:
    columns = {"age": {"example": ["34", "30-39", "*"]}, "sex": {"example": None}}
    shown = levels_shown({"age": 1, "sex": 1, "city": 0}, columns)
    assert shown == "age 1 (34 as 30-39), sex 1, city 0 (as it is)"
    assert levels_shown(None, {}) == ""


@pytest.fixture(scope="module")
def browser_page() -> Iterator[Page]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium: not installed (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(
            executable_path=chromium, args=[*quiet, "--disable-component-update", "--disable-sync"]
        )
        yield browser.new_page()
        browser.close()


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
    assert page.locator("section h3").count() == 6
    traded = page.locator('.js-plotly-plot[id^="tradeoff"]')
    point = traded.locator(".scatterlayer .trace .point").first
    point.scroll_into_view_if_needed()
    point.hover(force=True)
    page.wait_for_selector('[id^="tradeoff"] .hoverlayer .hovertext')
    assert "suppressed" in (traded.locator(".hoverlayer").text_content() or "")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
