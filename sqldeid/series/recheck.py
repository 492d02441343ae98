"""Check a published release of series against the source as it is now.

Who is who in a release is not kept anywhere, so persons are compared by what they have in common: they are numbered
from 1, lengths and variables must be those that the source gives, all series of a person must lie within the noted
distance of the targets of one class of that length, and every class must have as many persons as the source gives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.numbering import Members, TableClasses
from sqldeid.series.ledger import Audited, leave_out
from sqldeid.series.link import combine, members, raised, refuse_alone
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.republication import Looking
from sqldeid.series.result import SeriesVerified
from sqldeid.series.shape import Shaped, shape, shown_steps
from sqldeid.series.verify import FEATURES, allowed, malformed, persons_of, refuse_off_grid, unfold
from sqldeid.series.verify_link import verify_linked


def recheck(
    plan: SeriesPlan,
    note: Mapping[str, object],
    written: exp.Expr,
    engine: Engine,
    audited: Audited | None = None,
) -> SeriesVerified:
    """Verify a published release.

    Parameters
    ----------
    note
        What is kept on the release: what was asked, and the greatest distance from targets.
    audited
        What the ledger that it was made with says of who is in it.

    Raises
    ------
    VerificationError
        If the release is not what job, note and source say.
    """
    refuse_alone(plan)
    reshaped = reshape(plan, engine, looking=None if audited is None else audited.looking)
    if audited is not None:
        reshaped = replace(reshaped, shaped=leave_out(plan, reshaped.shaped, audited.released))
    return recheck_shaped(reshaped, note, written, engine)


@dataclass(frozen=True, slots=True)
class Reshaped:
    """What a release must be, computed again from the source; `members` are those of the linked table."""

    plan: SeriesPlan
    shaped: Shaped
    members: Members | None = None


def reshape(
    plan: SeriesPlan, engine: Engine, table: TableClasses | None = None, *, looking: Looking | None = None
) -> Reshaped:
    """Compute again what does not depend on chance: lengths, classes, targets, who is in.

    Parameters
    ----------
    table
        The classes of the linked table release.
    """
    if table is None:
        return Reshaped(plan, shape(plan, engine, lambda name, text: None, looking=looking))
    plan = raised(plan, table.k)
    shaped = shape(plan, engine, lambda name, text: None, table)
    link, there = shaped.link, np.zeros(len(shaped.measured.persons), dtype=np.int64)
    there[np.unique(shaped.measured.person_at[~shaped.classes.dropped])] = 1
    found = None if link is None else members(plan, link, shaped.measured, shaped.classes, there, engine)
    return Reshaped(plan, shaped, found)


def recheck_shaped(
    reshaped: Reshaped,
    note: Mapping[str, object],
    written: exp.Expr,
    engine: Engine,
    beside: exp.Table | None = None,
    together: Callable[[exp.Table], None] | None = None,
) -> SeriesVerified:
    """Verify a published release against what it must be.

    Parameters
    ----------
    beside
        What the linked table release, as published, says of each number: number, class.
    together
        Holds that release against what the series say of each number, on the workbench: number, class (the members'
        combined one), a row for each class that the number's series could be of.
    """
    plan, shaped = reshaped.plan, reshaped.shaped
    tau = _noted(plan, note, shown_steps(plan, shaped))
    refuse_off_grid(plan, shaped.measured, shaped.classes)
    unfolded = unfold(plan, shaped.named, written, engine)
    found = engine.make("series/measure_written", f"{plan.name}_recheck", unfolded=unfolded)
    problems = list(malformed(plan, unfolded, engine))
    linked, bench, found = beside is not None, engine.bench, engine.to_bench(found)
    if beside is not None:
        brought = engine.to_bench(beside)
        verify_linked(plan, found, brought, None, bench)
        placed = bench.make("series/place_measured", f"{plan.name}_recheck_placed", measured=found, beside=brought)
        found = placed
    row, fit = _unfit(plan, shaped, found, tau, linked, bench)
    problems += _named(row)
    if problems:
        raise VerificationError.at(plan.key, f"the release failed its re-check: {'; '.join(problems)}")
    if together is not None:
        together(fit)
    return _counted(shaped, row, tau)


def _unfit(
    plan: SeriesPlan, shaped: Shaped, found: exp.Table, tau: Mapping[str, float], linked: bool, engine: Engine
) -> tuple[dict[str, int], exp.Table]:
    """What was written held against the classes that it must be of, and whom each class could be of."""
    targets = engine.put(f"{plan.name}_recheck_targets", _targets(shaped))
    groups = engine.put(f"{plan.name}_recheck_groups", _groups(shaped))
    near, fit = (engine.workbench(f"{plan.name}_recheck_{x}") for x in ("near", "fit"))
    both = {"measured": found, "targets": targets, "linked": linked}
    rows = engine.rows("series/compare_groups", **both)
    most = allowed(tau, shaped.classes)
    within = [{"name": _column(n), "value": v} for n, v in most.items()]
    engine.run("series/find_near", near=near, **both, tau=within, width=2 * most["mean"])
    engine.run("series/find_fit", fit=fit, measured=found, near=near, groups=groups)
    row = engine.row("series/count_unfit", measured=found, near=near, fit=fit, groups=groups)
    return {**row, "groups": len(rows)}, fit


def _named(row: Mapping[str, int]) -> Iterator[str]:
    if row["groups"]:
        yield f"{row['groups']} lengths or variables have not as many persons as the source gives"
    if row["strays"]:
        yield f"{row['strays']} series are farther from every target than noted on the release"
    elif row["unfit"]:
        yield f"{row['unfit']} persons have series near targets of different classes"
    if row["short"]:
        yield f"{row['short']} classes have fewer persons than the source gives"


def _column(name: str) -> exp.Expr:
    return exp.to_identifier(name, quoted=True)


def _noted(plan: SeriesPlan, note: Mapping[str, object], steps: Mapping[str, object]) -> dict[str, float]:
    part, tau = plan.part, note.get("tau")
    same = (
        note.get("kind") == "series"
        and note.get("durations") == part.durations.model_dump()
        and note.get("privacy") == part.privacy.model_dump()
        and note.get("method") == part.perturb.method
        and note.get("shape") == part.shape
        and note.get("link") == part.link
        and note.get("round") == steps
    )
    if not same or not isinstance(tau, dict) or set(tau) != set(FEATURES):
        raise VerificationError.at(
            plan.key,
            "the release was made with other durations, privacy or perturbation than the job states, or "
            "rounded to other steps",
        )
    return {name: float(value) for name, value in tau.items()}


def _targets(shaped: Shaped) -> pa.Table:
    """Each (length, class, variable) with its targets and number of persons."""
    kept = np.flatnonzero(~shaped.classes.dropped)
    length = shaped.measured.lengths[shaped.measured.person_at[kept]]
    variable = shaped.measured.features.variable_number[kept]
    link, person = shaped.link, shaped.measured.person_at[kept]
    row = np.zeros(len(kept), dtype=np.int64) if link is None else link.table_class[person]
    keys = np.stack([length, shaped.classes.of_row[kept], variable, row], axis=1)
    unique, first, size = np.unique(keys, axis=0, return_index=True, return_counts=True)
    values = shaped.classes.targets.values[kept[first]]
    columns = {name: pa.array(values[:, i], mask=np.isnan(values[:, i])) for i, name in enumerate(FEATURES)}
    return pa.table(
        {
            "length": unique[:, 0],
            "variable_number": unique[:, 2].astype(np.int32),
            "class": unique[:, 1],
            "table_class": unique[:, 3],
            "persons": size.astype(np.int64),
            **columns,
        }
    )


def _groups(shaped: Shaped) -> pa.Table:
    """Each class and combination of variables with its number of persons."""
    kept = np.flatnonzero(~shaped.classes.dropped)
    shown: dict[int, list[int]] = {}
    for person, variable in zip(
        shaped.measured.person_at[kept].tolist(), shaped.measured.features.variable_number[kept].tolist(), strict=True
    ):
        shown.setdefault(person, []).append(variable)
    of_person, combined = shaped.classes.of_person, combine(shaped.measured, shaped.classes)
    sizes = Counter((int(of_person[p]), ",".join(map(str, sorted(v))), int(combined[p])) for p, v in shown.items())
    return pa.table(
        {
            "class": pa.array([c for c, _, _ in sizes], pa.int64()),
            "variables": pa.array([v for _, v, _ in sizes], pa.string()),
            "combined": pa.array([c for _, _, c in sizes], pa.int64()),
            "persons": pa.array(list(sizes.values()), pa.int64()),
        }
    )


def _counted(shaped: Shaped, row: Mapping[str, int], tau: Mapping[str, float]) -> SeriesVerified:
    there = np.unique(shaped.measured.person_at[~shaped.classes.dropped])
    by_length = np.unique(shaped.measured.lengths[there], return_counts=True)[1]
    by_class = np.unique(shaped.classes.of_person[there], return_counts=True)[1]
    link = shaped.link
    return SeriesVerified(
        persons=persons_of(shaped),
        released=int(row["persons"]),
        lengths=len(by_length),
        smallest_length=int(by_length.min(initial=len(there))),
        classes=len(by_class),
        smallest_class=int(by_class.min(initial=len(there))),
        tau=dict(tau),
        linked="" if link is None else link.classes.name,
    )
