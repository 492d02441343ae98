"""Independent re-check of series that are linked to a table release: on both, as written, joined by the new numbers.

What the table release says of each number comes from its rows, by their released values; it is held against the
classes that series were formed in, and classes of the join are counted anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.series.plan import SeriesPlan


def verify_linked(
    plan: SeriesPlan, measured: exp.Table, beside: exp.Table, persons: exp.Table | None, engine: Engine
) -> int:
    """Hold both written releases against each other; the number of persons of the smallest class of the join.

    Parameters
    ----------
    plan
        With no k below that of the table.
    measured
        The written series (series/measure_written).
    beside
        number BIGINT, class BIGINT of the written table release; NULL: of no class that it may have.
    persons
        number, table_class, class that each person's series was formed in; None where nobody knows any more, and
        classes are counted by length and variables.

    Raises
    ------
    VerificationError
        If a person is in one release alone, or in another class of the table than it should be, or too few share one.
    """
    row = engine.row("series/compare_linked", measured=measured, beside=beside, persons=persons)
    problems = list(_problems(plan, row))
    if problems:
        raise VerificationError.at(
            f"{plan.key}.link", f"the releases failed their re-check together: {'; '.join(problems)}"
        )
    return int(row["smallest"])


def _problems(plan: SeriesPlan, row: dict[str, int]) -> Iterator[str]:
    table = f"tables.{plan.part.link}"
    if row["rows"] != row["numbers"]:
        yield f"{row['rows'] - row['numbers']} rows of {table} have the number of another row"
    for what, text in (
        ("unplaced", f"rows of {table} are in no class that it may have"),
        ("table_only", f"persons are in {table} without a series"),
        ("series_only", f"persons have series and no row in {table}"),
        ("misplaced", f"persons are in another class of {table} than their series were formed in"),
    ):
        if row[what]:
            yield f"{row[what]} {text}"
    k = plan.part.privacy.k
    for what, least in (("by_length", max(k, plan.part.durations.k)), ("smallest", k)):
        if row["numbers"] and row[what] < least:
            yield f"a class of both together has {row[what]} persons, not {least}"
