"""Rules: what they refuse, what they leave uncovered, and the three ways to place that."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import UncoveredValues, check, open_source

HERE = Path("/nonexistent")


def levels(spec, values, **options) -> list[list[str | None]]:
    """Per level above the original, the label of each value."""
    hierarchy = open_source(spec, HERE).bind(values, **options)
    return [hierarchy.labels[x][hierarchy.groups[x][hierarchy.leaf]].tolist() for x in range(1, hierarchy.height)]


@pytest.mark.parametrize(
    ("spec", "name", "names"),
    [
        ({"bands": [5, 10, 20]}, "bands 5, 10, 20", ("original", "5", "10", "20", "*")),
        ({"bands": [0.5, 1.0]}, "bands 0.5, 1", ("original", "0.5", "1", "*")),
        ({"edges": [[1, 2, 3], [1, 3]]}, "edges on 2 levels", ("original", "level 1", "level 2", "*")),
        ({"mask": [1, 2]}, "mask 1, 2", ("original", "last 1 masked", "last 2 masked", "*")),
        ({"keep_first": [3, 1]}, "first 3, 1 characters", ("original", "first 3", "first 1", "*")),
        ({"dates": ["month", "year"]}, "dates month, year", ("original", "month", "year", "*")),
        ({"suppress": True}, "suppression only", ("original", "*")),
    ],
)
def test_name_height_and_levels_are_known_without_data(spec, name, names) -> None:
    source = open_source(spec, HERE)
    assert (source.name, source.level_names, source.height, source.data_derived) == (name, names, len(names), True)
    assert check(spec, HERE).height == len(names)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "exactly one"),
        ({"bands": [5], "mask": [1]}, "exactly one"),
        ({"band": [5]}, "exactly one"),
        ({"bands": [5], "tails": True}, "unknown key tails"),
        ({"bands": []}, "greater than 0"),
        ({"bands": [0]}, "greater than 0"),
        ({"bands": [5, 12]}, "12 is not a multiple of 5"),
        ({"bands": [5, 5]}, "5 is not a multiple of 5.*larger"),
        ({"bands": [0.1, 0.25]}, "0.25 is not a multiple of 0.1"),
        ({"bands": [True]}, "finite numbers"),
        ({"bands": [float("nan")]}, "finite numbers"),
        ({"bands": "5"}, "must be a list"),
        ({"edges": [[3]]}, "2 or more"),
        ({"edges": [[1, 3, 2]]}, "ascending"),
        ({"edges": [[1, 2, 3], [1, 2.5, 3]]}, "do not nest"),
        ({"edges": [[1, 2, 3], [1, 2, 3]]}, "no fewer"),
        ({"edges": [[1, 2, 3, 4], [2, 4]]}, "tails = true"),
        ({"edges": [[1, 2, 3]], "tails": "yes"}, "true or false"),
        ({"edges": [[1, 2, 3]], "labels": [["a"]]}, "labels"),
        ({"mask": [2, 1]}, "growing"),
        ({"mask": [0]}, "at least 1"),
        ({"mask": [1.5]}, "whole numbers"),
        ({"keep_first": [1, 3]}, "falling"),
        ({"keep_first": [0]}, "at least 1"),
        ({"dates": ["week"]}, "choose from"),
        ({"dates": ["year", "month"]}, "fine to coarse"),
        ({"dates": [1]}, "list of texts"),
        ({"suppress": False}, "suppress = true"),
        ({"suppress": True, "top": ""}, "top"),
        ({"codes": {"pattern": "(", "prefixes": [1], "levels": ["x"]}}, "regular expression"),
        ({"codes": {"pattern": "a", "prefixes": [1, 2], "levels": ["x", "y"]}}, "falling"),
        ({"codes": {"pattern": "a", "prefixes": [1], "levels": []}}, "a name for each level"),
        ({"codes": {"pattern": "a", "prefixes": [1], "levels": ["x"], "longer": {"E": "1"}}}, "whole numbers"),
        ({"codes": {"pattern": "a", "prefixes": [1], "levels": ["x", "y"], "ranges": ["none"]}}, "cannot be read"),
    ],
)
def test_rules_that_make_no_hierarchy(spec, message) -> None:
    with pytest.raises(HierarchyError, match=message):
        open_source(spec, HERE)


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"bands": [5]}, pa.array(["7"])),
        ({"bands": [5]}, pa.array([dt.date(2101, 1, 1)])),
        ({"edges": [[1, 2]]}, pa.array([True])),
        ({"edges": [[1, 2]]}, pa.array([dt.date(2101, 1, 1)])),
        ({"mask": [1]}, pa.array([1.5])),
        ({"keep_first": [1]}, pa.array([dt.date(2101, 1, 1)])),
        ({"dates": ["year"]}, pa.array([2101])),
        ("icd9/procedures", pa.array([3601])),
    ],
)
def test_a_rule_refuses_a_column_of_another_type(spec, values) -> None:
    with pytest.raises(HierarchyError, match="the column holds"):
        open_source(spec, HERE).bind(values)


def test_null_is_a_leaf_of_its_own_only_where_the_data_has_it() -> None:
    assert levels({"bands": [5, 10]}, pa.array([7, None])) == [["[5, 10)", None], ["[0, 10)", None], ["*", "*"]]
    assert open_source({"bands": [5]}, HERE).bind(pa.array([7])).leaves == 1
    assert open_source({"suppress": True}, HERE).bind(pa.array([None, None][:1])).leaves == 1


def test_no_values_give_a_hierarchy_without_leaves() -> None:
    for spec in ({"bands": [5]}, {"edges": [[1, 2]]}, {"mask": [1]}, {"suppress": True}):
        hierarchy = open_source(spec, HERE).bind(pa.array([], pa.int64()))
        codes, bits = hierarchy.codes()
        assert (hierarchy.leaves, len(codes), set(bits)) == (0, 0, {0})


def test_masks_of_whole_numbers_and_short_values() -> None:
    assert levels({"mask": [1, 3]}, pa.array([-5, 1234]))[:2] == [["-*", "123*"], ["**", "1***"]]
    assert levels({"mask": [1, 2]}, pa.array(["xb", "b", "", "é😀"]))[:2] == [
        ["x*", "*", "", "é*"],
        ["**", "*", "", "**"],
    ]


def test_bands_of_what_no_word_holds() -> None:
    huge = str(10**30 + 7)
    assert levels({"bands": [10]}, pa.array([huge, "-0.5"]), numeric=True)[0] == [
        f"[{10**30}, {10**30 + 10})",
        "[-10, 0)",
    ]
    assert levels({"bands": [10]}, pa.array([2**64 - 1], pa.uint64()))[0] == [
        f"[{(2**64 - 1) // 10 * 10}, {2**64 + 4})"
    ]
    assert levels({"bands": [10**19]}, pa.array([5]))[0] == [f"[0, {10**19})"]
    assert levels({"edges": [[0, 10**20]]}, pa.array([5]))[0] == [f"[0, {10**20})"]
    assert levels({"bands": [0.1]}, pa.array([0.7], pa.float32()))[0] == ["[0.7, 0.8)"]


@pytest.mark.parametrize(
    ("spec", "values", "numeric", "uncovered"),
    [
        ({"bands": [5]}, pa.array([1.0, float("nan"), float("inf"), None], from_pandas=False), False, [1, 2]),
        ({"bands": [5]}, pa.array(["1", "NaN", "Infinity"]), True, [1, 2]),
        ({"edges": [[0, 10]]}, pa.array([-1, 0, 9, 10]), False, [0, 3]),
        ({"dates": ["year"]}, pa.array(["2101-02-28", "2101-02-29", "2101-13-01", "spring", ""]), False, [1, 2, 3, 4]),
        ({"dates": ["year"]}, pa.array([0, 2**31 - 1, -(2**31) + 1], pa.int32()).cast(pa.date32()), False, [1, 2]),
        ({"dates": ["year"]}, pa.array([0, 2**63 - 1], pa.int64()).view(pa.timestamp("us")), False, [1]),
        ("icd9/procedures", pa.array(["3601", "360.1", "3", "abc"]), False, [1, 2, 3]),
        ("icd9/diagnoses", pa.array(["4019", "V5867", "E8791", "4O1", "E9", "19"]), False, [3, 4, 5]),
    ],
)
def test_uncovered_values_are_refused_or_go_to_the_top(spec, values, numeric, uncovered) -> None:
    source = open_source(spec, HERE)
    with pytest.raises(UncoveredValues, match=rf"does not cover {len(uncovered)} value") as caught:
        source.bind(values, numeric=numeric)
    assert caught.value.indices.tolist() == uncovered
    assert (caught.value.code, caught.value.kind) == (2, "hierarchy")
    report = check(spec, HERE, values, numeric=numeric)
    assert (report.uncovered, report.values, len(report.problems)) == (len(uncovered), len(values), 1)
    hierarchy = source.bind(values, numeric=numeric, uncovered="top")
    at_one = hierarchy.labels[1][hierarchy.groups[1][hierarchy.leaf]].tolist()
    assert [i for i, label in enumerate(at_one) if label == "*"] == uncovered
    assert hierarchy.leaves == len(values)


def test_prefix_falls_back_to_the_longest_label(tmp_path: Path) -> None:
    """A code that a dictionary lacks: under its 3 digits, else under its category, else refused."""
    (tmp_path / "p.csv").write_text("3606;360;36;*\n3610;361;36;*\n4582;458;45;*\n")
    source = open_source("p.csv", tmp_path)
    hierarchy = source.bind(pa.array(["3601", "458", "3690", "3699", "3610"]), uncovered="prefix")
    assert hierarchy.leaves == 3 + 4
    shown = [hierarchy.labels[x][hierarchy.groups[x][hierarchy.leaf]].tolist() for x in range(4)]
    assert shown[0] == ["3601", "458", "3690", "3699", "3610"]
    assert shown[1] == ["360", "458", "36", "36", "361"]
    assert shown[2] == ["36", "45", "36", "36", "36"]
    with pytest.raises(UncoveredValues, match="no label is a prefix") as caught:
        source.bind(pa.array(["3601", "99", "*1"]), uncovered="prefix")
    assert caught.value.indices.tolist() == [1, 2]


def test_top_label_that_a_lower_level_has_is_joined(tmp_path: Path) -> None:
    """`*` on level 1 keeps its one parent, so the levels still nest."""
    (tmp_path / "h.csv").write_text("a;*;p;*\nb;y;q;*\n")
    hierarchy = open_source("h.csv", tmp_path).bind(pa.array(["a", "new"]), uncovered="top")
    assert [labels[g[hierarchy.leaf[1]]] for labels, g in zip(hierarchy.labels, hierarchy.groups, strict=True)] == [
        "new",
        "*",
        "p",
        "*",
    ]
