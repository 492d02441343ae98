"""Reports of local recoding: shares of rows by level, loss and bound in words, and no small group told exactly."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sqldeid import Asked, Options, anonymize, tradeoff
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.report.mixed import mixed_sections, public_mixed
from sqldeid.report.page import public_page, report_page
from sqldeid.report.words import FEW
from tests.support.local_tables import COLUMNS, ROWS, local_job, source, table
from tests.support.pages import text_of
from tests.support.sources import IDENTIFYING, SENSITIVE, qi

SECTIONS = [
    "In short",
    "What protects the people in it?",
    "How risky was the source, how risky is the release?",
    "What was lost?",
    "How is it read?",
    "How would it change with k and the limit?",
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


@pytest.mark.parametrize("method", ["local", "mondrian"])
@pytest.mark.parametrize("unit", ["person", "row"])
def test_what_k_counts_is_what_is_told(method: str, unit: str, tmp_path: Path) -> None:
    """Where no key tells persons, k and the worst risk are of rows, and whoever reads that is told so."""
    there = source(tmp_path / "source.duckdb")
    columns = {"age": qi({"median": "range"}), "illness": SENSITIVE} if method == "mondrian" else COLUMNS
    of = {"person": "id"} if unit == "person" else {"rows_are_persons": True}
    part = {**table(columns, search={"method": method}), **of}
    if unit == "row":
        part.pop("person")
    made = anonymize(Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": part}}, folder=tmp_path), there)
    assert made.to_dict()["releases"]["people"]["unit"] == unit
    short = unescape(made.to_html()).split("In short")[-1]
    persons = (
        "who knows a person's quasi-identifying values, and that the person is in the release",
        "which was checked",
    )
    rows = (
        "who knows the quasi-identifying values of a row, and that it is in the release",
        "k and every risk are of rows",
    )
    for said in persons if unit == "person" else rows:
        assert said in short, short[:1500]
    for said in rows if unit == "person" else (*persons, "a person's quasi-identifying values"):
        assert said not in short, said


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
    answers = mixed_sections(stopped, "r1")[0].answers
    assert "the time was over" in answers[-1] and not any("lowest levels" in said for said in answers)
    assert "each at the lowest levels that its neighbours allow" in shown and "`" not in shown
    assert "nothing could be better" in mixed_sections({**release, "gap": 0.0}, "r1")[0].answers[-1]


def test_the_public_page_tells_how_it_is_read_and_counts_nobody(made: tuple[Any, str]) -> None:
    shown = text_of(public_page(made[0]))
    assert "cannot say" in shown and "not released" in shown and "original, bands of 5, bands of 10, hidden" in shown
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


def test_other_k_and_limits_are_told_of_both_families(tmp_path: Path) -> None:
    """As `tradeoff` finds them; the release's own pair is the release, and nothing of it is on the public page."""
    there, job = source(tmp_path / "source.duckdb"), local_job(tmp_path, privacy={"k": 4, "suppression_limit": 0.02})
    result = anonymize(job, there, options=Options(explain=True))
    release = result.releases["people"]
    traded = release.tradeoff
    asked = Asked(tuple({p.k for p in traded.points}), tuple({p.suppression_limit for p in traded.points}))
    alone = tradeoff(job, there, asked)["people"]
    assert {4, 5} <= {p.k for p in traded.points} and {0.0, 0.02} <= {p.suppression_limit for p in traded.points}
    [own] = [p for p in traded.local if (p.k, p.suppression_limit) == (4, 0.02)]
    told = (own.loss, own.bound, own.suppressed, own.classes, own.layers)
    loss = release.loss["loss"]
    assert told == (loss, release.bound, release.suppressed, release.classes, len(release.layers))
    for found, wanted in zip(traded.local, alone.local, strict=True):
        assert not found.stopped and asdict(found) == pytest.approx({**asdict(wanted), "seconds": found.seconds})
    assert [(p.k, p.loss, p.node) for p in traded.points] == [(p.k, p.loss, p.node) for p in alone.points]
    tree = json.loads(json.dumps(result.to_dict(), default=str))
    [grid] = mixed_sections(tree["releases"]["people"], "r1")[-1].grids
    [shown] = [row for row in grid.rows if "this release" in row[0]]
    assert shown[:2] == ("4 (this release)", "2 %")
    assert shown[4] == f"{own.loss:.6g}" and shown[6] == f"{own.bound:.6g}"
    page = result.to_html()
    assert report_page(tree) == page and "k = 4, local" in page and "k = 4, full-domain" in page
    assert "tradeoff" not in result.to_public()["releases"]["people"]
    assert "k = 4, local" not in public_page(tree) and f"{own.loss:.6g}" not in public_page(tree)


def test_what_was_cut_short_is_marked(made: tuple[Any, str], tmp_path: Path) -> None:
    there = source(tmp_path / "source.duckdb")
    result = anonymize(local_job(tmp_path), there, options=Options(explain=True))
    tree = json.loads(json.dumps(result.to_dict(), default=str))
    release = tree["releases"]["people"]
    for point in release["tradeoff"]["local"]:
        point["stopped"] = True
    [grid] = mixed_sections(release, "r1")[-1].grids
    assert all(row[4].startswith("≤ ") or row[4] == "none" for row in grid.rows)
    held = {**release, "ledger": {"held_back": 0}}
    assert not any("this release" in row[0] for row in mixed_sections(held, "r1")[-1].grids[0].rows)
    by_k = {**release, "search": {**release["search"], "choose": "by-k"}}
    marked = [row[0] for row in mixed_sections(by_k, "r1")[-1].grids[0].rows if "this release" in row[0]]
    assert marked and all(first.endswith(" (this release, by k alone)") for first in marked)
    assert "Not recorded" in mixed_sections(made[0]["releases"]["people"], "r1")[-1].words[0]


def test_a_pseudonym_is_told_as_released(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    columns = {**COLUMNS, "id": {**IDENTIFYING, "pseudonym": True}, "alive": IDENTIFYING}
    there = source(tmp_path / "source.duckdb")
    result = anonymize(local_job(tmp_path, columns=columns), there, options=Options(key_file=tmp_path / "key"))
    [shown] = public_mixed(result.to_public()["releases"]["people"])[1].grids
    assert ("id", "identifying", "pseudonym") in shown.rows and ("alive", "identifying", "not released") in shown.rows
