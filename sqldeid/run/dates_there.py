"""Releases that are there, held to each other by what they tell of days: `verify` of what older versions let out.

What a release shows is taken from what was written and from the levels that its re-check has confirmed, and not from
what its note says of days, which older versions did not write. So a release of any version is found out.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, cast

from sqldeid import tables
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.making import NO_TRUE_DATES, Published
from sqldeid.publish import key_of
from sqldeid.run.dates import CAST_THEM, Unit, like_dates, shifted_beside, together, units_of, written_dates
from sqldeid.run.wings import Plan, nature_of

if TYPE_CHECKING:
    from sqldeid.tables import Unit as TableUnit

_ANEW = "Take back what was given out, and make it anew"


def refuse_told(plans: Sequence[Plan], there: Mapping[str, Published], engine: Engine) -> None:
    """Refuse published releases that show true dates beside shifted ones of the same persons.

    Parameters
    ----------
    plans, there
        Of releases that were checked again: what was published, by name, and the notes on them.

    Raises
    ------
    VerificationError
        If whoever holds one of them, or two that somebody may be given, finds the shifts.

    Cost: one scan of the text and numbers of each release that shifts dates, or is beside one that does.
    """
    planned = units_of([nature_of(p) for p in plans], engine)
    if not any(unit.days.shifted for unit in planned):
        return
    units = [_there(unit, plan, there, engine) for unit, plan in zip(planned, plans, strict=True)]
    for unit in units:
        if unit.days.shifted and unit.days.shown:
            _refuse(unit.days.shown[0], unit.days.shifted[0], NO_TRUE_DATES)
    for here, other in permutations(units, 2):
        if here.days.shifted and other.days.shown and together(here, other):
            fix = f"{NO_TRUE_DATES}, or, if nobody is ever given both, say so by never_with"
            _refuse(other.days.shown[0], here.days.shifted[0], fix)
    for unit in units:
        if moved := shifted_beside(unit, units):
            for name in unit.names:
                _refuse_written(there[name], moved[0], engine)


def _there(unit: Unit, planned: Plan, there: Mapping[str, Published], engine: Engine) -> Unit:
    """What releases tell of days as they are there; of series and events what their plan says: nothing."""
    if not planned.key.startswith("tables."):
        return unit
    return replace(unit, days=tables.days_there(cast("TableUnit", planned), there, engine))


def _refuse(true: str, moved: str, fix: str) -> None:
    raise VerificationError.at(
        true,
        f"the release shows dates finer than years beside {moved}, whose dates are shifted: whoever holds both finds "
        f"the shifts. {_ANEW}: {fix}",
    )


def _refuse_written(published: Published, moved: str, engine: Engine) -> None:
    written, note = published
    for name in written_dates(written, engine.columns(written), engine):
        key, said = like_dates(key_of(note), name)
        raise VerificationError.at(
            key, f"{said}, and beside {moved}, whose dates are shifted, true dates tell the shift. {_ANEW}: {CAST_THEM}"
        )
