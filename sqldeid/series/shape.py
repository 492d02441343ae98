"""Compute classes and targets of a release of series: what is the same each time the release is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.numbering import TableClasses
from sqldeid.series.durations import DurationReport, assign, report
from sqldeid.series.features import Classes, Measured, classify, measure
from sqldeid.series.link import Link, assign_within, count_by_k, grouped, join_classes, withhold_failing
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.prepare import Prepared, prepare
from sqldeid.series.republication import EarlierGroups, Looking, classify_on, earlier_groups, lengths_of
from sqldeid.series.rounding import DIGITS, steps_of
from sqldeid.series.transfer import to_workbench
from sqldeid.series.utility import Outcomes, read_outcomes


@dataclass(frozen=True, slots=True)
class Shaped:
    """Shortened series, their features, classes and targets; nothing random is in it.

    `cut` is where the source is, `carried` the same on the workbench.
    `link` has the linked table's class of each measured person; `from_data` says that variables' names are values of
    the source. `people` are the keys of the measured persons as text, where they were asked for.
    """

    prepared: Prepared
    durations: DurationReport
    cut: exp.Table
    carried: exp.Table
    measured: Measured
    classes: Classes
    outcomes: Outcomes | None = None
    link: Link | None = None
    people: pa.Array | None = None
    from_data: bool = False

    @property
    def there(self) -> frozenset[int]:
        """Numbers of the variables that somebody is released with."""
        return frozenset(np.unique(self.measured.features.variable_number[~self.classes.dropped]).tolist())

    @property
    def named(self) -> dict[int, str]:
        """Variables that a release may name, by number.

        Names that the job gives, all of them; those that are values of the data, where released rows have them.
        """
        there = self.there if self.from_data else frozenset(range(len(self.prepared.variables.names)))
        return {i: name for i, name in enumerate(self.prepared.variables.names) if i in there}


def shown_steps(plan: SeriesPlan, shaped: Shaped) -> dict[str, float | str]:
    """The step of the grid that each variable's targets are rounded to, by name."""
    steps = steps_of(shaped.prepared.variables, plan.part.round, plan.key).tolist()
    changed = {i: name for i, name in shaped.named.items() if plan.kept(name) != "none"}
    return {name: f"{DIGITS} digits" if np.isnan(steps[i]) else steps[i] for i, name in changed.items()}


def shape(
    plan: SeriesPlan,
    engine: Engine,
    step: Callable[[str, str], None],
    table: TableClasses | None = None,
    *,
    named: bool = False,
    looking: Looking | None = None,
) -> Shaped:
    """Prepare, shorten, measure and classify.

    Parameters
    ----------
    step
        Called with a step's name, and what to say of it, before it begins.
    table
        The classes of the linked table, within which lengths and features are made common.
    named
        Whether persons' keys are wanted, too, to compare releases by.
    looking
        Tells in which group each person was released before, and is released again.

    Raises
    ------
    JobError
        If the data break a rule of the job: too few persons, no plausible measurement.
    """
    step("prepare", "preparing series")
    prepared, link = prepare(plan, engine), None
    if table is not None:
        prepared, link = join_classes(plan, prepared, table, engine)
    step("durations", "making lengths common")
    people = _people(prepared, engine) if named or looking is not None else None
    earlier = None if looking is None or people is None else earlier_groups(looking(people))
    persons, lengths, durations = _lengths(plan, prepared, link, earlier)
    outcomes = read_outcomes(plan, prepared, engine)
    cut = _cut(plan, prepared, lengths, engine)
    there = lengths > 0
    carried = to_workbench(cut, "person_number", persons[there], prepared.records_of[there], engine)
    step("features", "measuring features")
    measured = measure(plan, carried, persons[there], lengths[there], engine.bench)
    step("classes", "forming feature classes")
    if earlier is not None:
        classes = classify_on(plan, prepared.variables, measured, earlier.take(there), engine.bench)
    elif link is None:
        classes = classify(plan, prepared.variables, measured, engine.bench)
    else:
        link = replace(count_by_k(plan, link, prepared.length), table_class=link.table_class[there])
        classes = classify(plan, prepared.variables, grouped(measured, link.table_class), engine.bench)
        classes, link = withhold_failing(plan, link, measured, classes, engine)
    durations = replace(durations, records_lost=prepared.records - int(measured.features.n.sum()))
    if people is not None:
        people = people.filter(pa.array(there))
    found = Shaped(prepared, durations, cut, carried, measured, classes, outcomes, link, people, plan.map is None)
    if plan.part.shape == "wide" and not found.named:
        raise JobError(
            f"{plan.key}: nobody can be released with any variable; lower k or durations.k, or widen the cohort",
            key=f"{plan.key}.privacy.k",
        )
    return found


def _people(prepared: Prepared, engine: Engine) -> pa.Array:
    """The keys of the prepared persons, in their order."""
    read = engine.ask("series/name_people", persons=prepared.persons)
    return read.column("person").combine_chunks().take(pa.array(prepared.person_number - 1, pa.int64()))


def _lengths(
    plan: SeriesPlan, prepared: Prepared, link: Link | None, earlier: EarlierGroups | None
) -> tuple[Ints, Ints, DurationReport]:
    asked, count = plan.part.durations, len(prepared.length)
    least = max(asked.k, plan.part.privacy.k)
    if link is not None:
        released = assign_within(plan, prepared.length, link.table_class, least, asked.method)
        found = report(prepared.length, released, least, asked.method, link.table_class)
        return prepared.person_number, released, found
    for key, k in ((f"{plan.key}.durations.k", asked.k), (f"{plan.key}.privacy.k", plan.part.privacy.k)):
        if count < k:
            raise JobError.at(key, f"is {k}, and there are {count} persons; lower k or widen the cohort")
    if earlier is None:
        released = assign(prepared.length, least, asked.method)
    else:
        released = lengths_of(plan, prepared.length, earlier, least)
    if not released.any():
        why = 'algorithm 3 drops every length; take method = "optimal" or a lower k'
        if earlier is not None:
            why = (
                "nobody is left: who was released before keeps the length of then, which these series no longer reach, "
                f"and of those who are new no length is shared by {least}; load more persons, or lower k"
            )
        raise JobError.at(f"{plan.key}.durations.k", why)
    return prepared.person_number, released, report(prepared.length, released, least, asked.method)


def _cut(plan: SeriesPlan, prepared: Prepared, released: Ints, engine: Engine) -> exp.Table:
    rows = pa.table({"person_number": prepared.person_number, "length": prepared.length, "released": released})
    lengths = engine.put(f"{plan.name}_lengths", rows)
    cut = engine.make("series/cut_series", f"{plan.name}_cut", series=prepared.series, lengths=lengths)
    for table in (lengths, prepared.series, prepared.persons):
        engine.drop(table)
    return cut
