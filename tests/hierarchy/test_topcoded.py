"""Labels of what was cut at the top are true of greater numbers, on every level, and groups stay as they are."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import open_source
from sqldeid.hierarchy.stored import StoredSource, pack, unpack
from sqldeid.hierarchy.topcoded import TopCoded, top_coded


def cut(spec: object, top: int, folder: Path = Path()) -> TopCoded:
    found = top_coded(open_source(spec, folder), pa.array([top]), str(top), numeric=False, uncovered="refuse")
    assert isinstance(found, TopCoded)
    return found


def path(source: TopCoded, values: list[int], of: int) -> list[str]:
    """What becomes of one value, level by level."""
    bound = source.bind(pa.array(values))
    leaf = bound.leaf[values.index(of)]
    zero = source.labelled(bound, numeric=False)
    return [(zero if x == 0 else bound.labels[x])[bound.groups[x][leaf]] for x in range(bound.height)]


@pytest.mark.parametrize(
    ("spec", "top", "expected"),
    [
        ({"bands": [5, 10, 20]}, 90, ["≥ 90", "≥ 90", "≥ 90", "≥ 80", "*"]),
        ({"bands": [5, 10, 20]}, 89, ["≥ 89", "≥ 85", "≥ 80", "≥ 80", "*"]),
        ("age/5-10-20", 90, ["≥ 90", "≥ 90", "≥ 90", "≥ 80", "*"]),
        ("adult/age", 90, ["≥ 90", "≥ 90", "≥ 50", "*"]),
        ("adult/age", 89, ["≥ 89", "≥ 80", "≥ 50", "*"]),
        ({"edges": [[0, 18, 65, 120]]}, 90, ["≥ 90", "≥ 65", "*"]),
        ({"edges": [[18, 65], [65]], "tails": True}, 90, ["≥ 90", "≥ 65", "≥ 65", "*"]),
        ({"edges": [[18, 65]], "tails": True, "labels": [["child", "grown", "old"]]}, 90, ["≥ 90", "old", "*"]),
        ({"edges": [[0, 60, 95]], "labels": [["0-59", "60 to 94"]]}, 90, ["≥ 90", "≥ 60", "*"]),
        ({"suppress": True}, 90, ["≥ 90", "*"]),
    ],
)
def test_every_level_says_that_greater_ones_are_there(spec: object, top: int, expected: list[str]) -> None:
    assert path(cut(spec, top), [17, 62, 86, top], top) == expected


def test_what_is_below_keeps_its_label_and_who_was_cut_does_not_show(tmp_path: Path) -> None:
    source = cut({"bands": [5, 10]}, 89)
    assert path(source, [17, 86, 89], 17) == ["17", "[15, 20)", "[10, 20)", "*"]
    assert path(source, [17, 86, 89], 86) == path(source, [17, 86], 86) == ["86", "≥ 85", "≥ 80", "*"]


@pytest.mark.parametrize("labels", [["0-59", "the 80s"], ["a", "< 95"], ["a", "60 to 88"]])
def test_a_label_that_would_be_false_is_refused_whatever_the_rows(labels: list[str]) -> None:
    with pytest.raises(HierarchyError, match="level 1 has a label for the numbers at 90"):
        cut({"edges": [[0, 60, 95]], "labels": [labels]}, 90)


def test_a_file_is_read_likewise(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("89;85-89;old;*\n17;15-19;young;*\n91;90+;old;*\n")
    assert path(cut("age.csv", 89, tmp_path), [17, 89], 89) == ["≥ 89", "≥ 85", "old", "*"]


def test_a_kept_hierarchy_codes_later_loads_alike() -> None:
    source = cut({"bands": [5, 10]}, 89)
    kept = StoredSource(source.kept(unpack(pack(source.bind(pa.array([17, 86]))))), source)
    bound = kept.bind(pa.array([87, 89, 17]))
    assert [bound.labels[1][bound.groups[1][leaf]] for leaf in bound.leaf] == ["≥ 85", "≥ 85", "[15, 20)"]
    assert len(bound.labels[1]) == 2
    old = StoredSource(
        source.kept(unpack(pack(source.within.bind(pa.array([17, 86]))))), source
    )  # before labels said so
    assert len(old.bind(pa.array([87, 89, 17])).labels[1]) == 2


@given(st.lists(st.integers(0, 130), min_size=1), st.integers(1, 120), st.integers(1, 30), st.integers(2, 4))
def test_bands_are_true_and_groups_unchanged(ages: list[int], top: int, width: int, factor: int) -> None:
    spec = {"bands": [width, width * factor]}
    seen = sorted({min(a, top) for a in ages})
    source = cut(spec, top)
    bound, plain = source.bind(pa.array(seen)), source.within.bind(pa.array(seen))
    for level in (1, 2):
        assert (bound.groups[level] == plain.groups[level]).all()
        for age in ages:
            label = bound.labels[level][bound.groups[level][seen.index(min(age, top))]]
            if label.startswith("≥ "):
                assert age >= Decimal(label[2:])
            else:
                low, high = label.strip("[)").split(",")
                assert int(low) <= age < int(high)
