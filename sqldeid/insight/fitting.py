"""Which hierarchy fits a column: a shipped one that covers every value, else a rule; no value goes into the job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.hierarchy import check, open_source, shipped
from sqldeid.insight.identifiers import is_text_age
from sqldeid.insight.profile import ColumnFacts
from sqldeid.insight.words import named, says_birth, says_number_of_things, says_year, words_of
from sqldeid.sql import column

FEW_VALUES = 12
"""Different numbers up to which a number is taken for a code."""

MOST_READ = 500
"""Different values up to which shipped hierarchies of other names are tried."""

_STEPS = 30
"""Bands of the finest level, about."""

_MASKED = 4
_NUMBERS = ("integer", "float", "number")
_LAST_ZIP = 99_999
_US_ZIPS = ("zip", "zipcode", "zip code")
"""Names that such codes have in the United States; elsewhere codes of five digits have others."""
_ZIPS = ("zip", "zipcode", "postal", "postcode", "post code", "postal code", "plz")

_SAFE_DATE = (
    "; Safe Harbor itself leaves the year alone, and none that tells an age over 89: an age in its place, with "
    "top_code = 90, does that"
)
_SAFE_YEAR = (
    "; Safe Harbor itself leaves no year that tells an age over 89: an age in its place, with top_code = 90, does that"
)
_SAFE_ZIP = (
    "; Safe Harbor itself leaves three digits at most, and those where more than 20,000 people live: of US codes "
    "hierarchy us/zip knows them"
)

_SAFE_THREE = (
    "; those of 3 digits with few people are one, 000; Safe Harbor itself leaves three digits at most: 5 are for other "
    "grounds"
)

Fit = tuple[object, str, bool]
"""The hierarchy as a job writes it, why, and whether it is sure to cover every value."""

TEXT_AGES = "age/text"
_YEARS = (1000, 3000)

_TRAVEL = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class Sought:
    """A quasi-identifying column, and what its greater numbers are cut to before, if they are."""

    facts: ColumnFacts
    top: int | None


def fit_all(sought: Sequence[Sought], relation: exp.Expr, engine: Engine) -> list[Fit]:
    """The hierarchies for quasi-identifying columns.

    Cost: one statement that scans the columns for which a shipped hierarchy may fit; their different values come here.
    """
    alike = {i: names for i, s in enumerate(sought) if (names := _alike(s.facts))}
    values = _values({i: sought[i] for i in alike}, relation, engine)
    return [_fit(s, _covering(alike[i], s, values[i]) if i in alike else None) for i, s in enumerate(sought)]


def _fit(sought: Sought, shipped_one: str | None) -> Fit:
    facts, top = sought.facts, sought.top
    if shipped_one is not None:
        return shipped_one, f"shipped, and covers its values{_top_of(shipped_one)}", True
    if facts.kind in ("date", "timestamp"):
        return {"dates": ["month", "year", "decade"]}, f"months, years, decades{_SAFE_DATE}", False
    if facts.kind == "text" and facts.looks.get("date", 0.0) == 1 and facts.longest >= len("2000-01-01"):
        return {"dates": ["month", "year", "decade"]}, f"dates in text: months, years, decades{_SAFE_DATE}", False
    if top is not None:
        return "age/5-10-20", "bands of 5, 10 and 20 years", facts.kind != "float"
    if _zip_like(facts):
        return _of_zip(facts)
    if is_text_age(facts):
        return TEXT_AGES, "ages in text, those over 89 as one; bands of 5, 10 and 20 years", False
    if _year_like(facts):
        return (
            {"bands": [5, 10, 20]},
            f"years in bands of 5, 10 and 20{_SAFE_YEAR if says_birth(facts.name) else ''}",
            True,
        )
    if facts.kind in _NUMBERS and says_number_of_things(facts.name):
        return {"suppress": True}, "numbers that stand for things: its values, or *", True
    if facts.kind in _NUMBERS and facts.different > FEW_VALUES and (widths := bands(facts)):
        return {"bands": widths}, "numbers in bands", facts.kind != "float"
    return {"suppress": True}, "its values, or *", True


def _top_of(name: str) -> str:
    """What a shipped hierarchy's top is called, where it is no star: whoever reads the release meets it."""
    none = pa.array([], pa.string())
    top = open_source(name, Path()).bind(none).labels[-1][0]
    return "" if top == "*" else f'; its top, for all values at once, is called "{top}"'


def _year_like(facts: ColumnFacts) -> bool:
    """Whether a column's numbers are years, by its name and their range."""
    low, high = facts.low or 0, facts.high or 0
    return facts.kind == "integer" and says_year(facts.name) and _YEARS[0] <= low <= high <= _YEARS[1]


def _zip_like(facts: ColumnFacts) -> bool:
    if facts.kind not in ("text", "integer"):
        return False
    looks = max(facts.looks.get("zip", 0.0), facts.looks.get("postcode", 0.0))
    return (bool(named(facts.name, _ZIPS)) or (facts.kind == "text" and looks >= 0.6)) and _characters(facts) > 1


def _is_zip(facts: ColumnFacts) -> bool:
    """Whether a column says by its name that it holds US ZIP codes, and nothing in it looks otherwise."""
    if not named(facts.name, _US_ZIPS):
        return False
    if facts.kind == "integer":
        return 0 <= (facts.low or 0) <= (facts.high or 0) <= _LAST_ZIP
    return facts.kind == "text" and facts.looks.get("zip", 0.0) == 1


def _of_zip(facts: ColumnFacts) -> Fit:
    if _is_zip(facts):
        return "us/zip", f"US ZIP codes: 5 digits, 3, 1{_SAFE_THREE}", False
    return {"mask": _masked(facts)}, f"a code: its last characters become *{_SAFE_ZIP}", True


def _characters(facts: ColumnFacts) -> int:
    return facts.longest if facts.kind == "text" else len(str(int(facts.high or 0)))


def _masked(facts: ColumnFacts) -> list[int]:
    return list(range(1, max(2, min(_MASKED + 1, _characters(facts)))))


def bands(facts: ColumnFacts) -> list[int | float]:
    """Three widths that double; the first is about a thirtieth of the range, and 1, 2 or 5 times a power of ten.

    So a width tells of the data no more than how large its range is, to a factor of two or so.
    """
    if facts.low is None or facts.high is None:
        return []
    width = (facts.high - facts.low) / _STEPS
    if not math.isfinite(width) or width <= 0:
        return []
    power = math.floor(math.log10(width))
    if facts.kind == "integer":
        power = max(power, 0)
    if not -6 <= power <= 15:
        return []
    step = next((s for s in (1, 2, 5) if s * 10.0**power >= width), 10)
    if power >= 0:
        return [step * 10**power * factor for factor in (1, 2, 4)]
    return [float(f"{step * factor}e{power}") for factor in (1, 2, 4)]


def _alike(facts: ColumnFacts) -> list[str]:
    """Shipped hierarchies of the column's name, or for text of any name; those that list their values first."""
    words = set(words_of(facts.name))
    names = [name for name in shipped() if name.split("/")[0] in ("adult", "mimic3")]
    alike = [name for name in names if set(words_of(name.split("/")[1])) <= words]
    if "sex" in words or "gender" in words:
        alike += [name for name in ("adult/sex", "mimic3/gender") if name not in alike]
    listed = [name for name in names if not open_source(name, Path()).data_derived]
    if facts.kind == "text" and 3 <= facts.different <= MOST_READ:
        alike += [name for name in listed if name not in alike]
    return sorted(alike, key=lambda n: n not in listed)


def _covering(names: Sequence[str], sought: Sought, values: pa.Array | None) -> str | None:
    """The first of these hierarchies that covers every value that is there."""
    if values is None:
        return None
    numeric = sought.facts.kind == "number"
    return next((name for name in names if not check(name, Path(), values, numeric=numeric).problems), None)


def _values(sought: Mapping[int, Sought], relation: exp.Expr, engine: Engine) -> dict[int, pa.Array | None]:
    """The different values of columns as a run will see them; None for dates that no calendar has."""
    if not sought:
        return {}
    columns = [{"number": i, "column": column(s.facts.name, "s")} for i, s in sought.items()]
    found = engine.ask("insight/list_texts", source=relation, columns=columns)
    numbers, texts = found.column("number"), found.column("value")
    return {i: _read(texts.filter(pc.equal(numbers, i)).combine_chunks(), s) for i, s in sought.items()}


def _read(texts: pa.Array, sought: Sought) -> pa.Array | None:
    try:
        values = texts.cast(_TRAVEL.get(sought.facts.kind, pa.string()))
    except pa.ArrowInvalid:
        return None
    if sought.top is None or sought.facts.kind == "number":
        return values
    return pc.unique(pc.min_element_wise(values, pa.scalar(sought.top, values.type), skip_nulls=False))
