"""Fold the population by the codes of the source: for each combination its rows there, beside those of the source."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.tables.plan.plan import TablePlan

CHANCE = 1e-4
"""A filter that looks at nobody keeps all persons or none of each combination by a smaller chance than this."""


def refuse_outside(plan: TablePlan, engine: Engine, both: exp.Table, names: Sequence[exp.Identifier]) -> None:
    """Refuse a population that does not hold the source's persons.

    Raises
    ------
    JobError
        If it has fewer rows of a combination than the source, or a value that none of its columns' codes is of; or if
        a filter keeps all persons or none of each combination, as one by the quasi-identifying columns would.
    """
    row = engine.row("tables/fold/count_outside", both=both, words=list(names))
    where = f"{plan.key}.privacy.population.{'rest' if plan.rest else 'table' if plan.weight is None else 'weights'}"
    if row["uncoded"]:
        raise JobError.at(where, "gave other values when it was read again; it must not change while it is read")
    if row["outside"]:
        raise JobError.at(
            where,
            f"has fewer persons than {plan.source_label} of {row['outside']:,} combinations of quasi-identifying "
            "values; the population holds every person of the source, too: take both from one table, or add "
            "those that lack",
        )
    if plan.rest and plan.filtered and not row["parted"] and row["chance"] < CHANCE:
        raise JobError.at(
            where,
            f"does not go with this where: of each combination of quasi-identifying values in {plan.source_label} it "
            "keeps all persons or none, as a filter by these would, so that it tells strangers whom it leaves out; "
            "filter by what strangers do not know, draw a sample, or name a table of those who may be in the release",
        )


def fold_population(
    plan: TablePlan, engine: Engine, words: list[dict[str, object]], names: Sequence[exp.Identifier], classes: exp.Table
) -> exp.Table:
    """Words, n (rows of the source) and p (rows of the population) of every combination of either, on the bench.

    Parameters
    ----------
    words
        As the fold of the source takes them, with the population's coded values.
    classes
        The source's, on the bench.

    Cost: one scan of the population; its distinct combinations travel.
    """
    if plan.population is None:
        raise ValueError("there is no population")
    folded = engine.make(
        "tables/fold/fold_classes",
        f"{plan.name}_population",
        source=plan.population,
        words=words,
        sensitive=[],
        n=plan.weight,
        person=None,
    )
    there = engine.to_bench(folded)
    both = engine.bench.make(
        "tables/fold/join_population", f"{plan.name}_both", classes=classes, population=there, words=list(names)
    )
    refuse_outside(plan, engine.bench, both, names)
    return both
