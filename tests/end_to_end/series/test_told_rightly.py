"""Small things that were told wrongly: means over units that differ, examples of NULL, links on both sides, charts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sqldeid
from sqldeid.errors import JobError
from sqldeid.report.charts import Bar, bars
from sqldeid.report.page import report_page
from tests.support.charted_series import BASE, charted

QI = "quasi-identifying"


def test_distortion_is_told_by_variable_in_its_unit(tmp_path: Path) -> None:
    frame = charted()  # noqa: F841 - SQL reads it
    with duckdb.connect(str(tmp_path / "s.duckdb")) as c:
        c.execute("CREATE TABLE charted AS SELECT * FROM frame")
    variables: Any = {"HR": {"items": [1], "unit": "bpm"}, "Glu": {"items": [2], "unit": "mg/dL"}}
    job = sqldeid.Job.parse(
        {"release": {"into": "o.duckdb"}, "series": {"v": {**BASE, "variables": variables}}}, folder=tmp_path
    )
    result = sqldeid.anonymize(job, tmp_path / "s.duckdb")
    release: Any = result.releases["v"]
    by = release.distortion_by
    assert {name: found["unit"] for name, found in by.items()} == {"HR": "bpm", "Glu": "mg/dL"}
    means = [found["mean"] for found in by.values()]
    assert min(means) < release.distortion < max(means) and max(means) > 1.5 * min(means)
    told = dict(release.facts())["Distortion"]
    assert "HR " in told and " bpm" in told and " mg/dL" in told
    page = report_page(result.to_dict())
    assert "How far a value of HR moved, on average" in page and "in its own unit" not in page
    older = result.to_dict()
    older["releases"]["v"].pop("distortion_by")  # type: ignore[index]
    assert "over all variables, whatever their units" in report_page(older)


def test_of_steps_as_long_as_stays_nothing_is_left_and_it_says_why(tmp_path: Path) -> None:
    frame = charted()  # noqa: F841 - SQL reads it
    with duckdb.connect(str(tmp_path / "s.duckdb")) as c:
        c.execute("CREATE TABLE charted AS FROM frame")
    part = {**BASE, "step_hours": 8000}
    job = sqldeid.Job.parse({"release": {"into": "o.duckdb"}, "series": {"v": part}}, folder=tmp_path)
    release: Any = sqldeid.anonymize(job, tmp_path / "s.duckdb").releases["v"]
    assert release.released == 0
    assert any("is empty: all series have fewer than 3 steps; take a smaller step_hours" in w for w in release.warnings)


def test_a_length_whose_people_keep_nothing_is_not_counted(tmp_path: Path) -> None:
    """Twelve people of three hours, each with a variable of their own, which too few have."""
    with duckdb.connect(str(tmp_path / "s.duckdb")) as c:
        c.execute(
            "CREATE TABLE charted AS SELECT i // 6 AS stay, i % 6 * 60 AS minute, 'HR' AS item, 70e0 + i % 17 AS value "
            "FROM RANGE(180) AS r(i) UNION ALL "
            "SELECT 100 + i // 3, i % 3 * 60, 'only ' || i // 3, 70e0 + i FROM RANGE(36) AS r(i)"
        )
    part = {name: value for name, value in BASE.items() if name != "variables"}
    job = sqldeid.Job.parse({"release": {"into": "o.duckdb"}, "series": {"v": part}}, folder=tmp_path)
    result = sqldeid.anonymize(job, tmp_path / "s.duckdb")
    release: Any = result.releases["v"]
    assert (release.persons, release.released) == (42, 30)
    page = report_page(result.to_dict())
    assert re.search(r"People of whom no variable could be released\D+12\D", page)
    found = release.durations
    assert (found.before.lengths, found.classes, found.after.lengths) == (2, 1, 1)
    assert dict(release.facts())["Durations"] == "k = 6, 1 length, 0 shortened, 0.00% of steps lost"


@pytest.mark.parametrize(("shape", "named"), [("long", ["HR"]), ("wide", ["HR", "Rare"])])
def test_a_variable_without_rows_is_named_where_it_is_a_column_alone(
    tmp_path: Path, shape: str, named: list[str]
) -> None:
    frame = charted()  # noqa: F841 - SQL reads it
    with duckdb.connect(str(tmp_path / "s.duckdb")) as c:
        c.execute("CREATE TABLE charted AS SELECT * FROM frame")
    variables: Any = {"HR": {"items": [1]}, "Rare": {"items": [99]}}
    part = {**BASE, "variables": variables, "shape": shape}
    job = sqldeid.Job.parse({"release": {"into": "o.duckdb"}, "series": {"v": part}}, folder=tmp_path)
    result = sqldeid.anonymize(job, tmp_path / "s.duckdb")
    assert any("nobody is released with Rare" in w for w in result.releases["v"].warnings)
    public: Any = result.to_public()
    assert public["releases"]["v"]["variables"] == named


def test_an_example_is_no_missing_value(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "s.duckdb")) as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, CASE WHEN i % 3 > 0 THEN NULL ELSE 'a' || i % 2 END AS place, "
            "CAST(NULL AS VARCHAR) AS nothing, i % 50 AS age FROM RANGE(300) AS r(i)"
        )
    columns = {
        "place": {"role": QI, "hierarchy": {"suppress": True}},
        "nothing": {"role": QI, "hierarchy": {"suppress": True}},
        "age": {"role": QI, "hierarchy": {"bands": [10]}},
    }
    job = sqldeid.Job.parse(
        {
            "release": {"into": "o.duckdb"},
            "tables": {"r": {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 5}}},
        },
        folder=tmp_path,
    )
    found = sqldeid.anonymize(job, tmp_path / "s.duckdb").tables["r"].columns
    assert found["place"].example is not None and found["place"].example[0] in ("a0", "a1")
    assert found["nothing"].example is None


@pytest.mark.parametrize(
    "link,words",
    [
        ("vitals", 'take it out here: series.vitals follows the table, and its own section says, by link = "stays"'),
        ("nobody", r"must name another table release of this job; there: none"),
    ],
)
def test_a_link_on_both_sides_is_told_where_it_belongs(link: str, words: str) -> None:
    table = {
        "source": "t",
        "person": "p",
        "link": link,
        "columns": {"x": {"role": QI, "hierarchy": {"suppress": True}}},
        "privacy": {"k": 5},
    }
    for own in ("stays", None):
        series = {**BASE, **({"link": own} if own else {})}
        with pytest.raises(JobError) as found:
            sqldeid.Job.parse({"tables": {"stays": table}, "series": {"vitals": series}})
        said = words.replace("says, by", "says so already" if own else "says so, by")
        assert (said.split(" already")[0] if own else said) in str(found.value), str(found.value)


def test_bars_fill_their_area() -> None:
    pytest.importorskip("matplotlib")
    small = bars([Bar("a", (0.05, 0.02, 0.01)), Bar("b", (0.01, 0.0, 0.0))], ("x", "y", "z"), title="t", xlabel="%")
    low, high = small.axes[0].get_xlim()
    assert low == 0 and 8 < high < 12
    assert {text.get_text() for text in small.axes[0].texts} == {"8 %", "1 %"}
    assert bars([Bar("a", (0.9,))], ("x",), title="t", xlabel="%").axes[0].get_xlim() == (0, 100)
    assert bars([Bar("a", (0.0,))], ("x",), title="t", xlabel="%").axes[0].get_xlim()[1] > 0
    assert np.isfinite(bars([], ("x",), title="t", xlabel="%").axes[0].get_xlim()).all()
