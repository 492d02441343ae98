"""Fold the population by the codes of the source: for each combination its rows there, beside those of the source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.tables.plan.plan import TablePlan

if TYPE_CHECKING:
    from sqldeid.tables.fold.fold import Coded

CHANCE = 1e-4
"""What a filter that looks at no quasi-identifying value does by a smaller chance than this is taken to be no chance:
to keep all persons or none of each combination, or nobody of so many groups of values."""


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


def refuse_left_out(
    plan: TablePlan, engine: Engine, both: exp.Table, names: Sequence[exp.Identifier], columns: Sequence[Coded]
) -> None:
    """Refuse a filter that leaves out whole groups of quasi-identifying values, beside whatever else it looks at.

    Proof of the chance. Let a filter keep n of p persons, any n of them by the same chance, whatever their values. That
    it keeps nobody of a certain set of groups, who are c persons, has the chance of (p - n)/p · (p - n - 1)/(p - 1) · …
    with c factors, at most (1 - n/p)^c. Of g groups there are (g over z) sets of z: that it leaves out some z groups of
    c persons or more has at most (g over z) times that chance. The groupings, which are the combinations and each
    column's values on each level but the top, share `CHANCE`.

    Raises
    ------
    JobError
        If chance does not explain what it leaves out.
    """
    whole = [{"word": name, "mask": -1} for name in names]
    groupings: list[tuple[str, list[dict[str, object]]]] = [("combinations of quasi-identifying values", whole)]
    for c in columns:
        word = names[c.field.word]
        groupings += [
            (f"values of {c.qi.name}", [{"word": word, "mask": c.field.mask(level)}])
            for level in range(c.hierarchy.height - 1)
        ]
    asked = [{"number": number, "masks": masks} for number, (_, masks) in enumerate(groupings)]
    least = math.log(CHANCE / len(groupings))
    for row in engine.rows("tables/fold/count_left_out", both=both, groupings=asked):
        groups, gone, left_out, n, p = (int(row[name]) for name in ("groups", "gone", "left_out", "n", "p"))
        if log_chance(groups, gone, left_out, n, p) < least:
            raise JobError.at(
                f"{plan.key}.privacy.population.rest",
                f"does not go with this where: it keeps nobody of {gone:,} of {groups:,} "
                f"{groupings[row['number']][0]}, which chance does not explain, so that it tells strangers whom it "
                "leaves out. Take what it says of these into the source, which then is the population: "
                'source = { query = "SELECT … WHERE …" }, and leave in where what strangers do not know',
            )


def log_chance(groups: int, gone: int, left_out: int, n: int, p: int) -> float:
    """Logarithm of the chance, or of more, that a filter leaves out as many groups of so many persons.

    Parameters
    ----------
    gone, left_out
        Groups of which it keeps nobody, and their persons.
    n, p
        The persons that it keeps, and all.
    """
    if not gone:
        return 0.0
    sets = math.lgamma(groups + 1) - math.lgamma(gone + 1) - math.lgamma(groups - gone + 1)
    return sets + left_out * math.log1p(-n / p)


def fold_population(
    plan: TablePlan,
    engine: Engine,
    words: list[dict[str, object]],
    names: Sequence[exp.Identifier],
    classes: exp.Table,
    columns: Sequence[Coded],
) -> exp.Table:
    """Words, n (rows of the source) and p (rows of the population) of every combination of either, on the bench.

    Parameters
    ----------
    words
        As the fold of the source takes them, with the population's coded values.
    classes, columns
        The source's, on the bench, and how they are coded.

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
    if plan.rest and plan.filtered:
        refuse_left_out(plan, engine.bench, both, names, columns)
    return both
