"""What is refused beside shifted dates before a search begins, and what a plan says that a run will look at.

A written date is refused once it is written (`sqldeid.run.dates`), which may be hours after the run began. So columns
that leave as in the source are counted there first: in the first rows, and where most of these are dates in all.
What is generalised, or stacked, is only known once it is written. An epsilon-safe release has no such column.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from sqldeid import tables
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.making import Hearing
from sqldeid.run.dates import (
    CAST_THEM,
    WRITTEN_IN,
    Unit,
    like_dates,
    refuse_together,
    shifted_beside,
    units_of,
    written_dates,
)
from sqldeid.run.places import naming_release
from sqldeid.run.wings import Plan, nature_of

if TYPE_CHECKING:
    from sqldeid.tables import InSource
    from sqldeid.tables import Unit as TableUnit

FIRST = 10_000
"""Rows that are looked at before all are: they cost next to nothing, also of a million."""


def refuse_planned(plans: Sequence[Plan], engine: Engine) -> None:
    """Refuse what is known before anything is read, of all releases before any of them is made.

    Raises
    ------
    JobError
        If dates are shifted, and others shown as in the source, in one release or in two of the same persons.
    """
    for planned in plans:
        if _is_table(planned):
            tables.refuse_bare(cast("TableUnit", planned))
    refuse_together(units_of([nature_of(p) for p in plans], engine))


def refuse_in_source(plans: Sequence[Plan], engine: Engine, listener: Hearing) -> None:
    """Refuse written dates that would leave as they are in the source, beside dates that this run shifts.

    Cost: the first rows of what each such release reads; one scan of the columns in which most of these are dates.

    Raises
    ------
    JobError
        If most of the values of such a column are written like dates.
    """
    for planned, unit, moved in _beside(plans, engine):
        listener.step(unit.names[0], "looking for written dates")
        with naming_release(planned.key):
            for read in tables.to_look_at(cast("TableUnit", planned), engine).reads:
                _refuse_read(read, moved[0], engine)


def told_in_plan(plans: Sequence[Plan], engine: Engine) -> dict[str, Mapping[str, Sequence[str]]]:
    """By release what a run will look at beside shifted dates, by keys in the job; for `--plan`.

    Cost: no statement but of the catalogue.
    """
    found: dict[str, Mapping[str, Sequence[str]]] = {}
    for planned, _, moved in _beside(plans, engine):
        there = tables.to_look_at(cast("TableUnit", planned), engine)
        found[planned.name] = {
            "shifted": moved,
            "in_source": [
                f"{read.key}.columns.{name}"
                for read in there.reads
                for name, source in read.columns.items()
                if source.kind in WRITTEN_IN
            ],
            "once_written": there.labels,
            "levels": there.levels,
        }
    return found


def in_words(looked: Mapping[str, Sequence[str]]) -> str:
    """What a plan says of it."""
    shifted = _names(looked["shifted"])
    refused = [
        (looked["in_source"], "{} where most values are written dates (looked at before the search)"),
        (looked["once_written"], "{} where most labels are (once written)"),
        (looked["levels"], "{} at levels finer than years (once found)"),
    ]
    told = "; ".join(text.format(_names(keys)) for keys, text in refused if keys)
    return f"{shifted} {'are' if len(looked['shifted']) > 1 else 'is'} shifted. Refused: {told or 'nothing else'}"


def _names(keys: Sequence[str]) -> str:
    """Columns by their names; with their table where there are several."""
    parts = [key.removeprefix("tables.").split(".columns.", 1) for key in keys]
    alone = len({table for table, *_ in parts}) == 1
    return ", ".join(parts_of[-1] if alone else ".".join(parts_of) for parts_of in parts)


def _beside(plans: Sequence[Plan], engine: Engine) -> Iterator[tuple[Plan, Unit, list[str]]]:
    """The tables beside whose dates, or those of others of the same persons, some are shifted; these columns."""
    units = units_of([nature_of(p) for p in plans], engine)
    for planned, unit in zip(plans, units, strict=True):
        if _is_table(planned) and (moved := shifted_beside(unit, units)):
            yield planned, unit, moved


def _is_table(planned: Plan) -> bool:
    return planned.key.startswith("tables.")


def _refuse_read(read: InSource, moved: str, engine: Engine) -> None:
    columns = {source.name: source for source in read.columns.values()}
    likely = written_dates(read.source, [*columns.values()], engine, first=FIRST)
    found = written_dates(read.source, [columns[name] for name in likely], engine)
    for name, source in read.columns.items():
        if source.name in found:
            key, said = like_dates(read.key, name)
            raise JobError.at(
                key, f"{said}, and beside {moved}, whose dates are shifted, true dates tell the shift; {CAST_THEM}"
            )
