"""The public page means something to whoever receives it, and names nothing that released rows do not show."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.hierarchy import open_source, shipped_leaves
from sqldeid.hierarchy.numbers import Edges
from sqldeid.report.codebook import codebook, coded, form, meaning
from sqldeid.report.page import public_page
from sqldeid.tables.write.codebook import code_of

QI = "quasi-identifying"
RARE = "CANARYLEAF"
BY_AGE = "SELECT id, age, CASE WHEN age < 35 THEN 1 ELSE id // 40 END AS ill FROM people"
"""People of whom the younger have one illness, so that their classes fail l-diversity whatever k is."""
WORK = ("Federal-gov", "Local-gov", "State-gov", "Self-emp-inc", "Self-emp-not-inc", "Never-worked", "Without-pay")
ABOUT = {"title": "Stays <2026>", "contact": "office@example.org", "date": "2026-01-31", "text": "One.\n\nTwo & three."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "db.duckdb")) as c:
        c.execute(
            f"""CREATE TABLE people AS SELECT i AS id, 20 + i % 40 AS age,
                CASE WHEN i = 7 THEN '{RARE}1' WHEN i % 2 = 0 THEN 'north' ELSE 'south' END AS place,
                CASE i % 3 WHEN 0 THEN 'Private' WHEN 1 THEN 'Local-gov' ELSE 'State-gov' END AS workclass,
                i % 5 AS ill, DATE '2020-01-01' + CAST(i % 9 AS INTEGER) AS seen FROM RANGE(400) AS r(i)"""
        )
    (tmp_path / "place.csv").write_text(f"north;land;*\nsouth;land;*\n{RARE}1;CANARYGROUP;*\nCANARYUNUSED;land;*\n")
    return tmp_path


def job(folder: Path, *, release: dict[str, Any] | None = None, about: Any = None, **table: Any) -> sqldeid.Job:
    asked = {
        "source": "people",
        "person": "id",
        "columns": {
            "age": {"role": QI, "hierarchy": {"bands": [10, 20]}},
            "place": {"role": QI, "hierarchy": "place.csv"},
            "workclass": {"role": QI, "hierarchy": "adult/workclass"},
            "ill": {"role": "sensitive"},
            "seen": {"role": "insensitive", "shift": "person"},
        },
        "privacy": {"k": 20, "suppression_limit": 0.05},
    } | table
    told = {"about": about} if about is not None else {}
    return sqldeid.Job.parse(
        {**told, "release": release or {"into": "out.duckdb"}, "tables": {"r": asked}}, folder=folder
    )


def test_what_a_job_says_of_itself_stands_first(folder: Path) -> None:
    result = sqldeid.anonymize(job(folder, about=ABOUT), folder / "db.duckdb")
    assert result.to_public()["about"] == ABOUT == result.to_dict()["about"]
    page = public_page(result.to_public())
    assert "<h1>Stays &lt;2026&gt;</h1>" in page and "<p>Two &amp; three.</p>" in page
    for words in ("office@example.org", "2026-01-31"):
        assert words in page.split("What protects")[1] or words in page
    assert "<h1>Stays &lt;2026&gt;</h1>" in public_page(result.to_dict())
    assert "Stays &lt;2026&gt;" in result.to_html()


@pytest.mark.parametrize(
    "about,key",
    [
        ({"title": ""}, "about.title"),
        ({"title": "a\nb"}, "about.title"),
        ({"date": "31.1.2026"}, "about.date"),
        ({"date": "2026-13-01"}, "about.date"),
        ({"date": 2026}, "about.date"),
        ({"author": "x"}, 'about: unknown key "author"'),
        ({"text": "a\x00b"}, "about.text"),
        ("x", "about"),
    ],
)
def test_what_it_may_not_say_is_refused_with_its_key(folder: Path, about: Any, key: str) -> None:
    with pytest.raises(JobError, match=key):
        job(folder, about=about)


def test_toml_dates_are_taken(folder: Path) -> None:
    made = job(folder)
    text = f"""[about]
date = 2026-01-31
[release]
into = "out.duckdb"
[tables.r]
source = "people"
person = "id"
[tables.r.columns]
age = {{ role = "{QI}", hierarchy = {{ suppress = true }} }}
[tables.r.privacy]
k = 5
"""
    (folder / "job.toml").write_text(text)
    assert sqldeid.Job.load(folder / "job.toml").about.date == "2026-01-31"
    assert made.about.date is None and len(made.sha256) == 64


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"release": {"into": "out", "as": "parquet"}},
        {"release": {"as": "view"}},
        {"privacy": {"k": 20, "suppression_limit": 0.05, "suppression": "blank"}},
    ],
)
def test_values_are_those_of_released_rows_and_leaves_those_of_the_program(folder: Path, more: dict[str, Any]) -> None:
    result = sqldeid.anonymize(job(folder, **more), folder / "db.duckdb", options=sqldeid.Options(explain=True))
    release = result.tables["r"]
    told = json.dumps(result.to_public())
    page = public_page(result.to_dict())
    for words in (told, page):
        assert "CANARY" not in words
    columns = release.columns
    assert columns["ill"].type == "BIGINT" and columns["seen"].type == "DATE"
    shown = {code.shown: code for code in columns["workclass"].codes or ()}
    assert release.node["workclass"] == 0 or {"Private", "Government"} <= shown.keys() | {"Workforce"}
    assert release.node["place"] == 0 or [c.stands_for for c in columns["place"].codes or ()] in ([()], [(), ()])
    assert "Codebook" in page and "one secret number of days" in page and "level 1" not in page


def test_each_form_of_a_label_has_words() -> None:
    labels = {
        "[30, 40)": "from 30 to below 40",
        "≥ 90": "90 or more",
        ">= 80": "80 or more",
        "> 89": "more than 89",
        "<= 3": "3 or less",
        "≥ 50 or missing": "50 or more, or no value (missing)",
        "< 50": "less than 50",
        "123**": "everything that begins with 123",
        "*": "any value: it is not told",
        "NULL": "no value (missing)",
        "300-316": "from 300 to 316",
        "460-519 respiratory system": "respiratory system: from 460 to 519",
        "north": "",
    }
    assert {label: form(label) for label in labels} == labels


def test_labels_of_dates_are_no_ranges() -> None:
    labels = {
        "2025-Q1": ("quarter 1 of 2025", ""),
        "2025-01": ("month 01 of 2025", ""),
        "2025": ("the year 2025", ""),
        "2020s": ("from 2020 on, ten years", ""),
        "2025-01-31": ("that day", ""),
        "NULL": ("no value (missing)", "no value (missing)"),
        "*": ("any value: it is not told", "any value: it is not told"),
    }
    assert {x: (form(x, "dates month, quarter, year"), form(x, "dates 2025.csv")) for x in labels} == labels
    ranges = ("A00-B99", "V01-V91", "001-139", "B99-A00", "V9-V1", "10-A1", "300-299")
    assert [form(x) != "" for x in ranges] == [True, True, True, False, False, False, False]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["frontier", "local"])
@pytest.mark.parametrize("units", [["month", "year"], ["quarter", "year"], ["year", "decade"]])
def test_a_release_by_the_rule_for_dates_is_explained(folder: Path, units: list[str], method: str) -> None:
    columns = {"seen": {"role": QI, "hierarchy": {"dates": units}}}
    source = {"query": "SELECT id, seen + CAST(id % 1200 AS INTEGER) AS seen FROM people"}
    search = {"method": method, "loss": "loss"}
    asked = job(folder, source=source, columns=columns, search=search)
    page = public_page(sqldeid.anonymize(asked, folder / "db.duckdb").to_public())
    assert {"month": "month 03 of 2020", "quarter": "quarter 2 of 2020", "year": "the year 2020"}[units[0]] in page
    assert "from 20" not in page and "A dash" not in page


def test_a_codebook_tells_each_columns_meaning() -> None:
    columns = {
        "age": {"role": QI, "level": 1, "height": 3, "level_name": "bands of 10", "type": "VARCHAR"},
        "sex": {"role": QI, "level": 1, "height": 2, "level_name": "*"},
        "race": {"role": QI, "level": 0, "height": 2, "level_name": "original"},
        "key": {"role": "identifying", "shown": "a pseudonym"},
        "name": {"role": "identifying"},
    }
    assert [c["name"] for c in codebook(columns)] == ["age", "sex", "race", "key"]
    assert meaning(columns["age"]) == "coarser than in the source: bands of 10"
    assert meaning(columns["sex"]) == "one value for everybody: it tells nothing"
    columns["sex"]["codes"] = [{"shown": "Gender"}]
    assert meaning(columns["sex"]) == "one value for everybody, “Gender”: it tells nothing"
    columns["age"] |= {"hierarchy": "bands 5, 20", "level_name": "20", "shown": "from 90 on one value"}
    columns["age"]["codes"] = [{"shown": "[20, 40)"}, {"shown": "≥ 80"}]
    assert meaning(columns["age"]).endswith("bands of 20; from 90 on one value, which stands in “≥ 80” now")
    columns["age"]["codes"] = [{"shown": s} for s in ("[10, 20)", "< 10", "[2, 9)")]
    assert [shown for shown, _ in coded(columns)[0]["codes"]] == ["< 10", "[2, 9)", "[10, 20)"]


def test_a_hierarchy_s_word_for_missing_values_stands_for_them() -> None:
    assert shipped_leaves("mimic3/marital_status", 1)["?"] == ("no value (missing)", "UNKNOWN (DEFAULT)")


def test_a_shipped_name_of_years_is_told_by_its_bounds() -> None:
    """A rule has no leaves of its own; its edges are known to everybody, and the names alone say no year."""
    told = {
        label: code_of(label, open_source("mimic3/dob_year", Path()), 1)
        for label in ("Silent generation", "Baby boomer", "Generation Z")
    }
    assert {label: (code.stands_for, code.of) for label, code in told.items()} == {
        "Silent generation": (("[0, 1951)",), 1),
        "Baby boomer": (("[1951, 1981)",), 1),
        "Generation Z": (("[2001, 3001)",), 1),
    }
    column = {"role": QI, "level": 1, "height": 3, "level_name": "level 1", "hierarchy": "mimic3/dob_year"}
    column["codes"] = [{"shown": c.shown, "stands_for": c.stands_for, "of": c.of} for c in told.values()]
    (shown,) = coded({"year_of_birth": column})
    assert ("Baby boomer", "from 1951 to below 1981") in shown["codes"]
    assert shipped_leaves("mimic3/dob_year", 2) == {} == shipped_leaves("age/5-10-20", 1)


def test_names_between_open_ends_are_told_by_their_bounds() -> None:
    cuts = (tuple(map(Decimal, ("18", "65"))), (Decimal("65"),))
    rule = Edges(cuts, tails=True, labels=(("child", "adult", "old"), ("not old", "old")))
    assert rule.ranges(0) == {"child": "< 18", "adult": "[18, 65)", "old": ">= 65"}
    assert rule.ranges(1) == {"not old": "< 65", "old": ">= 65"}
    assert rule.ranges(0, Decimal(65)) == {"child": "< 18", "adult": "[18, 65)", "old": ">= 65"}
    assert rule.ranges(0, Decimal("64.9")) == {"child": "< 18", "adult": ">= 18", "old": ">= 65"}
    assert rule.ranges(1, Decimal(17)) == {"not old": "*", "old": ">= 65"}
    closed = Edges((tuple(map(Decimal, ("0", "18", "65"))),), labels=(("child", "adult"),))
    assert closed.ranges(0, Decimal(17)) == {"child": ">= 0", "adult": "[18, 65)"}
    assert closed.ranges(0, Decimal(70)) == closed.ranges(0) == {"child": "[0, 18)", "adult": "[18, 65)"}


LABELLED = """edges = [[{0}, 50], [50]]
tails = true
labels = [["young", "middle", "old"], ["not old", "old"]]
"""


@pytest.mark.parametrize("method", ["frontier", "local"])
@pytest.mark.parametrize("top", [None, 45])
def test_names_between_a_user_s_edges_are_told_by_their_bounds(folder: Path, method: str, top: int | None) -> None:
    """A reader cannot guess them. Where numbers were cut at the top, the class that holds it has no upper bound."""
    (folder / "ages.toml").write_text(LABELLED.format(25), encoding="utf-8")
    columns = {"age": {"role": QI, "hierarchy": "ages.toml", **({} if top is None else {"top_code": top})}}
    asked = job(folder, columns=columns, search={"method": method}, privacy={"k": 40})
    result = sqldeid.anonymize(asked, folder / "db.duckdb")
    shown = result.to_public()["releases"]["r"]["columns"]["age"]["codes"]
    told = {code["shown"]: list(code["stands_for"]) for code in shown}
    wanted = {"young": ["< 25"], "middle": ["[25, 50)"], "old": [">= 50"], "not old": ["< 50"]}
    wanted |= {"middle": [">= 25"], "not old": ["*"]} if top is not None else {}
    assert {"young", "middle"} <= set(told) and told == {name: wanted[name] for name in told}
    page = public_page(result.to_public())
    assert "A dash: what such a value" not in page and "less than 25" in page
    assert ("from 25 to below 50" in page) == (top is None) and ("25 or more" in page) == (top is not None)


@pytest.mark.parametrize("edge", [25, 30])
def test_bounds_that_a_policy_does_not_keep_are_not_told(folder: Path, edge: int) -> None:
    """The file may say other edges under the same names by then: a row of 27 stays young or middle as it was."""
    (folder / "ages.toml").write_text(LABELLED.format(25), encoding="utf-8")
    asked = job(folder, columns={"age": {"role": QI, "hierarchy": "ages.toml"}}, privacy={"k": 40})
    first = sqldeid.anonymize(asked, folder / "db.duckdb")
    (folder / "ages.toml").write_text(LABELLED.format(edge), encoding="utf-8")
    again = sqldeid.Options(policy=first.to_dict(), replace=True)
    second = sqldeid.anonymize(asked, folder / "db.duckdb", options=again)
    before, after = (
        {code.shown: code.stands_for for code in made.tables["r"].columns["age"].codes or ()}
        for made in (first, second)
    )
    assert before["young"] == ("< 25",)
    assert after == (before if edge == 25 else dict.fromkeys(before, ()))


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_the_page_tells_the_limit_and_why_a_value_is_not_explained(folder: Path, method: str) -> None:
    """No leaf of the holder's own hierarchy is named, whatever the levels are; and the page says why."""
    columns = {"place": {"role": QI, "hierarchy": "place.csv"}, "age": {"role": QI, "hierarchy": {"bands": [10, 20]}}}
    search = {"method": method, **({"loss": "loss"} if method == "local" else {})}
    asked = job(folder, columns=columns, privacy={"k": 150, "suppression_limit": 0.05}, search=search)
    result = sqldeid.anonymize(asked, folder / "db.duckdb")
    again = json.loads(json.dumps(result.to_dict(), default=str))
    public = result.to_public()["releases"]["r"]
    assert public["suppression_limit"] == 0.05
    for page in (public_page(result.to_public()), public_page(again)):
        assert "at most 5 % of the rows fail what they are chosen by" in page and "CANARY" not in page
        shown = [code["shown"] for c in public["columns"].values() for code in c.get("codes") or ()]
        assert ("A dash: what such a value" in page) == ("land" in shown)
    released = duckdb.connect(str(folder / "out.duckdb")).sql("SELECT DISTINCT UNNEST([place, age]) FROM release.r")
    assert {*shown} <= {label for (label,) in released.fetchall()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["frontier", "local"])
@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_by_k_the_page_tells_both_limits_and_their_sum(folder: Path, method: str, limit: float) -> None:
    """A reader's bounds take the sum: criteria beyond k suppress rows besides."""
    columns = {"age": {"role": QI, "hierarchy": {"bands": [10, 20]}}, "ill": {"role": "sensitive"}}
    search = {"method": method, "loss": "loss", "choose": "by-k"}
    privacy = {"k": 2, "suppression_limit": limit, "l_diversity": {"column": "ill", "l": 3}, "criteria_limit": 0.95}
    asked = job(folder, columns=columns, privacy=privacy, search=search, source={"query": BY_AGE})
    result = sqldeid.anonymize(asked, folder / "db.duckdb")
    release = result.releases["r"]
    assert release.suppressed > limit * release.rows, "the first limit alone is none"
    public = result.to_public()["releases"]["r"]
    assert (public["suppression_limit"], public["criteria_limit"]) == (limit, 0.95)
    again = json.loads(json.dumps(result.to_dict(), default=str))
    for page in (public_page(result.to_public()), public_page(again)):
        assert f"at most {100 * limit:g} % of the rows fail it" in page and "at most 95 % of the rows are" in page
        assert ("criterion: 100 % in all" if limit else "criterion: no more") in page
    assert "the rows fail what they" not in page


@pytest.mark.parametrize("method", [{}, {"choose": "by-k"}])
def test_blanked_rows_are_told_of_where_they_stand_in_the_release(folder: Path, method: dict[str, str]) -> None:
    columns = {"age": {"role": QI, "hierarchy": {"suppress": True}}, "ill": {"role": "sensitive"}}
    privacy = {"k": 10, "suppression_limit": 0.9, "l_diversity": {"column": "ill", "l": 2}}
    privacy |= {"criteria_limit": 0.9} if method else {}
    query = "SELECT id, LEAST(age, 50) AS age, CASE WHEN age IN (33, 34) THEN age ELSE id // 40 END AS ill FROM people"
    pages, reports = [], []
    for kept in ("drop", "blank"):
        asked = job(
            folder,
            release={"into": f"{kept}.duckdb"},
            source={"query": query},
            columns=columns,
            search={"method": "frontier", **method},
            privacy={**privacy, "suppression": kept},
        )
        result = sqldeid.anonymize(asked, folder / "db.duckdb")
        release = result.tables["r"]
        assert release.suppressed == 20 and release.released == (400 if kept == "blank" else 380)
        public = result.to_public()
        assert public_page(public) == public_page(json.loads(json.dumps(result.to_dict(), default=str)))
        pages.append(public_page(public))
        reports.append(result.to_html())
    words_of = ("How many were is not told", "Suppressed rows are blanked", "in blanked rows its label")
    assert [[words in page for words in words_of] for page in pages] == [[True, False, False], [False, True, True]]
    words_of = (") are left out", "Share of rows left out", ") are blanked", "blanked ones among them")
    told = [[words in page for words in words_of] for page in reports]
    assert told == [[True, True, False, False], [False, False, True, True]]


@pytest.mark.parametrize("choose", ["by-k", "by-all"])
def test_the_trade_off_of_a_report_says_that_it_is_by_k_alone(folder: Path, choose: str) -> None:
    columns = {"age": {"role": QI, "hierarchy": {"bands": [10, 20]}}, "ill": {"role": "sensitive"}}
    search = {"choose": choose}
    privacy = {"k": 2, "suppression_limit": 0.05, "l_diversity": {"column": "ill", "l": 3}}
    privacy |= {"criteria_limit": 0.95} if choose == "by-k" else {}
    asked = job(folder, columns=columns, privacy=privacy, search=search, source={"query": BY_AGE})
    page = sqldeid.anonymize(asked, folder / "db.duckdb", options=sqldeid.Options(explain=True)).to_html()
    by_k = choose == "by-k"
    assert ("(this release, by k alone)" in page, "losses and suppressed rows are those of k alone" in page) == (
        by_k,
        by_k,
    )
    assert ("(this release)" in page) != by_k


@pytest.mark.parametrize("bands", [{"bands": [10, 20]}, "age/5-10-20"])
def test_what_was_cut_at_the_top_is_told_as_it_is_released(folder: Path, bands: Any) -> None:
    """Of 400 rows most are cut, so that the frequent value is that one; at level 0 it is text with its sign."""
    query = "SELECT id, CASE WHEN id % 4 = 0 THEN 20 ELSE 30 + id % 30 END AS age FROM people"
    columns = {"age": {"role": QI, "hierarchy": bands, "top_code": 30}}
    asked = job(folder, source={"query": query}, columns=columns, privacy={"k": 20})
    result = sqldeid.anonymize(asked, folder / "db.duckdb", options=sqldeid.Options(explain=True))
    column = result.tables["r"].columns["age"]
    released = duckdb.connect(str(folder / "out.duckdb")).sql("SELECT DISTINCT age FROM release.r").fetchall()
    assert column.level == 0 and {x for (x,) in released} == {"20", "≥ 30"}
    assert (column.example or ())[0] == "≥ 30" and "<strong>≥ 30</strong>" in result.to_html()
    for page in (public_page(result.to_public()), public_page(json.loads(json.dumps(result.to_dict(), default=str)))):
        assert "as in the source; from 30 on one value, “≥ 30”" in page


def test_a_level_that_is_called_a_number_is_told_with_what_it_counts() -> None:
    column = {"role": QI, "level": 3, "height": 5, "level_name": "20", "hierarchy": "age/5-10-20"}
    assert meaning(column) == "coarser than in the source: bands of 20"
    assert meaning({**column, "hierarchy": "age/text", "level_name": "decade"}) == "coarser than in the source: decade"
    named = "coarser than in the source: level “20” of the hierarchy ages.csv"
    assert meaning({**column, "hierarchy": "ages.csv"}) == named


@pytest.mark.parametrize("method", ["frontier", "local"])
def test_readers_are_told_what_they_can_use_and_nothing_of_a_job(folder: Path, method: str) -> None:
    columns = {"age": {"role": QI, "hierarchy": {"bands": [10, 20]}}, "ill": {"role": "sensitive"}}
    privacy = {"k": 10, "l_diversity": {"column": "ill", "l": 2}}
    search = {"method": method, "loss": "loss"}
    result = sqldeid.anonymize(job(folder, columns=columns, privacy=privacy, search=search), folder / "db.duckdb")
    page, report = public_page(result.to_public()), result.to_html()
    for told in (page, report):
        assert "where it is not made by k alone" in told and "said below" not in told
    assert "in the job" not in page and ("recoding = true" in report) == (method == "local")
    assert ("ill, which stands in the release as it is:" in report) == (method == "frontier")


def test_without_by_k_there_is_one_limit(folder: Path) -> None:
    public = sqldeid.anonymize(job(folder), folder / "db.duckdb").to_public()
    assert "criteria_limit" not in public["releases"]["r"] and "in all" not in public_page(public)


def test_labels_of_classes_with_levels_of_their_own_are_those_of_released_rows(folder: Path) -> None:
    asked = job(folder, search={"method": "local"})
    release = sqldeid.anonymize(asked, folder / "db.duckdb").releases["r"]
    assert any(c.codes for c in release.columns.values())
    with duckdb.connect(str(folder / "out.duckdb")) as connection:
        for name in ("age", "place", "workclass"):
            rows = {str(x) for (x,) in connection.sql(f"SELECT DISTINCT {name} FROM release.r").fetchall()}
            column = release.columns[name]
            told = {code.shown for code in column.codes or ()} | ({column.top} if column.top else set())
            finest = {
                str(x)
                for (x,) in duckdb.connect(str(folder / "db.duckdb"))
                .sql(f"SELECT DISTINCT {name} FROM people")
                .fetchall()
            }
            assert told == rows - finest, name
            assert all(set(code.stands_for) <= finest | {*WORK} for code in column.codes or ())


def test_linked_and_sampled_releases_have_it_too(folder: Path) -> None:
    key = folder / "key"
    key.write_text("0123456789abcdef" * 4)
    one = {
        "source": "people",
        "person": "id",
        "columns": {
            "id": {"role": "identifying", "pseudonym": True},
            "age": {"role": QI, "hierarchy": {"bands": [20, 40]}},
        },
        "privacy": {"k": 20, "suppression_limit": 0.05},
    }
    two = {
        **one,
        "link": "one",
        "columns": {
            **one["columns"],
            "age": {"role": "insensitive"},
            "workclass": {"role": QI, "hierarchy": "adult/workclass"},
        },
    }
    two["columns"].pop("age")
    both = sqldeid.Job.parse({"release": {"into": "l.duckdb"}, "tables": {"one": one, "two": two}}, folder=folder)
    result = sqldeid.anonymize(both, folder / "db.duckdb", options=sqldeid.Options(key_file=key))
    for name, column in (("one", "age"), ("two", "workclass")):
        c = result.tables[name].columns[column]
        assert c.type and (not c.level or c.codes), c
