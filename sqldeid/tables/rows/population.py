"""A population beside its source: the values of a column in both, and the check that each person is there once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.tables.plan.plan import TablePlan


@dataclass(frozen=True, slots=True)
class Joined:
    """Distinct values of the source, in their order, then those that the population alone has.

    Parameters
    ----------
    n
        Rows of the source per value: none of the last ones; shape (values,).
    place
        Of each of the population's values among these; shape (the population's values,).
    """

    values: pa.Array
    n: Ints
    place: Ints


def join_values(source: pa.Array, n: Ints, population: pa.Array) -> Joined:
    """Put distinct values together; NULL is one."""
    seen = pc.index_in(population, value_set=source)
    new = pc.is_null(seen).to_numpy(zero_copy_only=False)
    place = np.zeros(len(population), dtype=np.int64)
    place[~new] = pc.drop_null(seen).to_numpy().astype(np.int64)
    place[new] = len(source) + np.arange(int(new.sum()))
    values = pa.concat_arrays([source, population.filter(pa.array(new))])
    return Joined(values, np.append(n, np.zeros(int(new.sum()), dtype=np.int64)), place)


def check_population(plan: TablePlan, engine: Engine) -> None:
    """Refuse a population whose rows would be taken for other persons than they are.

    Raises
    ------
    JobError
        If all of the source is it, and a person has several rows; or if a row stands for less than its own person.
    """
    if plan.weight is not None:
        unweighed = engine.row("tables/rows/count_unweighed", source=plan.population, weight=plan.weight)["unweighed"]
        if unweighed:
            raise JobError.at(
                f"{plan.key}.privacy.population.weights",
                f"{plan.weight.name} is NULL, less than 1 or more than a milliard in {unweighed:,} rows of "
                f"{plan.source_label}; a row stands for its own person at least: mend them in a source query",
            )
    if not plan.keyed:
        return
    row = engine.row("tables/rows/check_person", source=plan.population, person=plan.person_column)
    if row["persons"] == row["rows"]:
        return
    where, counted = f"{plan.key}.privacy.population", f"{row['persons']:,} values of {plan.person}"
    if plan.rest:
        raise JobError.at(
            f"{where}.rest",
            f"{plan.source_label} has {row['rows']:,} rows before where, but {counted}; persons are counted, so give "
            "one row per person in the source, or name a table that has",
        )
    raise JobError.at(
        f"{where}.table",
        f"has {row['rows']:,} rows, but {counted}; persons are counted, so name a table of one row per person",
    )
