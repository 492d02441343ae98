"""A vocabulary's links as a tree: equal to trying every way up, and the same whichever codes are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import UncoveredValues
from sqldeid.hierarchy.parents import ParentsSource

Links = dict[int, list[int]]
DEPTHS = (3, 2, 1)


@st.composite
def vocabularies(draw: st.DrawFn) -> Links:
    """Codes with up to three parents each, which are greater: so there is no circle."""
    n = draw(st.integers(1, 25))
    return {c: draw(st.lists(st.integers(c + 1, n), max_size=3)) if c < n else [] for c in range(1, n + 1)}


def ways(links: Links, code: int) -> list[tuple[int, ...]]:
    """Every way from a code up to where the tree begins, the code last."""
    return [(*way, code) for parent in links[code] for way in ways(links, parent)] or [(code,)]


def chosen(links: Links, code: int) -> tuple[int, ...]:
    """The rule read as it stands: the parent that lies least deep, of those the smallest; then likewise from there."""
    if not links[code]:
        return (code,)
    depth = {p: min(len(way) for way in ways(links, p)) for p in links[code]}
    return (*chosen(links, min(links[code], key=lambda p: (depth[p], p))), code)


def source(links: Links, depths: tuple[int, ...] = DEPTHS, *, whole: bool = True) -> ParentsSource:
    def climb(codes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        above: dict[str, Sequence[str]] = {}
        waiting = [int(c) for c in codes if int(c) in links]
        while waiting:
            code = waiting.pop()
            above[str(code)] = [str(p) for p in links[code]]
            waiting += links[code]
        return above

    return ParentsSource("parents in v", depths, climb, whole)


def shown(made: ParentsSource, codes: list[int]) -> dict[int, list[str]]:
    found = made.bind(pa.array(codes, pa.int64()))
    return {
        code: [found.labels[x][found.groups[x][leaf]] for x in range(1, found.height)]
        for code, leaf in zip(codes, found.leaf, strict=True)
    }


@given(vocabularies(), st.data())
def test_each_code_has_the_ancestors_of_the_rule_whoever_asks(links: Links, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.sampled_from(sorted(links)), min_size=1, unique=True))
    found = shown(source(links), codes)
    for code in codes:
        chain = chosen(links, code)
        assert found[code] == [*(str(chain[min(d, len(chain)) - 1]) for d in DEPTHS), "*"]
        assert shown(source(links), [code])[code] == found[code]
    assert {c: a for c, a in shown(source(links), sorted(links)).items() if c in codes} == found


def test_ties_go_to_the_smallest_number_or_the_first_letters() -> None:
    links: Links = {9: [], 10: [], 1: [10, 9]}
    assert shown(source(links), [1])[1] == ["1", "1", "9", "*"]
    assert shown(source(links, whole=False), [1])[1] == ["1", "1", "10", "*"]


def test_circles_and_endless_ladders_are_refused_by_the_name_of_the_table() -> None:
    for links in ({1: [1]}, {1: [2], 2: [3], 3: [1]}, {1: [2], 2: [3], 3: [2]}):
        read = {str(c): [str(p) for p in ps] for c, ps in links.items()}
        with pytest.raises(HierarchyError, match="parents in v: its links go in a circle"):
            ParentsSource("parents in v", DEPTHS, lambda _, read=read: read, True).bind(pa.array([1]))
    with pytest.raises(HierarchyError, match="more than 100 steps deep"):
        source({c: [c + 1] for c in range(1, 150)} | {150: []}).bind(pa.array([1]))


def test_values_that_a_vocabulary_lacks_are_uncovered_and_null_stays() -> None:
    links: Links = {1: [2], 2: []}
    with pytest.raises(UncoveredValues) as refused:
        source(links).bind(pa.array([1, 7, None]))
    assert refused.value.indices.tolist() == [1] and "7" not in refused.value.message
    top = source(links).bind(pa.array([1, 7, None]), uncovered="top")
    assert [top.labels[2][top.groups[2][leaf]] for leaf in top.leaf] == ["1", "*", None]
    with pytest.raises(HierarchyError, match="no codes"):
        source(links).bind(pa.array([1.5]))


def test_depths_fall() -> None:
    for depths in ((), (1, 2), (2, 2), (1, 0)):
        with pytest.raises(HierarchyError, match="depths must fall"):
            source({1: []}, depths)
