"""Tables of other persons over a common table: the job's word, taken where the tables that both read allow it.

Patients and staff are joined with one table of wards. Where their keys have two names, and neither is a column of the
other, nobody can be looked up, and rows of the two that are alike may be one person's. The data holder may say that
nobody is in both (`other_persons`). That is believed only if each reads a table that the other does not, views not
counted; and it ends no comparison by a key that both have. It stands in warnings and certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqldeid.catalogue.beneath import beneath, own_tables
from sqldeid.engine.base import Engine
from sqldeid.making import Nature


def with_others(natures: Mapping[str, Nature], engine: Engine) -> dict[str, Nature]:
    """The same, where each knows whose word is believed."""
    found = {}
    for name, nature in natures.items():
        if nature.cohort is not None:
            others = [n for n in natures.values() if n is not nature and are_others(nature, n, engine)]
            believed = frozenset(other for n in others for other in n.names)
            nature = replace(nature, cohort=replace(nature.cohort, believed=believed))
        found[name] = nature
    return found


def are_others(here: Nature, there: Nature, engine: Engine) -> bool:
    """Whether either names the other as of other persons, and is believed."""
    if here.cohort is None or there.cohort is None or not is_stated(here, there):
        return False
    return own_tables(beneath(here.source, engine), beneath(there.source, engine), engine)


def is_stated(here: Nature, there: Nature) -> bool:
    """Whether either names the other as of other persons."""
    sides = ((here, there), (there, here))
    return any(a.cohort is not None and bool(a.cohort.other_persons & {*b.names}) for a, b in sides)
