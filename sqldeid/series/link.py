"""Series formed inside the classes of the table release that they are linked to (`link`).

Lengths are made common among the persons of one class of the table, and feature classes among those of one class and
length. A *combined class* is what an attacker can know of a person from both releases at once: the table row's
quasi-identifying values, the length, the features, and which variables are absent.

Notes
-----
*Guarantee*: let k be the greater of the table's and `privacy.k`. Every person of either release is in the other, and
every combined class has at least k persons and meets each l- and t-criterion of the table; hence so does every class
of the table by itself, every (class, length), and every length.

*Proof, and why nothing is iterated*. Series only ever leave by whole combined classes or before these are formed:
(1) persons without a row in a class of the table, or without series, are in no combined class. (2) Lengths and
features are formed among the persons of one class of the table, and under `null-pattern` each combination of variables
is that of k persons of a feature class or of none: each combined class lies within one class of the table, has at least
k persons, and depends on no other class. (3) A combined class that fails a criterion is withheld as a whole, and then
whole (class, length) groups in which too few are left; neither changes what another combined class consists of. So one
pass ends it. The rows of the table whose persons are not left are dropped, and what is left of a class of the table is
a disjoint union of combined classes: empty, or at least k persons. Unions keep the criteria: a union of classes with l
distinct, or l well-represented, values has them (Machanavajjhala et al. 2007, §4; entropy is concave), and t-closeness
is convex. m-concealing is not kept by unions in general, and is refused. ∎

*Assumes* the protecting option (`perturb.method = "shared"`): else whoever knows a few raw values finds the series, and
with it the row. *Does not protect* what the members of a combined class have in common, in either release; nor hides
what a missing row tells: that there were too few like it, or that they failed a criterion.

Source
------
soundness.md 7 and 16; Mazzone 2020, ch. 7 (future work).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Flags, Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.numbering import Members, TableClasses
from sqldeid.series.durations import assign
from sqldeid.series.features import Classes, Measured
from sqldeid.series.plan import SeriesPlan, collated
from sqldeid.series.prepare import Prepared
from sqldeid.sql import column

MUCH = 0.1
"""Share of the persons of both from which a link costs enough to be told."""


@dataclass(frozen=True, slots=True)
class Link:
    """The linked table's classes beside the persons that have series.

    Parameters
    ----------
    classes
        What the table release could release.
    joined
        Temporary table: person VARCHAR, person_number, class; who is in both.
    table_class
        (persons,) of the prepared ones, or of those with a released length.
    in_table, in_series, in_both
        How many persons each side has, and both have.
    lost_to_lengths, lost_to_features, lost_to_criteria
        Persons of both who find no length that enough of their class share; then no variable; then those of combined
        classes that fail a criterion of the table, and of lengths that too few are left with for it.
    lengths_by_k
        Persons of both who would find no length if `durations.k` asked for nothing, by the k of classes alone.
    left_out
        Each criterion, and how many persons would be released without it.
    """

    classes: TableClasses
    joined: exp.Table
    table_class: Ints
    in_table: int
    in_series: int
    in_both: int
    lost_to_lengths: int = 0
    lost_to_features: int = 0
    lost_to_criteria: int = 0
    lengths_by_k: int = 0
    left_out: tuple[tuple[str, int], ...] = ()


def raised(plan: SeriesPlan, k: int) -> SeriesPlan:
    """The plan with no k below that of the linked table."""
    part = plan.part
    durations = part.durations.model_copy(update={"k": max(part.durations.k, k)})
    privacy = part.privacy.model_copy(update={"k": max(part.privacy.k, k)})
    return replace(plan, part=part.model_copy(update={"durations": durations, "privacy": privacy}))


def refuse_alone(plan: SeriesPlan) -> None:
    """Refuse to make or check linked series without their table: nothing would hold on the join.

    Raises
    ------
    JobError
        If the job links them.
    """
    if plan.part.link is not None:
        key = f"{plan.key}.link"
        raise JobError.at(key, f"tables.{plan.part.link} is made and checked with it; run both, or remove link")


def join_classes(plan: SeriesPlan, prepared: Prepared, classes: TableClasses, engine: Engine) -> tuple[Prepared, Link]:
    """Take the persons who are in a class of the linked table.

    Raises
    ------
    JobError
        If there are none.

    Cost: one join of persons.
    """
    joined = engine.workbench(f"{plan.name}_joined")
    text = collated(exp.cast(column("person", "p"), exp.DataType.build("varchar", dialect="duckdb")), engine)
    tables = {"joined": joined, "persons": prepared.persons, "classes": classes.persons}
    engine.run("series/join_classes", person=text, **tables)
    read = engine.ask("series/read_joined", joined=joined)
    numbers, of_number = (read.column(i).to_numpy().astype(np.int64) for i in range(2))
    there = np.isin(prepared.person_number, numbers)
    if not there.any():
        key = f"{plan.key}.link"
        raise JobError.at(
            key,
            f"no person with series is in a class that tables.{classes.name} releases; check that person is the "
            "same key in both",
        )
    table_class = of_number[np.searchsorted(numbers, prepared.person_number[there])]
    in_table = int(engine.row("engine/count_rows", table=classes.persons)["rows"])
    both = replace(
        prepared,
        person_number=prepared.person_number[there],
        length=prepared.length[there],
        records_of=prepared.records_of[there],
    )
    return both, Link(classes, joined, table_class, in_table, len(there), int(there.sum()))


def assign_within(
    plan: SeriesPlan, lengths: Ints, table_class: Ints, k: int, method: Literal["optimal", "source"]
) -> Ints:
    """Released lengths, common to k persons of each class of the table; 0 in classes that have not so many.

    Raises
    ------
    JobError
        If no class has.
    """
    released = np.zeros(len(lengths), dtype=np.int64)
    order = np.argsort(table_class, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(table_class[order])) + 1):
        if len(rows) >= k:
            released[rows] = assign(lengths[rows], k, method)
    if not released.any():
        key = f"{plan.key}.link"
        raise JobError.at(
            key,
            f"no class of the linked table has {k} persons with series to form lengths among; lower durations.k "
            "or privacy.k, release coarser classes, or remove link",
        )
    return released


def count_by_k(plan: SeriesPlan, link: Link, lengths: Ints) -> Link:
    """The link that knows whom lengths would cost without `durations.k`.

    Whom features and criteria would cost on those other lengths only a second run tells: the series would be cut, and
    measured, elsewhere.
    """
    least, method = plan.part.privacy.k, plan.part.durations.method
    if plan.part.durations.k <= least:
        return link
    released = assign_within(plan, lengths, link.table_class, least, method)
    return replace(link, lengths_by_k=int((released == 0).sum()))


def grouped(measured: Measured, table_class: Ints) -> Measured:
    """The same with a number for each (class of the table, length) in the place of lengths: what classes lie within."""
    pairs = np.stack([table_class, measured.lengths], axis=1)
    numbers = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return replace(measured, lengths=numbers)


def withhold_failing(
    plan: SeriesPlan, link: Link, measured: Measured, classes: Classes, engine: Engine
) -> tuple[Classes, Link]:
    """Withhold the combined classes that fail a criterion of the table, then lengths that too few are left with.

    With the link that tells what cost whom.
    """
    before = _persons(measured, classes.dropped)
    lengths = link.in_both - len(measured.persons)
    link = replace(link, lost_to_lengths=lengths, lost_to_features=len(measured.persons) - before)
    if link.classes.judge is None:
        return classes, link
    asked = _members(plan, link, measured, classes, np.zeros(len(measured.persons), dtype=np.int64), engine)
    failing = link.classes.judge(asked)
    alone = {name: judge(asked) for name, judge in link.classes.judges} if len(failing) else {}
    engine.drop(asked)
    dropped = _without(plan, link, measured, classes, failing)
    left_out = []
    for name in alone:
        others = [numbers for other, numbers in alone.items() if other != name]
        rest = np.unique(np.concatenate(others)) if others else np.empty(0, dtype=np.int64)
        left_out.append((name, _persons(measured, _without(plan, link, measured, classes, rest))))
    lost = before - _persons(measured, dropped)
    link = replace(link, lost_to_criteria=lost, left_out=tuple(left_out))
    values, means = classes.targets.values.copy(), classes.targets.class_mean.copy()
    values[dropped], means[dropped] = np.nan, np.nan
    targets = replace(classes.targets, values=values, class_mean=means, dropped=dropped)
    return Classes(classes.of_person, classes.of_row, targets, dropped), link


def _without(plan: SeriesPlan, link: Link, measured: Measured, classes: Classes, failing: Ints) -> Flags:
    """(rows,): withheld once some combined classes are, and lengths that too few are left with."""
    dropped = classes.dropped | np.isin(combine(measured, classes), failing)[measured.person_at]
    group = grouped(measured, link.table_class).lengths
    left, sizes = np.unique(group[np.unique(measured.person_at[~dropped])], return_counts=True)
    return np.asarray(dropped | ~np.isin(group[measured.person_at], left[sizes >= plan.part.durations.k]), dtype=bool)


def _persons(measured: Measured, dropped: Flags) -> int:
    """How many persons have a variable left."""
    return len(np.unique(measured.person_at[~dropped]))


def combine(measured: Measured, classes: Classes) -> Ints:
    """(persons,): the combined class, distinct over all classes of the table: feature class and variables released."""
    variables = int(measured.features.variable_number.max(initial=0)) + 1
    seen = np.zeros((len(measured.persons), variables + 1), dtype=np.int64)
    rows = np.flatnonzero(~classes.dropped)
    seen[measured.person_at[rows], measured.features.variable_number[rows]] = 1
    seen[:, -1] = classes.of_person
    return np.unique(seen, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def members(
    plan: SeriesPlan, link: Link, measured: Measured, classes: Classes, numbers: Ints, engine: Engine
) -> Members:
    """Who is released in both, with the new number and the combined class.

    Raises
    ------
    JobError
        If nobody is.
    """
    released = int((numbers > 0).sum())
    if not released:
        key = f"{plan.key}.link"
        raise JobError.at(
            key, "nobody can be released in both; lower k or durations.k, release coarser classes, or remove link"
        )
    table = _members(plan, link, measured, classes, numbers, engine)
    sizes = np.unique(combine(measured, classes)[numbers > 0], return_counts=True)[1]
    account = {
        "k": plan.part.privacy.k,
        "in_table": link.in_table,
        "in_series": link.in_series,
        "in_both": link.in_both,
        "released": released,
        "lost_of_table": link.in_table - released,
        "lost_of_series": link.in_series - released,
        "lost_to_lengths": link.lost_to_lengths,
        "lost_to_features": link.lost_to_features,
        "lost_to_criteria": link.lost_to_criteria,
        "combined_classes": len(sizes),
        "smallest": int(sizes.min()),
    }
    return Members(table, account)


def loss_warnings(plan: SeriesPlan, link: Link | None, account: Mapping[str, int]) -> list[str]:
    """What to say where the link costs much: what it is lost to, the most first, and how to pay less."""
    lost = 1 - account["released"] / max(account["in_both"], 1)
    if link is None or lost <= MUCH:
        return []
    table = f"tables.{plan.part.link}"
    told = [f"{n:,} of {account['in_both']:,} would be released without {name}" for name, n in link.left_out]
    causes = [
        (
            link.lost_to_lengths,
            f"to lengths, which are made common within the table's classes ({_of_lengths(plan, link)}; or raise {table}"
            ".privacy.k: in greater classes fewer are lost)",
        ),
        (link.lost_to_features, "to features, as k persons of a class and length must share each variable"),
        (
            link.lost_to_criteria,
            f"to the criteria of {table}, which classes of row and series together must meet: {'; '.join(told)}",
        ),
    ]
    said = "; ".join(f"{n:,} {text}" for n, text in sorted(causes, key=lambda c: -c[0]) if n)
    return [f"{plan.key}.link: {lost:.0%} of the persons of both are lost: {said}"]


def _of_lengths(plan: SeriesPlan, link: Link) -> str:
    """What of the loss to lengths is due to `durations.k`, and what to the k of classes."""
    if plan.part.durations.k <= plan.part.privacy.k:
        return "by k, which durations.k does not exceed: lower k"
    return f"{link.lengths_by_k:,} without durations.k, by k alone: lower durations.k"


def _members(
    plan: SeriesPlan, link: Link, measured: Measured, classes: Classes, numbers: Ints, engine: Engine
) -> exp.Table:
    """Persons who have a variable left, by their key."""
    there = np.zeros(len(measured.persons), dtype=bool)
    there[measured.person_at[~classes.dropped]] = True
    rows = pa.table(
        {
            "person_number": measured.persons[there],
            "number": numbers[there],
            "class": combine(measured, classes)[there],
        }
    )
    put = engine.put(f"{plan.name}_numbers", rows)
    table = engine.make("series/name_members", f"{plan.name}_members", joined=link.joined, numbers=put)
    engine.drop(put)
    return table
