"""Hierarchy files: how they are read, matched to a column's type, and refused."""

from __future__ import annotations

import csv
import datetime as dt
import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import Hierarchy, UncoveredValues, check, open_source, shipped, write_csv
from sqldeid.hierarchy.files import DELIMITERS, _columns, _plain_columns
from tests.support.examples import examples

SECRET = "Zappa"
"""A value that no message may show."""


def write(folder: Path, content: str | bytes) -> Path:
    (folder / "h.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def path_of(hierarchy: Hierarchy, at: int) -> list[str | None]:
    """Labels of the value at this position, level by level."""
    return [
        labels[groups[hierarchy.leaf[at]]] for labels, groups in zip(hierarchy.labels, hierarchy.groups, strict=True)
    ]


@pytest.mark.parametrize(
    "content",
    [
        "a;x, y;*\nb;x, y;*\nc;z;*\n",
        'a,"x, y",*\nb,"x, y",*\nc,z,*\n',
        "a\tx, y\t*\nb\tx, y\t*\nc\tz\t*\n",
        "\ufeffa;x, y;*\r\nb;x, y;*\r\n\r\nc;z;*",
        '"a";"x, y";"*"\n"b";"x, y";"*"\n"c";"z";"*"\n',
        "a;x, y\nb;x, y\nc;z\n",
    ],
    ids=[
        "semicolon",
        "comma, quoted",
        "tab",
        "byte order mark, CRLF, blank line, no last line end",
        "quoted",
        "no top",
    ],
)
def test_dialects_read_alike(tmp_path: Path, content: str) -> None:
    source = open_source("h.csv", write(tmp_path, content))
    assert (source.name, source.height, source.data_derived) == ("h.csv", 3, False)
    assert source.level_names == ("original", "level 1", "*")
    hierarchy = source.bind(pa.array(["c", "a"]))
    assert hierarchy.leaves == 3
    assert [path_of(hierarchy, i) for i in (0, 1)] == [["c", "z", "*"], ["a", "x, y", "*"]]
    assert hierarchy.group_sizes(1).tolist() == [2, 1]


def test_quoting_holds_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    source = open_source("h.csv", write(tmp_path, 'a;"x;""\n";*\nb;y;*\n'))
    assert path_of(source.bind(pa.array(["a"])), 0) == ["a", 'x;"\n', "*"]


def test_a_value_alone_on_each_line_gets_a_top(tmp_path: Path) -> None:
    source = open_source("h.csv", write(tmp_path, "a\nb\n"))
    assert source.height == 2
    assert path_of(source.bind(pa.array(["b", None])), 1) == [None, "*"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        (f"a;x;*\n{SECRET};x\n", "line 2 has 2 fields, the first has 3"),
        (f"a;x;*\nb;x;*\n\n{SECRET};y;*;{SECRET}\n", "line 4 has 4 fields"),
        (f"a;x;*\n{SECRET};x;*\n{SECRET};y;*\nb;y;*\n", r"1 line repeat.* line 3 \(like line 2\)"),
        (f"a;{SECRET};p;*\nb;{SECRET};q;*\n", r"level 1 does not nest in level 2: 1 label .*lines 1 and 2"),
        (f"a;x;*\nb;{SECRET};+\n", None),
        (f'a;x;*\n"{SECRET};x;*\n', "not CSV"),
        (f'a;x;*\n"b"{SECRET};x;*\n', "not CSV"),
        (f"a;x;\n{SECRET};y;\n", "last column is empty"),
        (b"a;x;*\nb;x;*\n\xe4" + SECRET.encode() + b";x;*\n", "line 3 is not UTF-8"),
        (f"a;{SECRET}".encode("utf-16"), "line 1 is not UTF-8"),
    ],
)
def test_what_is_wrong_is_said_with_the_line_but_without_values(tmp_path: Path, content, message) -> None:
    folder = write(tmp_path, content)
    if message is None:
        assert open_source("h.csv", folder).height == 4
        return
    with pytest.raises(HierarchyError, match=message) as caught:
        open_source("h.csv", folder)
    assert "h.csv" in str(caught.value) and SECRET not in str(caught.value)
    assert check("h.csv", folder).problems == (caught.value.message,)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("adult/agee", "adult/age"),
        ("educaton", "adult/education"),
        ("hierarchies/Country.csv", "world/country"),
        ("icd9/diagnosis", "icd9/diagnoses or icd/diagnoses or icd10/diagnoses"),
        ("adult/zzzzz", ""),
        ("wards.csv", ""),
    ],
)
def test_a_hierarchy_that_is_not_there_is_told_what_looks_alike(asked: str, near: str, tmp_path: Path) -> None:
    """Not all that are shipped, of which there are more each year: a command lists them."""
    said = f"hierarchy {asked}: no such file, and none of that name is shipped; "
    said += f"did you mean {near}? " if near else ""
    with pytest.raises(HierarchyError) as raised:
        open_source(asked, tmp_path)
    assert raised.value.message == f"{said}`sqldeid hierarchy list` prints all {len(shipped())}"


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="no such file"):
        open_source("other.csv", tmp_path)
    for odd in ("", "a" * 5000, "a\0b", "icd9/procedure-chapters.ranges"):
        with pytest.raises(HierarchyError, match="no such file"):
            open_source(odd, tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(HierarchyError, match="no such file"):
        open_source("folder", tmp_path)


def test_a_line_that_is_repeated_as_it_is_does_no_harm(tmp_path: Path) -> None:
    hierarchy = open_source("h.csv", write(tmp_path, "a;x;*\nb;x;*\na;x;*\n")).bind(pa.array(["a"]))
    assert hierarchy.leaves == 2


TYPED = (
    "7;odd;*\n08;even;*\n9.50;odd;*\n-0;even;*\ntrue;yes;*\n2101-03-01;spring;*\n2101-03-01T12:30;noon;*\n?;none;*\n"
)


@pytest.mark.parametrize(
    ("values", "numeric", "labels"),
    [
        (pa.array([7, 8, 0]), False, ["odd", "even", "even"]),
        (pa.array([7, 8], pa.uint8()), False, ["odd", "even"]),
        (pa.array([9.5, 7.0, -0.0]), False, ["odd", "odd", "even"]),
        (pa.array(["9.5", "8.000"]), True, ["odd", "even"]),
        (pa.array(["7", "08", "?"]), False, ["odd", "even", "none"]),
        (pa.array([True]), False, ["yes"]),
        (pa.array([dt.date(2101, 3, 1)]), False, ["spring"]),
        (pa.array([dt.datetime(2101, 3, 1), dt.datetime(2101, 3, 1, 12, 30)]), False, ["spring", "noon"]),
        (pa.array(["7", None]).dictionary_encode(), False, ["odd", None]),
    ],
)
def test_leaves_are_matched_by_type(tmp_path: Path, values, numeric, labels) -> None:
    hierarchy = open_source("h.csv", write(tmp_path, TYPED)).bind(values, numeric=numeric)
    assert [path_of(hierarchy, i)[1] for i in range(len(values))] == labels
    assert hierarchy.leaves == 8 + (None in labels)
    assert hierarchy.values.equals(values)


def test_big_integers_are_matched_exactly(tmp_path: Path) -> None:
    """2^53 and its neighbours are one number as floats; 2^63 + 1 is beyond BIGINT."""
    folder = write(tmp_path, f"{2**53};a;*\n{2**53 + 1};b;*\n{2**63 + 1};c;*\n")
    source = open_source("h.csv", folder)
    assert [path_of(source.bind(pa.array([2**53 + 1, 2**53])), i)[1] for i in (0, 1)] == ["b", "a"]
    assert path_of(source.bind(pa.array([str(2**63 + 1)]), numeric=True), 0)[1] == "c"


def test_not_a_number_is_a_value(tmp_path: Path) -> None:
    hierarchy = open_source("h.csv", write(tmp_path, "nan;x;*\n1;y;*\ninf;z;*\n")).bind(
        pa.array([float("nan"), float("inf"), None], from_pandas=False)
    )
    assert [path_of(hierarchy, i)[1] for i in range(3)] == ["x", "z", None]


def test_leaves_that_are_one_number_are_one_leaf_or_refused(tmp_path: Path) -> None:
    source = open_source("h.csv", write(tmp_path, "7;x;*\n07;x;*\n8;y;*\n"))
    assert source.bind(pa.array([7])).leaves == 2
    assert source.bind(pa.array(["7"])).leaves == 3
    clash = open_source("h.csv", write(tmp_path, "7;x;*\n07;y;*\n"))
    with pytest.raises(HierarchyError, match=r"line 2 \(like line 1\)"):
        clash.bind(pa.array([7]))


def test_columns_that_have_no_hierarchy(tmp_path: Path) -> None:
    source = open_source("h.csv", write(tmp_path, "a;*\n"))
    with pytest.raises(HierarchyError, match="binary"):
        source.bind(pa.array([b"a"]))
    with pytest.raises(ValueError, match="distinct"):
        source.bind(pa.array(["a", "a"]))


def test_null_has_its_line_or_stays_null_below_the_top(tmp_path: Path) -> None:
    named = open_source("h.csv", write(tmp_path, "a;x;*\n;unknown;*\n"))
    hierarchy = named.bind(pa.array([None, "a"], pa.string()))
    assert (hierarchy.leaves, path_of(hierarchy, 0)) == (2, [None, "unknown", "*"])
    assert named.bind(pa.array(["a"])).leaves == 2
    unnamed = open_source("h.csv", write(tmp_path, "a;x;p;*\nb;y;p;*\n"))
    hierarchy = unnamed.bind(pa.array([None, "a"], pa.string()))
    assert (hierarchy.leaves, path_of(hierarchy, 0)) == (3, [None, None, None, "*"])
    assert unnamed.bind(pa.array(["a"])).leaves == 2


def test_an_empty_text_is_a_leaf_beside_null(tmp_path: Path) -> None:
    source = open_source("h.csv", write(tmp_path, "a;x;*\n;unknown;*\n"))
    hierarchy = source.bind(pa.array(["", None, "a"]))
    assert hierarchy.leaves == 3 and hierarchy.leaf[0] != hierarchy.leaf[1]
    assert [path_of(hierarchy, i) for i in (0, 1)] == [["", "unknown", "*"], [None, "unknown", "*"]]
    with pytest.raises(HierarchyError, match="cannot tell from NULL"):
        write_csv(hierarchy, tmp_path / "out.csv")
    with pytest.raises(UncoveredValues):
        open_source("h.csv", write(tmp_path, "a;x;*\n")).bind(pa.array([""]))


def test_null_joins_a_group_whose_label_is_null(tmp_path: Path) -> None:
    """Else one released value would be two groups."""
    hierarchy = open_source("h.csv", write(tmp_path, "a;;p;*\nb;y;q;*\n")).bind(pa.array([None, "a"], pa.string()))
    assert path_of(hierarchy, 0) == [None, None, "p", "*"]
    assert hierarchy.groups[1][hierarchy.leaf[0]] == hierarchy.groups[1][hierarchy.leaf[1]]


def test_a_file_without_data_shows_all_of_itself(tmp_path: Path) -> None:
    report = check("h.csv", write(tmp_path, "a;x;*\nb;x;*\nc;y;*\n"))
    assert (report.height, report.groups, report.leaves, report.bits, report.problems) == (3, (3, 2, 1), 3, 2, ())


def test_a_rule_in_a_toml_file(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('bands = [10]\ntop = "Age"\n')
    assert path_of(open_source("r.toml", tmp_path).bind(pa.array([17])), 0) == ["17", "[10, 20)", "Age"]
    (tmp_path / "r.toml").write_text("bands = [10\n")
    with pytest.raises(HierarchyError, match=r"r\.toml.*TOML"):
        open_source("r.toml", tmp_path)


def by_rows(text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Fields by column and lines of records, as `csv` reads them one by one."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    records = [(reader.line_num, record) for record in reader if record]
    if not records or len({len(record) for _, record in records}) > 1:
        raise csv.Error
    return [list(column) for column in zip(*(r for _, r in records), strict=True)], [line for line, _ in records]


PIECES = st.sampled_from(
    ["a", "b b", "é", "\u2028", ";", ";", ",", "\t", "\n", "\n", "\r\n", "\r", '"', '""', "\0", " "]
)


@settings(max_examples=examples(400), deadline=None)
@given(text=st.lists(PIECES, max_size=30).map("".join), delimiter=st.sampled_from(DELIMITERS))
def test_columns_are_those_that_rows_make(text: str, delimiter: str) -> None:
    """Whatever the text: same fields and lines as row by row, or refused where that is."""
    try:
        expected = by_rows(text, delimiter)
    except csv.Error:
        with pytest.raises(HierarchyError):
            _columns(text, delimiter, "h")
        return
    columns, lines = _columns(text, delimiter, "h")
    assert ([column.to_pylist() for column in columns], lines.tolist()) == expected


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_a_plain_file_is_read_by_columns_and_an_odd_one_row_by_row(ending: str) -> None:
    plain = "a;x;*\nb;;*" + ending
    columns = _plain_columns(plain, ";")
    assert columns is not None
    assert [column.to_pylist() for column in columns] == [["a", "b"], ["x", ""], ["*", "*"]]
    for odd in ('"a";x;*', "a;x;*\n\nb;x;*", "a;x;*\nb;x", "a;x\r;*", f"{'a' * (csv.field_size_limit() + 1)};x;*", ""):
        assert _plain_columns(odd, ";") is None
