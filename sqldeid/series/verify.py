"""Independent re-check of a release of series: its own SQL on what was written, never on what was perturbed.

It holds what was written against the shortened series and the targets: every released length at least `durations.k`
persons, every target at least `privacy.k` distinct persons, features within the distance that is reported, NULLs where
they were, series shortened only, persons numbered from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.publish import names_of
from sqldeid.series.feasible import greatest_variance, least_variance
from sqldeid.series.features import Classes, Measured
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.result import SeriesVerified
from sqldeid.series.shape import Shaped
from sqldeid.series.verify_link import verify_linked
from sqldeid.sql import identifier, render

FEATURES = ("mean", "variance", "minimum", "maximum")
SLACK, RELATIVE_SLACK = 1e-6, 1e-9
"""What two ways to compute a feature may differ by: of its unit, and of the greatest target and distance."""


def verify(
    plan: SeriesPlan,
    shaped: Shaped,
    written: exp.Expr,
    numbers: Ints,
    tau: Mapping[str, float],
    engine: Engine,
    beside: exp.Table | None = None,
) -> SeriesVerified:
    """Hold what was written against what it must be.

    Parameters
    ----------
    shaped
        The shortened series, and what they must be.
    written
        The staged release; with `numbers`, (persons,), the new number of each person, 0 for who is not released.
    tau
        The distances from targets that are reported.
    beside
        What the written table release that they are linked to says of each number: number, class.

    Raises
    ------
    VerificationError
        If anything is not as promised.

    Cost: one scan of the release and one of the shortened series, where they are; features are compared on the bench.
    """
    unfolded = unfold(plan, shaped.named, written, engine)
    found = engine.make("series/measure_written", f"{plan.name}_verify_measured", unfolded=unfolded)
    bench, there = engine.bench, engine.to_bench(found)
    expected = _expected(plan, shaped.measured, shaped.classes, numbers, bench)
    persons = _persons(plan, shaped, numbers, bench)
    row = _compare(plan, unfolded, there, expected, persons, shaped.cut, engine)
    counts = bench.row("series/count_classes", expected=expected, persons=persons)
    _refuse(plan, row, counts, allowed(tau, shaped.classes), malformed(plan, unfolded, engine))
    refuse_off_grid(plan, shaped.measured, shaped.classes)
    if beside is not None:
        verify_linked(plan, there, engine.to_bench(beside), persons, bench)
    for where, table in ((engine, unfolded), (engine, found), (bench, expected), (bench, persons)):
        where.drop(table)
    return SeriesVerified(
        persons=persons_of(shaped),
        released=int(row["released"]),
        lengths=int(counts["lengths"]),
        smallest_length=int(counts["by_length"]),
        classes=int(counts["classes"]),
        smallest_class=int(counts["by_class"]),
        tau={name: float(row[name]) for name in FEATURES},
    )


def persons_of(shaped: Shaped) -> int:
    """Persons of the source, those of too short a series among them; of a link those who have series."""
    link = shaped.link
    return (len(shaped.prepared.person_number) if link is None else link.in_series) + shaped.prepared.too_short


def refuse_off_grid(plan: SeriesPlan, measured: Measured, classes: Classes) -> None:
    """Every target that is made common is a whole number of its variable's public steps, of a variance its root."""
    kept = np.flatnonzero(~np.isnan(classes.targets.values).all(axis=1))
    keys = np.stack([classes.of_row[kept], measured.features.variable_number[kept]], axis=1)
    group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    wrong = off_grid(classes.targets.values[kept], classes.targets.step[kept], measured.features.n[kept], group)
    if wrong:
        text = f"{wrong} targets are not on the grid that they are rounded to"
        raise VerificationError.at(plan.key, f"the release failed its re-check: {text}")


def off_grid(targets: Floats, step: Floats, n: Ints, group: Ints) -> int:
    """Targets (rows, 4) that are no whole number of steps, counted by division alone.

    Of a variance it is the root; or the least or greatest that all of a group can have with its extremes, where no
    whole number lies between.
    """
    with np.errstate(invalid="ignore"):  # means alone have no extremes, and a step of 0 is none
        wrong = _off_grid(targets, step, n, group)
    return int(wrong.sum())


def _off_grid(targets: Floats, step: Floats, n: Ints, group: Ints) -> Flags:
    unit = np.where(step > 0, step, np.nan)[:, None]
    cells = np.stack([targets[:, 0], np.sqrt(targets[:, 1]), targets[:, 2], targets[:, 3]], axis=1) / unit
    wrong = ~np.isnan(targets) & ~(np.abs(cells - np.round(cells)) <= 1e-7 + 1e-9 * np.abs(cells))
    below, above = cells[:, 0] - cells[:, 2], cells[:, 3] - cells[:, 0]
    least, most = np.zeros(len(cells)), np.full(len(cells), np.inf)
    np.maximum.at(least, group, least_variance(below, above, n))
    np.minimum.at(most, group, greatest_variance(below, above, n))
    least, most = np.sqrt(least)[group], np.sqrt(most)[group]
    between = np.floor(most + 1e-7) >= np.ceil(least - 1e-7)
    bound = np.minimum(np.abs(cells[:, 1] - least), np.abs(cells[:, 1] - most)) <= 1e-6 * (1 + most)
    wrong[:, 1] &= between | ~bound
    return wrong


def malformed(plan: SeriesPlan, unfolded: exp.Table, engine: Engine) -> Iterator[str]:
    """What no release of series may have: numbers other than 1 to as many as there are persons, or rows of NULL alone.

    Cost: one scan of the release.
    """
    wide = plan.part.shape == "wide"
    row = engine.row("series/check_rows", unfolded=unfolded, wide=wide)
    if row["misnumbered"]:
        yield f"person_number does not number its {row['persons']} persons anew, from 1"
    if row["empty"]:
        yield f"{row['empty']} {'persons' if wide else 'series'} have no value at all"


def _compare(
    plan: SeriesPlan,
    unfolded: exp.Table,
    found: exp.Table,
    expected: exp.Table,
    persons: exp.Table,
    cut: exp.Table,
    engine: Engine,
) -> dict[str, float]:
    """What differs from what was expected; with `shared`, records need not stand where the source has them."""
    shared = plan.part.perturb.method == "shared"
    features = render("series/compare_features", measured=found, expected=expected, same_records=not shared)
    row = engine.bench.query(features).to_pylist()[0]
    if shared:
        return {**row, "moved": 0}
    places = render("series/compare_places", unfolded=unfolded, cut=cut, persons=engine.from_bench(persons))
    return {**row, "moved": int(engine.query(places).to_pylist()[0]["moved"])}


def allowed(tau: Mapping[str, float], classes: Classes) -> dict[str, float]:
    """The greatest distance from a target that passes, by feature: what is reported, and what floats may add."""
    greatest = np.nanmax(np.abs(classes.targets.values), axis=0, initial=0.0)
    return {
        name: tau[name] + SLACK + RELATIVE_SLACK * (float(greatest[i]) + tau[name]) for i, name in enumerate(FEATURES)
    }


def unfold(plan: SeriesPlan, names: Mapping[int, str], written: exp.Expr, engine: Engine) -> exp.Table:
    """What was written in the long form, by variable number; its columns must be those of the job."""
    columns = engine.columns(written, key=plan.key)
    there = list(zip(names_of(columns, plan.key), (c.kind for c in columns), strict=True))
    key = [("person_number", "integer"), ("step", "integer")]
    long = plan.part.shape == "long"
    wanted = key + (
        [("variable", "text"), ("value", "float")] if long else [(name, "float") for name in names.values()]
    )
    if there != wanted:
        raise VerificationError.at(
            plan.key, "the release failed its re-check: its columns are not those that the job names"
        )
    unfolded = engine.workbench(f"{plan.name}_verify_written")
    if long:
        table = engine.put(f"{plan.name}_verify_names", name_table(names))
        engine.run("series/unfold_long", unfolded=unfolded, written=written, names=table)
    else:
        variables = [{"number": i, "name": identifier(name)} for i, name in names.items()]
        engine.run("series/unfold_wide", unfolded=unfolded, written=written, variables=variables)
    return unfolded


def name_table(names: Mapping[int, str]) -> pa.Table:
    """Variables by number."""
    return pa.table(
        {"variable_number": pa.array(list(names), pa.int32()), "name": pa.array(names.values(), pa.string())}
    )


def _expected(plan: SeriesPlan, measured: Measured, classes: Classes, numbers: Ints, engine: Engine) -> exp.Table:
    kept = np.flatnonzero(~classes.dropped)
    person = measured.person_at[kept]
    targets = classes.targets.values[kept]
    rows = {
        "number": numbers[person],
        "variable_number": measured.features.variable_number[kept].astype(np.int32),
        "length": measured.lengths[person],
        "class": classes.of_row[kept],
        "n": measured.features.n[kept],
        **{name: pa.array(targets[:, i], mask=np.isnan(targets[:, i])) for i, name in enumerate(FEATURES)},
    }
    return engine.put(f"{plan.name}_verify_expected", pa.table(rows))


def _persons(plan: SeriesPlan, shaped: Shaped, numbers: Ints, engine: Engine) -> exp.Table:
    measured, classes, link = shaped.measured, shaped.classes, shaped.link
    there = np.flatnonzero(numbers > 0)
    rows = {
        "number": numbers[there],
        "person_number": measured.persons[there],
        "length": measured.lengths[there],
        "class": classes.of_person[there],
        "table_class": np.zeros(len(there), dtype=np.int64) if link is None else link.table_class[there],
    }
    return engine.put(f"{plan.name}_verify_persons", pa.table(rows))


def _refuse(
    plan: SeriesPlan,
    row: Mapping[str, float],
    counts: Mapping[str, int],
    most: Mapping[str, float],
    malformed: Iterable[str],
) -> None:
    problems = [*malformed, *(_too_few(plan, counts) if row["released"] else ())]
    for what, text in (
        ("missing", "series are missing"),
        ("unexpected", "series are not what the source gives"),
        ("wrong_length", "series are not of the length of their class"),
        ("wrong_records", "series have more or fewer records than the source"),
        ("moved", "records stand where the source has none"),
    ):
        if row[what]:
            problems.append(f"{int(row[what])} {text}")
    for name in FEATURES:
        if not row[name] <= most[name]:
            problems.append(f"a released {name} is farther from its target than the reported maximum")
    if problems:
        raise VerificationError.at(plan.key, f"the release failed its re-check: {'; '.join(problems)}")


def _too_few(plan: SeriesPlan, counts: Mapping[str, int]) -> Iterator[str]:
    """Groups of fewer persons than the job asks for; 0 is none of the kind, but for lengths and classes."""
    asked = plan.part.privacy
    if counts["by_length"] < plan.part.durations.k:
        yield f"a length is shared by {counts['by_length']} persons, not {plan.part.durations.k}"
    if counts["by_class"] < asked.k:
        yield f"a feature class has {counts['by_class']} persons, not {asked.k}"
    if asked.nulls != "source" and 0 < counts["by_variable"] < asked.k:
        yield f"targets of a variable are shared by {counts['by_variable']} persons, not {asked.k}"
    if asked.nulls in ("null-pattern", "null-strict") and 0 < counts["by_absent"] < asked.k:
        yield f"a variable is absent for {counts['by_absent']} persons of a class, not {asked.k}"
    if asked.nulls == "null-pattern" and 0 < counts["by_pattern"] < asked.k:
        yield f"a combination of variables is that of {counts['by_pattern']} persons of a class, not {asked.k}"
