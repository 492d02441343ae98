"""Maps of items to variables: the shipped one, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqldeid.errors import JobError
from sqldeid.series.variables import load_map


def test_the_shipped_map_has_the_17_variables_of_both_databases_with_resolutions() -> None:
    found = load_map("mimic3/vitals", [], Path(), "series.v")
    assert len(found.names) == 17 and set(found.resolution) == set(found.names)
    assert (found.resolution["Temperature"], found.resolution["Heart Rate"], found.resolution["pH"]) == (0.1, 1, 0.01)
    of = {item.code: item.variable for item in found.items}
    assert of[211] == of[220045] == "Heart Rate"  # CareVue; MetaVision, as in MIMIC-IV
    old = {item.variable for item in found.items if int(item.code) < 220000}
    new = {item.variable for item in found.items if int(item.code) >= 220000}
    # a total is charted by CareVue alone; capillary refill was put to other words
    assert old == set(found.names)
    assert set(found.names) - new <= {"Glascow coma scale total", "Capillary refill rate"}


def test_a_file_may_leave_resolutions_out(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("variable,item,factor,repair,low,high,unit\nHR,1,,,,,\n", encoding="utf-8")
    assert load_map("m.csv", [], tmp_path, "series.v").resolution == {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("HR,1,,,,,,0", "has a resolution below 0.000001 or above 1,000,000,000"),
        ("HR,1,,,,,,one", "line 2 of m.csv: a factor, bound or resolution is not a number"),
        ("HR,1,,,,,", "line 2 of m.csv is not variable,item,factor,repair,low,high,unit,resolution"),
    ],
)
def test_a_resolution_that_is_none_is_refused(tmp_path: Path, line: str, message: str) -> None:
    header = "variable,item,factor,repair,low,high,unit,resolution"
    (tmp_path / "m.csv").write_text(f"{header}\n{line}\n", encoding="utf-8")
    with pytest.raises(JobError, match=message):
        load_map("m.csv", [], tmp_path, "series.v")
