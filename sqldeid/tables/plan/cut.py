"""The hierarchy of a quasi-identifying column that is cut at the top (`top_code`)."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

from sqldeid import job as jobfile
from sqldeid.engine.base import Column
from sqldeid.errors import JobError
from sqldeid.hierarchy import HierarchySource
from sqldeid.hierarchy.topcoded import top_coded
from sqldeid.tables.plan.columns import Uncovered

_BY_CHARACTER = ("mask", "keep_first", "dates")


def cut_hierarchy(
    source: HierarchySource, part: jobfile.Column, found: Column, uncovered: Uncovered, key: str
) -> HierarchySource:
    """The hierarchy as it was opened, or, where the column is cut, with labels that say so. Nothing is read.

    Raises
    ------
    JobError
        If a label would name numbers that are greater than it says, or the column's type does not have the top code.
    """
    if part.top_code is None:
        return source
    by = [r for r in _BY_CHARACTER if isinstance(part.hierarchy, jobfile.HierarchyRule) and getattr(part.hierarchy, r)]
    if by:
        raise JobError.at(
            f"{key}.top_code",
            f"does not go with {by[0]}, whose labels are digits of numbers that may have been cut; use "
            "bands, or edges with tails",
        )
    most = Decimal(repr(part.top_code))
    shown = f"{most:f}".rstrip("0").rstrip(".") if "." in f"{most:f}" else f"{most:f}"
    try:
        return top_coded(
            source, _value(found, most, shown, key), shown, numeric=found.kind == "number", uncovered=uncovered
        )
    except JobError as error:
        raise type(error).at(f"{key}.top_code", error.message) from None


def _value(found: Column, most: Decimal, shown: str, key: str) -> pa.Array:
    """The top code as a value of the column, as values of its type reach Python."""
    places = re.search(r", *([0-9]+)\)", found.type)
    decimals = 0 if found.kind == "integer" or "HUGEINT" in found.type else int(places[1]) if places else None
    if decimals is not None and max(0, -int(most.normalize().as_tuple().exponent)) > decimals:
        raise JobError(f"{shown} is no number of the column, which has {decimals} decimals", key=key)
    if found.kind == "integer":
        return pa.array([int(most)], pa.int64())
    if found.kind == "float":
        single = found.type.upper() in ("FLOAT", "REAL", "FLOAT4")
        return pa.array([float(np.float32(most)) if single else float(most)], pa.float64())
    return pa.array([shown], pa.string())
