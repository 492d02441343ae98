"""The pages under docs/ are there, and what the code cites of docs/design stands in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.places import ROOT

DESIGN = ROOT / "docs" / "design"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*DOCS, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
CITED = re.compile(
    r"\b([a-z]+)\.md(?:,? §?(\d+(?:\.\d+)?)((?:(?:,| and) \d+)*)"
    r"|, (?:\*([^*]+)\*|([A-Z\[a-z][\w. \]]*?)(?= -#| \(|[;:,\n])))?"
)
FILES = (p for folder in ("sqldeid", "sql") for p in (ROOT / folder).rglob("*") if "__pycache__" not in p.parts)
CODE = sorted(p for p in FILES if p.suffix in (".py", ".jinja"))


def links(page: Path) -> list[tuple[str, str]]:
    """Target and anchor of each link; either may be empty."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text)


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as web hosts and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in heads)
    return {re.sub(r"[^\w\- ]", "", head).lower().replace(" ", "-") for head in plain}


def dead(page: Path) -> list[str]:
    """Links of a page to no file, or to no heading of a page."""
    found = []
    for target, anchor in links(page):
        path = page.parent / target if target else page
        if "://" in target or target.startswith("mailto:"):
            continue
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            found.append(f"{target}#{anchor}")
    return found


def citations() -> list[tuple[str, str, str]]:
    """File, page and place of each citation in the code; the place is a number, a section, or empty."""
    found = []
    for path in CODE:
        text = re.sub(r" *\n +(?=\d)", " ", path.read_text(encoding="utf-8"))
        for page, number, more, emphasised, plain in CITED.findall(text):
            if not (DESIGN / f"{page}.md").exists() and any(p.stem == page for p in DOCS):
                continue
            places = [number, *re.findall(r"\d+", more)] if number else [emphasised or plain]
            found += [(path.relative_to(ROOT).as_posix(), page, place) for place in places]
    return found


def stands(text: str, place: str) -> bool:
    """Whether a numbered point, a numbered section, a heading or what begins a point in bold type is in a page."""
    begins = rf"(#+ {re.escape(place)}\b|{re.escape(place)}\. |.*\*\*{re.escape(place)}\*\*)"
    return re.search(f"^{begins}", text, re.MULTILINE | re.IGNORECASE) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert dead(page) == []


def test_a_dead_link_or_anchor_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# What `k` is & does\n[a](none.md) [b](#what-k-is--does) [c](page.md#nothing) [d](https://e.org)\n"
    )
    assert dead(page) == ["none.md#", "page.md#nothing"]


def test_what_the_code_cites_is_there() -> None:
    cited = citations()
    assert len(cited) > 200
    pages = {p.stem: p.read_text(encoding="utf-8") for p in DESIGN.glob("*.md")}
    assert [c for c in cited if c[1] not in pages] == []
    assert [c for c in cited if c[2] and not stands(pages[c[1]], c[2])] == []


def test_a_citation_of_what_is_not_there_is_seen() -> None:
    text = (DESIGN / "soundness.md").read_text(encoding="utf-8")
    assert stands(text, "26") and not stands(text, "27") and not stands(text, "Publishing")
    assert CITED.findall("soundness.md 6, 18 and 19; engines.md, *Opening DuckDB*.") == [
        ("soundness", "6", ", 18 and 19", "", ""),
        ("engines", "", "", "Opening DuckDB", ""),
    ]


def test_the_glossary_is_in_order_and_led_to() -> None:
    """Each word is led to from a page that uses it, but for those that stand for themselves."""
    glossary = ROOT / "docs" / "reference" / "glossary.md"
    words = re.findall(r"^## (.+)$", glossary.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert words == sorted(words, key=str.lower) and len(words) > 30
    led = {
        anchor for page in DOCS if page != glossary for target, anchor in links(page) if target.endswith("glossary.md")
    }
    assert {"class", "level", "node", "suppression", "hierarchy", "role", "quasi-identifying", "lattice"} <= led


def test_a_figure_of_an_answer_stands_on_a_page_that_it_leads_to() -> None:
    """What the questions' page says in numbers is copied, so it is held to where it was measured."""
    page = ROOT / "docs" / "explanation" / "faq.md"
    held = 0
    for answer in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        targets = re.findall(r"\]\(([^)#\s]+)", answer)
        assert targets, answer
        told = "".join((page.parent / target).read_text(encoding="utf-8") for target in targets)
        prose = re.sub(r"\]\([^)]*\)|^\d\. ", "", answer, flags=re.MULTILINE)
        for figure in re.findall(r"\d[\d,.]*\d|\d", prose):
            assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d|[.,]\d)", told), f"{figure} in: {answer[:60]}"
            held += 1
    assert held > 15
