"""Generalisation hierarchies: load, build, check, bind to a column's values, prefix-code. Pure.

>>> source = open_source("adult/age", folder)     # or a file, or {"bands": [5, 10]}; height known without data
>>> hierarchy = source.bind(distinct_values)      # leaves, groups and labels of every level
>>> codes, bits = hierarchy.codes()               # a level is `code >> bits[level]`
"""

from __future__ import annotations

from sqldeid.hierarchy.header import refuse_header
from sqldeid.hierarchy.inspection import HierarchyReport, as_csv, check, not_covered, paths, write_csv
from sqldeid.hierarchy.leaves import named_ranges, shipped_leaves
from sqldeid.hierarchy.model import Hierarchy, UncoveredValues
from sqldeid.hierarchy.sources import (
    HierarchySource,
    named_level,
    open_source,
    shipped,
    shipped_file,
    shipped_items,
    shipped_maps,
)

__all__ = [
    "Hierarchy",
    "HierarchyReport",
    "HierarchySource",
    "UncoveredValues",
    "as_csv",
    "check",
    "named_level",
    "named_ranges",
    "not_covered",
    "open_source",
    "paths",
    "refuse_header",
    "shipped",
    "shipped_file",
    "shipped_items",
    "shipped_leaves",
    "shipped_maps",
    "write_csv",
]
