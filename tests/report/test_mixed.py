"""Reports of local recoding: shares of rows by level, loss and bound in words, and no small group told exactly."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sqldeid import anonymize
from sqldeid.errors import JobError
from sqldeid.report.mixed import mixed_sections
from sqldeid.report.page import public_page, report_page
from sqldeid.report.words import FEW
from tests.support.local_tables import ROWS, local_job, source
from tests.support.pages import text_of

SECTIONS = [
    "In short",
    "What protects the people in it?",
    "How risky was the source, how risky is the release?",
    "What was lost?",
    "How is it read?",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    """The result as JSON has it, and its page."""
    folder = tmp_path_factory.mktemp("mixed")
    result = anonymize(local_job(folder), source(folder / "source.duckdb"))
    again = json.loads(json.dumps(result.to_dict(), default=str))
    page = result.to_html()
    assert report_page(again) == page
    assert public_page(result.to_public()) == public_page(again)
    return again, page


def test_every_question_has_its_section_in_order(made: tuple[Any, str]) -> None:
    at = [made[1].find(f">{title}</h3>") for title in SECTIONS]
    assert -1 not in at and at == sorted(at)


def test_each_column_is_told_by_shares_of_rows(made: tuple[Any, str]) -> None:
    tree, page = made
    release = tree["releases"]["people"]
    lost = next(s for s in mixed_sections(release, "r1") if s.title == "What was lost?")
    [grid] = lost.grids
    told = {(row[0], int(row[1])): row[3] for row in grid.rows}
    few = 0
    for name, column in release["columns"].items():
        for level, part in enumerate(column.get("levels") or ()):
            rows = round(part * ROWS)
            shown = told.pop((name, level))
            if 0 < rows < FEW:
                few += 1
                assert shown == f"fewer than {FEW} rows"
            else:
                assert shown == ("none" if not rows else f"{100 * part:.0f} %")
    assert not told and few, "every level of every column has its row, and one of them is small"
    [words] = re.findall(r'aria-label="(Bar chart of released rows[^"]*)"', page)
    ages = release["columns"]["age"]["levels"]
    assert f"as in the source: age: {round(100 * ages[0])}" in words and "level 1: age:" in words


def test_loss_bound_and_gap_are_said_in_words(made: tuple[Any, str]) -> None:
    tree, page = made
    release, shown = tree["releases"]["people"], text_of(page)
    for part in (release["loss"]["loss"], release["bound"], release["gap"]):
        assert f"{100 * part:.3g} %" in shown
    assert "No release of this kind can lose less than" in shown and "for want of a better way" in shown
    stopped = {**release, "search": {**release["search"], "stopped": True}}
    assert "the time was over" in mixed_sections(stopped, "r1")[0].answers[-1]
    assert "nothing could be better" in mixed_sections({**release, "gap": 0.0}, "r1")[0].answers[-1]


def test_the_public_page_tells_how_it_is_read_and_counts_nobody(made: tuple[Any, str]) -> None:
    shown = text_of(public_page(made[0]))
    assert "cannot say" in shown and "not released" in shown and "original, 5, 10, hidden" in shown
    assert "% of the information" not in shown and f"{ROWS}" not in shown and "The largest layers" not in shown


@pytest.mark.parametrize(
    ("where", "wrong", "said"),
    [
        (("bound",), "low", "bound"),
        (("columns", "age", "levels"), [0.5], "columns.age"),
        (("layers",), 7, "layers"),
        (("search", "stopped"), None, "search.stopped"),
    ],
)
def test_a_changed_result_is_refused_by_place(made: tuple[Any, str], where: Any, wrong: object, said: str) -> None:
    tree = json.loads(json.dumps(made[0]))
    part = tree["releases"]["people"]
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = wrong
    with pytest.raises(JobError, match=re.escape(f"releases.people.{said}")):
        report_page(tree)
