"""Rule for dates: day, month, quarter, year, decade."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Flags
from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.column import Column
from sqldeid.hierarchy.level import Level, numbered

UNITS = ("day", "month", "quarter", "year", "decade")
_CAST = (
    "Make dates of it in a source query: of 20260131 by strptime(CAST(… AS VARCHAR), '%Y%m%d') in DuckDB, on Postgres "
    "and Spark by to_date in a view"
)
INFINITE_DAYS = 2**31 - 1
INFINITE_MICROSECONDS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Dates:
    """Dates, timestamps or ISO dates in text, generalised to some of day, month, quarter, year and decade.

    Parameters
    ----------
    units
        From fine to coarse.
    """

    units: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.units or any(u not in UNITS for u in self.units):
            raise HierarchyError(f"dates: choose from {', '.join(UNITS)}")
        places = [UNITS.index(u) for u in self.units]
        if places != sorted(set(places)):
            raise HierarchyError(f"dates: name the units from fine to coarse: {', '.join(UNITS)}")

    @property
    def names(self) -> tuple[str, ...]:
        """One per level."""
        return self.units

    @property
    def name(self) -> str:
        """For messages."""
        return f"dates {', '.join(self.units)}"

    def levels(self, column: Column) -> list[Level]:
        """Group per level; infinite dates and text that is no ISO date are uncovered."""
        day, finite = days(column)
        month = day.astype("datetime64[M]").astype(np.int64)
        key = {"day": day.astype(np.int64), "month": month, "quarter": month // 3, "year": month // 12}
        key["decade"] = key["year"] + 1970
        key["decade"] //= 10
        result = []
        for unit in self.units:
            ids, found = numbered(key[unit])
            result.append(Level.of(ids, [_label(unit, k) for k in found.tolist()], finite))
        return result


def _label(unit: str, key: int) -> str:
    """`2101-03-05`, `2101-03`, `2101-Q1`, `2101` or `2100s`."""
    if unit == "day":
        return str(np.datetime64(key, "D"))
    if unit == "decade":
        return f"{key * 10:04d}s"
    parts = {"month": 12, "quarter": 4, "year": 1}[unit]
    year, part = divmod(key, parts)
    return f"{year + 1970:04d}" + {"month": f"-{part + 1:02d}", "quarter": f"-Q{part + 1}", "year": ""}[unit]


def days(column: Column) -> tuple[npt.NDArray[np.datetime64], Flags]:
    """The day of each value, and which values have one (1970-01-01 where not)."""
    if column.kind == "text":
        return _days_of_text(column.texts)
    if column.kind == "timestamp":
        moments = pc.fill_null(column.plain.cast(pa.timestamp("us"), safe=False).cast(pa.int64()), 0).to_numpy()
        finite = ~column.null & (moments < INFINITE_MICROSECONDS) & (moments > -INFINITE_MICROSECONDS)
        return np.where(finite, moments, 0).astype("datetime64[us]").astype("datetime64[D]"), finite
    if column.kind == "date":
        numbers = pc.fill_null(column.plain.cast(pa.date32()).cast(pa.int32()), 0).to_numpy()
        finite = ~column.null & (numbers < INFINITE_DAYS) & (numbers > -INFINITE_DAYS)
        return np.where(finite, numbers, 0).astype("datetime64[D]"), finite
    raise HierarchyError(f"dates: the column holds {column.kind} values, not dates. {_CAST}")


def _days_of_text(texts: pa.Array) -> tuple[npt.NDArray[np.datetime64], Flags]:
    """Read `YYYY-MM-DD`, with or without a time behind it; a day that the calendar lacks is none."""
    pattern = r"^(?P<y>[0-9]{4})-(?P<m>0[1-9]|1[0-2])-(?P<d>[0-3][0-9])(?:[ T][0-9:.]+)?$"
    parts = pc.extract_regex(texts, pattern)
    fills = {"y": 1970, "m": 1, "d": 0}
    year, month, day = (
        pc.fill_null(pc.struct_field(parts, f).cast(pa.int64()), x).to_numpy() for f, x in fills.items()
    )
    first = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    result = first.astype("datetime64[D]") + (day - 1)
    finite = (day > 0) & (result.astype("datetime64[M]") == first)
    return np.where(finite, result, np.datetime64(0, "D")), finite
