"""Recognise a long table of measurements: whose, when, what, and how much; such tables are released as series."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqldeid.insight.profile import ColumnFacts, TableFacts
from sqldeid.insight.words import spelt, words_of

_WHAT = frozenset(
    "variable item itemid parameter param channel signal measure measurement test vital label lab labname analyte "
    "messwert".split()
)
_VALUES = frozenset("value valuenum numeric val reading result labresult wert valor valeur valore".split())
_UNITS = {
    "hours": frozenset("hour hours stunde stunden heure heures hora horas ora ore".split()),
    "minutes": frozenset("minute minutes min mins minuten minuto minutos".split()),
    "seconds": frozenset("second seconds sec secs sekunde sekunden seconde secondes segundo segundos".split()),
}
_OFFSET = "offset"
"""The end of the names of eICU's times, which are minutes since a stay began."""
_MOST_VARIABLES = 2_000
_FEWEST_ROWS = 5
"""Different variables of such a table, at most, and rows of each, at least: else a column rather numbers rows."""
_NUMBERS = ("integer", "float", "number")


@dataclass(frozen=True, slots=True)
class Measured:
    """The columns of a table of measurements.

    Parameters
    ----------
    items
        Different values of the variable.
    unit
        Of the time where it is a number: hours, minutes or seconds, as its name says; None of timestamps.
    """

    time: str
    unit: str | None
    variable: str
    items: int
    value: str


def measured(facts: TableFacts, person: str) -> Measured | None:
    """The columns in which a table that has many rows a person tells measurements; None where one is not known."""
    others = [c for c in facts.columns if c.name != person]
    time = _first(c for c in others if c.kind == "timestamp") or _first(c for c in others if _unit(c) is not None)
    variable = _first(c for c in others if _is_variable(c))
    value = _first(sorted((c for c in others if _is_value(c)), key=_likelihood))
    if time is None or variable is None or value is None or len({time.name, variable.name, value.name}) < 3:
        return None
    return Measured(time.name, _unit(time), variable.name, variable.different, value.name)


def _first(found: Iterable[ColumnFacts]) -> ColumnFacts | None:
    return next(iter(found), None)


def _words(facts: ColumnFacts) -> set[str]:
    return {*words_of(facts.name), *spelt(facts.name)}


def _unit(facts: ColumnFacts) -> str | None:
    """Of a column of numbers that is a time by its name, the unit that the name says."""
    if facts.kind not in _NUMBERS:
        return None
    if facts.name.casefold().endswith(_OFFSET):
        return "minutes"
    return next((unit for unit, words in _UNITS.items() if _words(facts) & words), None)


def _is_variable(facts: ColumnFacts) -> bool:
    few = 2 <= facts.different <= min(_MOST_VARIABLES, facts.there // _FEWEST_ROWS)
    return few and facts.kind in ("text", "integer") and bool(_words(facts) & _WHAT)


def _is_value(facts: ColumnFacts) -> bool:
    return facts.kind in _NUMBERS and facts.different > 2 and bool(_words(facts) & _VALUES)


def _likelihood(facts: ColumnFacts) -> tuple[bool, bool]:
    """Of several columns of values the number that stands for one in text comes first, then what has decimals."""
    return facts.name.casefold() != "valuenum", facts.kind == "integer"
