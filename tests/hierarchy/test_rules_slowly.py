"""Rules against a slow, obvious computation value by value; and files that are written and read again."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal, localcontext
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.hierarchy import UncoveredValues, open_source, paths, write_csv

NOWHERE = Path("/nonexistent")


def labels_of(spec, values, **options):
    """Per value, its labels between the original and the top."""
    hierarchy = open_source(spec, NOWHERE).bind(values, **options)
    levels = range(1, hierarchy.height - 1)
    return [tuple(hierarchy.labels[x][hierarchy.groups[x][leaf]] for x in levels) for leaf in hierarchy.leaf]


def band(value: Decimal, width: Decimal) -> str:
    low = (value / width).to_integral_value("ROUND_FLOOR") * width
    return f"[{text(low)}, {text(low + width)})"


def text(number: Decimal) -> str:
    plain = format(number, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain in ("-0", "") else plain


decimals = st.decimals(-10_000, 10_000, places=3)
widths = st.sampled_from([[5, 10, 20], [1], [0.5, 1, 3], [0.1, 0.3], [2.5, 10]])


@given(st.lists(decimals, unique=True, min_size=1), widths)
def test_bands_of_decimals(values: list[Decimal], widths: list[float]) -> None:
    expected = [tuple(band(v, Decimal(str(w))) for w in widths) for v in values]
    assert labels_of({"bands": widths}, pa.array([str(v) for v in values]), numeric=True) == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1), widths)
def test_bands_of_integers(values: list[int], widths: list[float]) -> None:
    expected = [tuple(band(Decimal(v), Decimal(str(w))) for w in widths) for v in values]
    assert labels_of({"bands": widths}, pa.array(values, pa.int64())) == expected


@given(st.lists(st.floats(-1e9, 1e9).filter(lambda x: x != 0), unique=True, min_size=1), widths)
def test_bands_of_floats_take_the_number_as_it_is_written(values: list[float], widths: list[float]) -> None:
    with localcontext(prec=400):
        expected = [tuple(band(Decimal(repr(v)), Decimal(str(w))) for w in widths) for v in values]
    assert labels_of({"bands": widths}, pa.array(values)) == expected


@given(st.lists(decimals, unique=True, min_size=1), st.booleans())
def test_edges(values: list[Decimal], tails: bool) -> None:
    edges = [[-10, 0, 0.5, 60, 80], [-10, 0.5, 80]]

    def label(value: Decimal, level: list[float]) -> str | None:
        cuts = [Decimal(str(e)) for e in level]
        if value < cuts[0]:
            return f"< {cuts[0]}" if tails else None
        if value >= cuts[-1]:
            return f">= {cuts[-1]}" if tails else None
        return next(f"[{a}, {b})" for a, b in itertools.pairwise(cuts) if a <= value < b)

    expected = [tuple(label(v, level) for level in edges) for v in values]
    outside = [i for i, labels in enumerate(expected) if None in labels]
    column = pa.array([str(v) for v in values])
    try:
        assert labels_of({"edges": edges, "tails": tails}, column, numeric=True) == expected
        assert not outside
    except UncoveredValues as error:
        assert error.indices.tolist() == outside


@given(st.lists(st.text(max_size=6), unique=True, min_size=1))
def test_characters(values: list[str]) -> None:
    column = pa.array(values, pa.string())
    masked = [tuple(v[: max(len(v) - n, 0)] + "*" * min(n, len(v)) for n in (1, 2, 4)) for v in values]
    assert labels_of({"mask": [1, 2, 4]}, column) == masked
    assert labels_of({"keep_first": [3, 1]}, column) == [(v[:3], v[:1]) for v in values]


@given(st.lists(st.dates(), unique=True, min_size=1))
def test_dates_timestamps_and_iso_text(values: list[dt.date]) -> None:
    units = ["day", "month", "quarter", "year", "decade"]
    expected = [
        (
            f"{v.year:04d}-{v.month:02d}-{v.day:02d}",
            f"{v.year:04d}-{v.month:02d}",
            f"{v.year:04d}-Q{(v.month + 2) // 3}",
            f"{v.year:04d}",
            f"{v.year // 10 * 10:04d}s",
        )
        for v in values
    ]
    assert labels_of({"dates": units}, pa.array(values, pa.date32())) == expected
    moments = pa.array([dt.datetime(v.year, v.month, v.day, 23, 59, 59, 999_999) for v in values], pa.timestamp("us"))
    assert labels_of({"dates": units}, moments) == expected
    assert labels_of({"dates": units}, pa.array([v.isoformat() for v in values])) == expected


@given(st.lists(st.none() | st.text(min_size=1, max_size=5), unique=True, min_size=1))
def test_a_written_hierarchy_reads_back(tmp_path_factory, values: list[str | None]) -> None:
    """Whatever the values hold: delimiters, quotes, line ends."""
    hierarchy = open_source({"keep_first": [3, 1]}, NOWHERE).bind(pa.array(values, pa.string()))
    path = tmp_path_factory.mktemp("h") / "built.csv"
    write_csv(hierarchy, path)
    again = open_source("built.csv", path.parent).bind(hierarchy.values)
    assert list(paths(again)) == list(paths(hierarchy))
