"""`search.method = "mondrian"`: multi-dimensional recoding of numeric and ordered quasi-identifiers by medians.

No lattice and no hierarchy: rows are cut at medians as long as both sides keep k of them, so that one age may be
released as "[40, 50)" in one class and as "[44, 47)" in another. Ranges are bounded by numbers of a public grid that
lie between a class and its neighbours, never by somebody's value; means are rounded to that grid
(`sqldeid.tables.plan.grid`).

*Guarantee*: every released combination of quasi-identifying values is that of at least k rows (k-anonymity), and meets
the job's l-diversity and t-closeness, each asked of both sides before a cut. Released bounds and means depend on the
grid's cells that values lie in, and on nothing finer.
*Assumes* what these do, and a grid that was not chosen by looking at persons. *Does not protect* a class whose members
are alike; nor a mean, as far as the grid is fine, against k − 1 members who pool what they know; nor, with l or t,
against what a cut that was not made tells: it would have failed one of them, which can give a sensitive value.

Source
------
LeFevre et al. 2006; Mazzone 2020, §4.1, with its caveat: one value of a field has different generalisations from row to
row, so that a reader cannot count how many are 45 or older. And it is greedy: nothing is proven of its loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from sqldeid.attacked import none_made
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.making import Cohorts, Making
from sqldeid.publish import Note, Staging, noted_days
from sqldeid.sql import column, identifier, render
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Stage, walk
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.mondrian.points import SIDES, Parts, others_of, part, values_of
from sqldeid.tables.mondrian.result import PartitionRelease, PartitionVerified
from sqldeid.tables.mondrian.statements import cutting, verifying, writing
from sqldeid.tables.mondrian.verify import verify_parts
from sqldeid.tables.write.ordering import sorted_by


def run(planned: PartitionPlan, making: Making) -> PartitionRelease:
    """Produce one release up to, not including, its publication.

    Raises
    ------
    JobError
        If there are fewer than k rows, or a person is there twice.
    NoSolutionError
        If the whole table as one class fails a criterion.
    VerificationError
        If what was written fails its re-check.
    """
    engine = making.engine
    draft = PartDraft(planned, engine, making.staging, engine.moved, making.cohorts)
    walk(way_of(planned, compared=making.cohorts is not None), draft, partial(making.listener.step, planned.name))
    if not making.certificate:
        return draft.result
    told = f"{planned.key}: there is no certificate: mondrian proves nothing"
    return replace(draft.result, warnings=(*draft.result.warnings, told))


@dataclass(slots=True, repr=False)
class PartDraft:
    """A release on its way: `moved` is what had come out of the engine before."""

    planned: PartitionPlan
    engine: Engine
    staging: Staging
    moved: tuple[int, int]
    cohorts: Cohorts | None = None
    parts: Parts = field(init=False)
    written: exp.Expr = field(init=False)
    found: PartitionVerified = field(init=False)
    result: PartitionRelease = field(init=False)


def way_of(planned: PartitionPlan, *, compared: bool = False) -> tuple[Stage[PartDraft], ...]:
    """The stages of a release by Mondrian, in order."""
    return (
        Stage("cutting at medians", _cut, lambda _: cutting(planned)),
        Stage("writing the release", _write, lambda target: writing(planned, target)),
        *([Stage("", _place, lambda _: as_needed("tables/mondrian/place_parts"))] if compared else []),
        Stage("verifying what was written", _verify, lambda _: verifying(planned)),
        Stage("", _tell),
    )


def _cut(draft: PartDraft) -> None:
    draft.parts = part(draft.planned, draft.engine)


def _write(draft: PartDraft) -> None:
    draft.written = _stage(draft.planned, draft.parts, draft.engine, draft.staging)


def _verify(draft: PartDraft) -> None:
    draft.found = verify_parts(draft.planned, draft.parts, draft.written, draft.engine)


def _tell(draft: PartDraft) -> None:
    draft.result = _result(draft.planned, draft.found, draft.engine, draft.moved)


def _result(
    planned: PartitionPlan, found: PartitionVerified, engine: Engine, before: tuple[int, int]
) -> PartitionRelease:
    rows, size = (after - old for after, old in zip(engine.moved, before, strict=True))
    shown = {c.name: {"role": "quasi-identifying", "median": c.show, "grid": c.grid.asked} for c in planned.cuts}
    return PartitionRelease(
        name=planned.name,
        rows=found.rows,
        released=found.released,
        k=found.k,
        classes=found.classes,
        columns={**shown, **{name: {"role": role} for name, _, role in planned.others}},
        warnings=tuple(_warnings(planned)),
        asked=planned.part.privacy.k,
        heuristic=planned.heuristic,
        criteria=found.criteria,
        moved={"rows": rows, "bytes": size},
        attacks=none_made("no attack knows classes that are cut at medians") if planned.part.attacks else None,
        unit="row" if planned.part.person is None else "person",
    )


def _stage(planned: PartitionPlan, parts: Parts, engine: Engine, staging: Staging) -> exp.Expr:
    cuts, others = values_of(planned), others_of(planned)
    value = {c.name: column(f"label{i}", "l") for i, c in enumerate(planned.cuts)}
    value |= {o["released"].name: column(o["name"].name, "p") for o in others}
    placed = [{"name": identifier(n), "value": value[n]} for n in planned.part.columns if n in value]
    left = {name: source for name, source, _ in planned.others}
    order: list[exp.Expr] = []
    for name, shown in ((c["name"].name, c["value"]) for c in placed):
        order += sorted_by(shown, left[name], engine) if name in left else [shown]
    return staging.write(
        lambda target: render(
            "tables/mondrian/stage_parts",
            target=target,
            source=parts.source,
            classes=parts.classes,
            cuts=cuts,
            others=others,
            columns=placed,
            order=order,
        ),
        _note(planned),
    )


def _place(draft: PartDraft) -> None:
    """Keep the class of every row of the source beside it, for whoever compares the tables of a run."""
    planned, parts, engine, cohorts = draft.planned, draft.parts, draft.engine, draft.cohorts
    k = planned.part.privacy.k
    placed = None if cohorts is None else cohorts.place(planned.name, k, parts.source, engine)
    if placed is None:
        return
    cuts = values_of(planned)
    engine.execute(
        render(
            "tables/mondrian/place_parts",
            placed=placed.table,
            columns=placed.columns,
            source=parts.source,
            classes=parts.classes,
            cuts=cuts,
            sides=[column(f"{side}{i}", "l") for i in range(len(cuts)) for side in SIDES],
        )
    )


def recheck(planned: PartitionPlan, note: Mapping[str, object], written: exp.Expr, engine: Engine) -> PartitionVerified:
    """Verify a published release against the source as it is now.

    Raises
    ------
    VerificationError
        If the release is not what job, note and source say.
    """
    wanted = _note(planned).content
    if any(note.get(name) != wanted[name] for name in ("kind", "method", "criteria", "columns_cut", "grids")):
        raise VerificationError.at(
            planned.key, "the release was made with other columns or other criteria than the job states"
        )
    return verify_parts(planned, part(planned, engine), written, engine)


def _note(planned: PartitionPlan) -> Note:
    content = {
        "kind": "table",
        "method": "mondrian",
        "criteria": {"k": planned.part.privacy.k, **_beyond_k(planned)},
        "columns_cut": {c.name: c.show for c in planned.cuts},
        "grids": {c.name: c.grid.asked for c in planned.cuts},
        **noted_days((), planned.shown_days),
    }
    shown = {c.name: f"quasi-identifying, {c.shown}, of a class cut at medians" for c in planned.cuts}
    return Note(planned.name, content, {**shown, **{n: f"{role}, as in the source" for n, _, role in planned.others}})


def _beyond_k(planned: PartitionPlan) -> dict[str, object]:
    """What else was asked, as the job says it; nothing where it is k alone."""
    asked = {key: [e.model_dump() for e in entries] for key, entries in planned.part.privacy.per_class.items()}
    return {name: entries for name, entries in asked.items() if entries}


def _warnings(planned: PartitionPlan) -> list[str]:
    return [
        f"{planned.key}.columns.{c.name}: the mean of a class can be solved for by k - 1 of its members who pool what "
        'they know, to within k steps of the grid; median = "range" shows cuts alone'
        for c in planned.cuts
        if c.show == "mean"
    ]
