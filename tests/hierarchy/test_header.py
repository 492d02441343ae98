"""A header line in a hierarchy file is refused, wherever a file meets a column; leaves that no row has are counted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import check, open_source, refuse_header

RACES = "white;any\nblack;any\nasian;any\n"
BANDS = "37;30-39;0-49;*\n42;40-49;0-49;*\n51;50-59;50-99;*\n"


def _refused(folder: Path, text: str, values: pa.Array | None, called: str | None = "race") -> str:
    (folder / "h.csv").write_text(text)
    try:
        refuse_header(open_source("h.csv", folder), values, called=called)
    except HierarchyError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("text", "values", "called"),
    [
        ("race;level1\n" + RACES, ["white", "black", "asian"], "race"),
        ("RACE ;group\n" + RACES, ["white"], "race"),  # the column's name, many others absent
        ("value;*\n" + RACES.replace("any", "*"), ["white", "black", "asian"], "race"),  # shares the top
        ("kind;group\n" + RACES, ["white", "black"], "race"),  # another top than all others
        ("code;level1;level2\n" + "DE;EU;A\nUS;AM;A\nCN;AS;B\n", ["DE"], "land"),  # titled
        ("code;level1;level2\n" + "DE;EU;A\nUS;AM;A\nCN;AS;B\n", None, None),
        ("age;five;ten;top\n" + BANDS, [37, 42], "years"),  # no number, among numbers
        ("age;five;ten;*\n" + BANDS, [37.0], "years"),
        ("sex;top\nF;both\n", ["F"], "gender"),
        (";level1;level2\n" + "DE;EU;A\nUS;AM;A\n", ["DE", "US"], "land"),  # as tools write an index that has no name
    ],
)
def test_a_header_is_refused(tmp_path: Path, text: str, values: list[object] | None, called: str | None) -> None:
    message = _refused(tmp_path, text, None if values is None else pa.array(values), called)
    assert "line 1 looks like a header" in message and "remove the line" in message


@pytest.mark.parametrize(
    ("text", "values", "called"),
    [
        (RACES, ["white", "black", "asian"], "race"),
        (RACES, ["black"], "race"),
        ("M;*\nF;*\n", ["F"], "sex"),  # only women today
        ("?;unknown\na;known\nb;known\n", ["a", "b", "?"], "x"),
        ("DE;Europe\nUS;America\nCN;Asia\nFR;Europe\n", ["FR", "CN"], "land"),
        ("yes;any\nno;any\n", ["yes", "no"], "yes"),  # the name is a value, too
        ("GCSE;Level 2\nA;Level 3\nB;Level 3\n", None, None),
        (BANDS, [37], "age"),
        ("36;30-39;0-49;*\n" + BANDS, [37, 42, 51], "age"),  # a number is no header, whoever is there today
        ("AT;EU;*\nDE;EU;*\nFR;EU;*\n", ["DE", "FR"], "land"),
        (";NULL;*\n" + "1;a;*\n2;a;*\n", [1, None], "x"),
        (";?;*\n" + "a;known;*\nb;known;*\n", ["a", "b"], "x"),  # missing values are not there tonight
        (";?;none\n" + "a;known;*\nb;known;*\n", ["a"], "x"),
    ],
)
def test_a_first_value_is_none(tmp_path: Path, text: str, values: list[object] | None, called: str | None) -> None:
    assert _refused(tmp_path, text, None if values is None else pa.array(values), called) == ""


def test_check_tells_a_header_and_counts_what_no_row_has(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("race;level1\n" + RACES)
    found = check("h.csv", tmp_path, pa.array(["white", "black", "asian"]), called="race")
    assert "line 1 looks like a header" in found.problems[0]
    (tmp_path / "h.csv").write_text(RACES)
    found = check("h.csv", tmp_path, pa.array(["white"]), called="race")
    assert (found.problems, found.unused) == ((), 2)
    assert check("adult/sex", tmp_path, pa.array(["Male"]), called="sex").unused == 0
