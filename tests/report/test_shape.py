"""What a page looks like: contents, key figures, charts with words, no missing spaces, nothing wider than a phone."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import sqldeid
from sqldeid.evidence import Given, make
from sqldeid.report.interactive import alternative, bars, line, lines
from sqldeid.report.page import report_page
from sqldeid.report.tradeoff import chosen_of, tradeoff_page
from tests.support.pages import ALERT, browser_page, made

__all__ = ["browser_page", "made"]

CLIPPED = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
RIGHT = "Math.max(...[...document.querySelectorAll('main p, main li')].map(e => e.getBoundingClientRect().right))"


def words_of(page: str) -> str:
    """What is read: tags inside a line are nothing, others part words."""
    text = re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.DOTALL)
    text = re.sub(r"</?(strong|span|code|a)\b[^>]*>", "", text)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_sentences_have_a_space_between_them(made: tuple[sqldeid.Result, str]) -> None:
    result, page = made
    pages = [page, tradeoff_page({n: t.tradeoff for n, t in result.tables.items() if t.tradeoff is not None})]
    for written in pages:
        words = words_of(written)
        assert not re.findall(r"[a-z)%][.!?](?=[A-Z0-9≤])(?!toml|duckdb)", words), words
    name, release = next(iter(result.tables.items()))
    linked = replace(release, followed={"series": "s", "smallest": 5, "lost_of_table": 2_277}, pseudonymised=("x",))
    words = words_of(report_page(replace(result, releases={name: linked}).to_dict()))
    assert " 2,277 more are left out" in words and "levels. ≤ marks" in words and "anonymous. It numbers" in words


@pytest.mark.deep
def test_contents_and_key_figures_stand_first(made: tuple[sqldeid.Result, str]) -> None:
    _, page = made
    links = re.findall(r'<a href="#([^"]+)"', page.split("</nav>")[0])
    ids = set(re.findall(r' id="([^"]+)"', page))
    assert len(links) > 9 and set(links[1:]) <= ids
    body = page.split("</nav>")[1]
    assert body.index("Key figures") < body.index("What was released, and from what?")
    for figure in ("Smallest class", "Released", "Left out", "Worst risk", "Information lost", "Warnings"):
        assert f"<dt>{figure}</dt>" in body


def test_every_chart_has_words(made: tuple[sqldeid.Result, str]) -> None:
    _, page = made
    told = re.findall(r'<div class="chart" role="img" aria-label="([^"]+)"', page)
    assert len(told) == page.count("<figure>") == 4
    assert any("rows left out" in words and "city: " in words for words in told)
    assert ALERT not in "".join(told)
    figure = bars(["a", "b<c"], [("one", [1.0, 2.5])], across="x", up="y (%)", lying=True, mark=2)
    assert alternative(figure) == "Bar chart of y (%). one: a: 1, b<c: 2.5."
    found = alternative(lines([line("k = 5", [0, 1], [0.5, None], [[""], [""]])], across="limit", up="loss"))
    assert found == "Line chart of loss by limit. k = 5: 0: 0.5."


def test_one_pair_is_this_release(made: tuple[sqldeid.Result, str]) -> None:
    result, page = made
    assert page.count("(this release)") == 1
    release = next(iter(result.tables.values()))
    assert release.tradeoff is not None and release.suppression_limit == 0.01
    at = chosen_of(release.tradeoff, release.node, 5, release.suppression_limit)
    assert at is not None and release.tradeoff.points[at].suppression_limit == 0.01
    assert chosen_of(release.tradeoff, release.node, 5, None) is not None
    assert chosen_of(release.tradeoff, {"x": 1}, 5, None) is None


def test_checks_are_not_called_nodes(made: tuple[sqldeid.Result, str]) -> None:
    words = words_of(made[1])
    assert "A check counts a node for one k;" in words and "nodes were counted" not in words


@pytest.mark.deep
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_fills_a_screen(
    made: tuple[sqldeid.Result, str], browser_page, tmp_path: Path, scheme: str
) -> None:
    file = tmp_path / "report.html"
    file.write_text(made[1], encoding="utf-8")
    page = browser_page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 375, "height": 900})
    page.goto(file.as_uri(), timeout=120_000)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    assert page.evaluate(CLIPPED) == 0
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate(CLIPPED) == 0 and page.evaluate(RIGHT) > 0.8 * 1440


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["tradeoff", "evidence"])
def test_a_page_without_contents_fills_a_screen(
    made: tuple[sqldeid.Result, str], browser_page, tmp_path: Path, kind: str
) -> None:
    """Its text stood in the narrow column that the contents have elsewhere."""
    result, _ = made
    if kind == "tradeoff":
        written = tradeoff_page({n: t.tradeoff for n, t in result.tables.items() if t.tradeoff is not None})
    else:
        (tmp_path / "result.json").write_text(json.dumps(result.to_dict(), default=str))
        with zipfile.ZipFile(io.BytesIO(make(tmp_path / "result.json", Given()).archive)) as opened:
            written = opened.read("evidence.html").decode()
    assert "<nav" not in written
    (tmp_path / "page.html").write_text(written, encoding="utf-8")
    browser_page.set_viewport_size({"width": 1440, "height": 900})
    browser_page.goto((tmp_path / "page.html").as_uri(), timeout=120_000)
    assert browser_page.evaluate(RIGHT) > 0.6 * 1440


def test_warnings_about_the_job_are_counted_too(made: tuple[sqldeid.Result, str]) -> None:
    result, page = made
    own = len(next(iter(result.tables.values())).warnings)
    assert "about the job" not in words_of(page)
    warned = words_of(report_page(result.to_dict() | {"warnings": ["one", "two"]}))
    assert f"Warnings {own + 2} read them first, 2 about the job" in warned


def test_a_key_figure_is_not_parted_from_its_unit(made: tuple[sqldeid.Result, str]) -> None:
    assert re.search(r"<dt>Worst risk</dt><dd>1 in \d+ \([\d.]+\u00a0%\)</dd>", made[1])


@pytest.mark.deep
def test_a_legend_is_not_cut_on_paper(made: tuple[sqldeid.Result, str], browser_page, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(made[1], encoding="utf-8")
    page = browser_page
    page.set_viewport_size({"width": 1000, "height": 900})
    page.goto(file.as_uri(), timeout=120_000)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(500)
    out = page.evaluate(
        """[...document.querySelectorAll('.js-plotly-plot')].flatMap(chart => {
             const frame = chart.querySelector('.main-svg').getBoundingClientRect();
             return [...chart.querySelectorAll('.legend .traces')].map(e => e.getBoundingClientRect())
               .filter(r => r.right > frame.right + 1 || r.bottom > frame.bottom + 1 || r.top < frame.top - 1)
               .map(r => [r.left, r.top, r.right, r.bottom, frame.right, frame.bottom]); })"""
    )
    page.emulate_media(media="screen")
    assert out == []
