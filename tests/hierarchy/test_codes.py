"""Prefix codes of any hierarchy: a level is a shift; and what bind adds keeps levels nested."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import Hierarchy, UncoveredValues, open_source
from sqldeid.hierarchy.model import label_array


@st.composite
def hierarchies(draw: st.DrawFn, most_leaves: int = 40) -> Hierarchy:
    """A random tree: every group of a level is sent to some group of the next."""
    leaves = draw(st.integers(1, most_leaves))
    height = draw(st.integers(2, 6))
    groups = [list(range(leaves))]
    for _ in range(height - 2):
        below = max(groups[-1]) + 1
        parent = draw(st.lists(st.integers(0, below - 1), min_size=below, max_size=below))
        dense = {p: i for i, p in enumerate(dict.fromkeys(parent))}
        groups.append([dense[parent[g]] for g in groups[-1]])
    groups.append([0] * leaves)
    return Hierarchy(
        "random",
        height,
        leaves,
        pa.array(range(leaves)),
        np.arange(leaves),
        tuple(np.array(g, dtype=np.int64) for g in groups),
        tuple(label_array([f"{x}.{i}" for i in range(max(g) + 1)]) for x, g in enumerate(groups)),
        tuple(f"level {x}" for x in range(height)),
    )


@given(hierarchies())
def test_leaves_share_a_group_exactly_when_their_codes_share_a_prefix(hierarchy: Hierarchy) -> None:
    codes, bits = hierarchy.codes()
    assert bits[0] == 0
    assert (codes >= 0).all() and (codes >> bits[-1] == 0).all()
    for groups, low in zip(hierarchy.groups, bits, strict=True):
        pairs = set(zip(groups.tolist(), (codes >> low).tolist(), strict=True))
        assert len(pairs) == len({g for g, _ in pairs}) == len({c for _, c in pairs})
        masked = codes & (~0 << low)
        assert len(set(masked.tolist())) == len(pairs)


@given(hierarchies())
def test_a_level_takes_as_many_bits_as_its_largest_family_needs(hierarchy: Hierarchy) -> None:
    _, bits = hierarchy.codes()
    for level in range(hierarchy.height - 1):
        children: dict[int, set[int]] = {}
        for g, parent in zip(hierarchy.groups[level].tolist(), hierarchy.groups[level + 1].tolist(), strict=True):
            children.setdefault(parent, set()).add(g)
        largest = max(map(len, children.values()))
        assert bits[level + 1] - bits[level] == int(np.ceil(np.log2(largest)))


@given(hierarchies())
def test_group_sizes_count_leaves(hierarchy: Hierarchy) -> None:
    for level in range(hierarchy.height):
        counted = [int((hierarchy.groups[level] == g).sum()) for g in range(len(hierarchy.labels[level]))]
        assert hierarchy.group_sizes(level).tolist() == counted


@given(hierarchies(), st.data())
def test_levels_that_do_not_nest_are_refused(hierarchy: Hierarchy, data: st.DataObject) -> None:
    """Two leaves of one group are torn apart on the next level."""
    level = data.draw(st.integers(1, hierarchy.height - 1))
    groups = [g.copy() for g in hierarchy.groups]
    labels = list(hierarchy.labels)
    torn = next((g for g in groups[level - 1] if (groups[level - 1] == g).sum() > 1), None)
    if torn is None:
        return
    if level == hierarchy.height - 1:
        labels[level] = label_array(["a", "b"])
    else:
        labels[level] = np.append(labels[level], "new")
        groups[level][np.flatnonzero(groups[level - 1] == torn)[0]] = len(labels[level]) - 1
    with pytest.raises(HierarchyError, match=r"not nest|not one"):
        Hierarchy(
            "torn",
            hierarchy.height,
            hierarchy.leaves,
            hierarchy.values,
            hierarchy.leaf,
            tuple(groups),
            tuple(labels),
            hierarchy.level_names,
        )


def test_codes_of_more_than_63_bits_are_refused_with_their_number() -> None:
    """A caterpillar: one leaf joins on each level, so each level takes one bit."""

    def caterpillar(legs: int) -> Hierarchy:
        groups = [np.maximum(np.arange(legs + 1) - x, 0) for x in range(legs + 1)]
        labels = tuple(label_array([str(i) for i in range(g.max() + 1)]) for g in groups)
        values = pa.array(range(legs + 1))
        names = tuple(map(str, range(legs + 1)))
        return Hierarchy("worm", legs + 1, legs + 1, values, np.arange(legs + 1), tuple(groups), labels, names)

    codes, bits = caterpillar(63).codes()
    assert bits[-1] == 63 and len(set(codes.tolist())) == 64 and (codes >= 0).all()
    with pytest.raises(HierarchyError, match="64 bits"):
        caterpillar(64).codes()


words = st.text("ab*", max_size=4)


@given(
    st.dictionaries(words, st.lists(st.sampled_from(["", "a", "ab", "*", "b"]), min_size=2, max_size=2), min_size=1),
    st.lists(st.none() | words, unique=True),
    st.sampled_from(["refuse", "prefix", "top"]),
)
def test_whatever_bind_adds_nests_and_only_uncovered_values_are_refused(tmp_path_factory, rows, values, uncovered):
    """Any file that opens, any values: the result is a hierarchy, known leaves keep their ancestors."""
    path = tmp_path_factory.mktemp("h") / "h.csv"
    path.write_text("".join(f"{leaf};{';'.join(labels)}\n" for leaf, labels in rows.items()))
    try:
        source = open_source("h.csv", path.parent)
    except HierarchyError:
        return
    try:
        hierarchy = source.bind(pa.array(values, pa.string()), uncovered=uncovered)
    except UncoveredValues as error:
        assert uncovered != "top"
        assert all(values[i] is not None and values[i] not in rows for i in error.indices)
        if uncovered == "refuse":
            assert len(error.indices) == sum(v is not None and v not in rows for v in values)
        return
    assert hierarchy.height == source.height
    codes, _bits = hierarchy.codes()
    assert len(set(codes.tolist())) == hierarchy.leaves
    for value, leaf in zip(values, hierarchy.leaf.tolist(), strict=True):
        assert hierarchy.labels[0][leaf] == value
        got = [hierarchy.labels[x][hierarchy.groups[x][leaf]] for x in (1, 2)]
        line = rows.get(value if value is not None else "")
        if line is not None:
            assert got == [label or None for label in line]
        elif value is None:
            assert got[0] is None
        elif uncovered == "top":
            assert got[0] == hierarchy.labels[-1][0]
        else:
            assert value.startswith(got[0])


def longest_prefix(value: str, rows: dict[str, list[str]], levels: range) -> tuple[int, str] | None:
    """Slow and obvious: of all labels that begin the value the longest, of equal ones the lowest."""
    found = [
        (-len(labels[x - 1]), x, labels[x - 1])
        for labels in rows.values()
        for x in levels
        if labels[x - 1] and value.startswith(labels[x - 1])
    ]
    return min(found)[1:] if found else None


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=4), st.just([]), min_size=1),
    st.lists(st.text("abc", min_size=1, max_size=5), unique=True),
    st.tuples(st.integers(1, 3), st.integers(0, 2)),
)
def test_a_prefix_takes_the_ancestors_of_the_longest_label(tmp_path_factory, leaves, values, cut):
    """Files whose labels are the first characters of the leaf: such nest."""
    first, second = cut[0], min(cut)
    rows = {leaf: [leaf[:first], leaf[:second] or "rest"] for leaf in leaves}
    path = tmp_path_factory.mktemp("h") / "h.csv"
    path.write_text("".join(f"{leaf};{';'.join(labels)};*\n" for leaf, labels in rows.items()))
    source = open_source("h.csv", path.parent)
    new = [v for v in values if v not in rows]
    expected = [longest_prefix(v, rows, range(1, 3)) for v in new]
    try:
        hierarchy = source.bind(pa.array(new, pa.string()), uncovered="prefix")
    except UncoveredValues as error:
        assert error.indices.tolist() == [i for i, e in enumerate(expected) if e is None] != []
        return
    for leaf, place in zip(hierarchy.leaf.tolist(), expected, strict=True):
        assert place is not None
        level, label = place
        parent = next(labels[1] for labels in rows.values() if labels[level - 1] == label)
        assert hierarchy.labels[1][hierarchy.groups[1][leaf]] == label
        assert hierarchy.labels[2][hierarchy.groups[2][leaf]] == parent
