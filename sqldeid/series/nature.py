"""What a run must know of a release of series: which others it can be compared with, and what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.ledger.hashing import spelling
from sqldeid.making import Nature, Read, every_column
from sqldeid.series.plan import SeriesPlan
from sqldeid.sql import column

_NOT_OF_CLASSES = {"source", "where", "variables", "perturb", "disagreement", "labels", "round", "shape"}
"""Keys of a series release that leave its classes as they are, or that change what is read, which is compared."""


def nature(plan: SeriesPlan) -> Nature:
    """What a run must know of a planned release."""
    return Nature(
        (plan.name,),
        plan.source,
        ledger=True,
        person=spelling(plan.person),
        subtracted=plan.person.name.casefold(),
        asked=_asked(plan),
        together=True,
        reckoned=() if plan.columns is None else ((f"{plan.key}.time", plan.columns.time),),
    )


def _asked(plan: SeriesPlan) -> str:
    """What of a job decides who is in a class of series with whom."""
    part = plan.part.model_dump(mode="json", exclude=_NOT_OF_CLASSES)
    items = () if plan.map is None else (plan.map.names, plan.map.items)
    return json.dumps([part, repr(items)], sort_keys=True)


def reads(plan: SeriesPlan, engine: Engine) -> Iterator[Read]:
    """What a release reads."""
    columns = plan.columns
    if columns is None:
        yield every_column("source", plan.source, engine, plan.key)
    else:
        person = column(plan.person.name, "s")
        # a value belongs to its time and variable: the three are one
        parts: list[exp.Expr] = [column(c.name, "s") for c in (columns.time, columns.variable, columns.value)]
        if engine.capabilities.dialect == "spark":  # its hash passes over NULL within a struct
            parts += [exp.Is(this=part.copy(), expression=exp.Null()) for part in parts]
            together = exp.Anonymous(this="XXHASH64", expressions=parts)
        else:
            together = exp.Anonymous(this="ROW", expressions=parts)
        yield Read("source", plan.source, person, [("measurement", together)])
    for name, table in (plan.sisters or {}).items():
        yield every_column(name, table, engine, plan.key)
    if plan.cohort is not None:
        yield every_column("cohort", plan.cohort.source, engine, plan.key)
