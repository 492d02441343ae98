"""Everybody can read the site and a report: contrast, headings, names, alternative texts, widths, keys."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.pages import browser_page, made
from tests.support.places import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from sqldeid import Result

__all__ = ["browser_page", "made"]

pytestmark = pytest.mark.deep

CHECK = (ROOT / "tests" / "support" / "accessible.js").read_text(encoding="utf-8").partition("\n() =>")
FINDINGS = "() =>" + CHECK[2]
WAYS = [(scheme, width) for scheme in ("light", "dark") for width in (375, 1440)]
EACH = 6
"""All pages are seen small and light; otherwise every sixth, which are of each part of the site."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    program = Path(sys.executable).with_name("mkdocs")
    command = [str(program), "build", "--strict", "--config-file", "docs/site/mkdocs.yml", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


def seen(page: Page, scheme: str, width: int, addresses: list[str]) -> Iterator[tuple[str, str]]:
    """Each page with each finding."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 900})
    for address in addresses:
        page.goto(address)
        for finding in page.evaluate(FINDINGS):
            yield address, finding


@pytest.mark.parametrize(("scheme", "width"), WAYS)
def test_everybody_can_read_the_site(site: Path, browser_page: Page, scheme: str, width: int) -> None:
    pages = [path.as_uri() for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    assert len(pages) > 60
    some = pages if (scheme, width) == ("light", 375) else pages[::EACH]
    assert list(seen(browser_page, scheme, width, some)) == []


@pytest.mark.parametrize(("scheme", "width"), WAYS)
def test_everybody_can_read_a_report(
    made: tuple[Result, str], browser_page: Page, tmp_path: Path, scheme: str, width: int
) -> None:
    (tmp_path / "report.html").write_text(made[1], encoding="utf-8")
    assert list(seen(browser_page, scheme, width, [(tmp_path / "report.html").as_uri()])) == []


def test_the_first_key_leads_past_the_navigation(site: Path, browser_page: Page) -> None:
    browser_page.goto((site / "index.html").as_uri())
    browser_page.keyboard.press("Tab")
    assert "md-skip" in browser_page.evaluate("document.activeElement.className").split()
    browser_page.wait_for_function("getComputedStyle(document.activeElement).opacity === '1'", timeout=5_000)


def test_what_nobody_can_read_is_found(browser_page: Page, tmp_path: Path) -> None:
    page = """<html><body style="width: 3000px"><article><h1>a</h1><h3>b</h3></article><img src="x.png">
        <button></button><p style="color: #999; background: #fff">faint</p></body></html>"""
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    found = [text for _, text in seen(browser_page, "light", 375, [(tmp_path / "page.html").as_uri()])]
    for part in ("no language", "H3 follows", "no alternative text", "nothing names <button>", "wide", "contrast 2.8"):
        assert any(part in text for text in found), part
