"""What anonymising costs a classifier: trained on the release, tested on held-out rows (Mazzone 2019, §5.3 and §6.1.2).

Nothing of the test part decides how the training part is generalised, and none of it is suppressed: its rows are
generalised by the released node, and that is all. Where a release has no node but levels of its own for each class, its
labels are told to the model with their ancestors (`utility_implied`), and the test rows as they were. The originals are
told in the same way, so that what differs between the two models is what was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Protocol

from sqlglot import exp

from sqldeid.catalogue.columns import no_column
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.findings import Classification, Scores
from sqldeid.insight.utility_held import refuse_seen, refuse_source, refuse_unlike
from sqldeid.insight.utility_implied import with_all_ancestors, with_ancestors
from sqldeid.insight.utility_model import MOST_CLASSES, Model, fit_and_score, most_frequent
from sqldeid.insight.utility_rows import as_they_were, features, generalised, read_originals, read_released
from sqldeid.making import Hearing, Making
from sqldeid.publish import Staging
from sqldeid.result import TableRelease
from sqldeid.sql import identifier, literal
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.result import LocalRelease
from sqldeid.tables.plan.columns import OtherColumn, QuasiIdentifier
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release import release as releasing
from sqldeid.tables.rows.shape import count_persons, keep

_PART = "sqldeid part"


@dataclass(frozen=True, slots=True)
class UtilityQuestion:
    """What is asked about a release.

    Parameters
    ----------
    test_share
        Share of the rows that are held out, about; where no table of them is given. 0 … 1.
    seed
        Of the split; the same seed splits the same persons alike, whatever their order.
    originals
        Whether a model is trained on the originals, too.
    """

    label: str
    model: Model = "logistic"
    test_share: float = 0.3
    seed: int = 0
    originals: bool = True


class Aside(Staging, Protocol):
    """A place where a release is written to be measured, and never published."""

    @property
    def written(self) -> exp.Expr | None:
        """What was written."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The plan of the measured release, whose source is the training part, and the same on the test part."""

    train: TablePlan
    test: TablePlan
    label: OtherColumn
    warnings: tuple[str, ...]


def classify(
    asked: UtilityQuestion,
    plan: TablePlan,
    held_out: TablePlan | None,
    engine: Engine,
    place: Aside,
    listener: Hearing,
    *,
    layers: int | None = None,
) -> Classification:
    """Split, anonymise the training part by the job, fit, and test.

    `held_out` is the same release planned on a table of test rows, or None to split the source; the release of the
    training part is written in `place`. Cost: that of a release that is not published; of both parts the different rows
    are read into Python, with how often each is there. `layers` is how many nodes local recoding may use.

    Raises
    ------
    JobError
        If the label is not there, quasi-identifying, has one class or too many, or a part is empty.
    """
    started = monotonic()
    ready = _prepare(asked, plan, held_out, engine)
    classes = _count_classes(ready, engine)
    made = _release(ready.train, Making(engine, place, "", listener), layers)
    listener.step(plan.name, "training the models")
    if place.written is None or not made.released:
        raise JobError(f"{plan.key}: every row of the training part is suppressed; there is nothing to train on")
    node = made.node if isinstance(made, TableRelease) else None
    fitted = _fit(asked, ready, node, place.written, engine)
    return Classification(
        release=plan.name,
        label=ready.label.name,
        model=asked.model,
        originals=fitted.originals,
        anonymised=fitted.anonymised,
        baseline=fitted.baseline,
        train=fitted.train,
        test=fitted.test,
        suppressed=made.suppressed,
        classes=classes,
        k=made.k,
        node=dict(node or {}),
        loss=dict(made.loss),
        features=fitted.features,
        seed=asked.seed if held_out is None else None,
        test_share=asked.test_share if held_out is None else None,
        seconds=round(monotonic() - started, 3),
        warnings=(*ready.warnings, *fitted.told),
        indicators="labels" if node is not None else "ancestors",
        levels={} if isinstance(made, TableRelease) else {n: c.levels for n, c in made.columns.items() if c.levels},
    )


def _release(plan: TablePlan, making: Making, layers: int | None) -> TableRelease | LocalRelease:
    """The release of the training part, by the way that the job names."""
    if plan.search.method == "local":
        from sqldeid.tables.local.release import run as run_local

        return run_local(LocalPlan(plan, layers), making)
    return releasing.run(plan, making)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The scores of the models, the rows and columns that they saw, and what is to be said about them."""

    originals: Scores | None
    anonymised: Scores
    baseline: float
    train: int
    test: int
    features: tuple[str, ...]
    told: tuple[str, ...]


def _fit(
    asked: UtilityQuestion, ready: Prepared, node: Mapping[str, int] | None, written: exp.Expr, engine: Engine
) -> _Fitted:
    columns = features(ready.train, ready.label)
    test = read_originals(ready.test, columns, ready.label, engine)
    released = read_released(written, columns, ready.label, engine)
    train = read_originals(ready.train, columns, ready.label, engine)
    if not released.labels.size:
        raise JobError.at("--label", f"no released row has a value of {asked.label}")
    learnt, tested = as_they_were(train, columns), as_they_were(test, columns)
    if node is None:
        released = with_ancestors(released, ready.train, columns, engine)
        learnt, tested = (
            with_all_ancestors(of, rows, part, columns, engine)
            for of, rows, part in ((learnt, train, ready.train), (tested, test, ready.test))
        )
        shown = tested
    else:
        shown = generalised(ready.test, node, test, columns, engine)
    anonymised, told = fit_and_score(asked.model, released, shown)
    originals, also = fit_and_score(asked.model, learnt, tested) if asked.originals else (None, ())
    return _Fitted(
        originals,
        anonymised,
        most_frequent(learnt.labels, tested.labels),
        len(learnt.labels),
        len(tested.labels),
        tuple(c.name for c in columns),
        tuple(dict.fromkeys((*told, *also))),
    )


# ---- the two parts ---------------------------------------------------------------------------------------------------


def _prepare(asked: UtilityQuestion, plan: TablePlan, held_out: TablePlan | None, engine: Engine) -> Prepared:
    if plan.sampled:
        raise JobError.at(
            f"{plan.key}.search.method",
            "a label cannot be beside an epsilon-safe release, all of whose columns are "
            "quasi-identifying; evaluate another method",
        )
    plan, label = _with_label(asked, _settled(plan), engine)
    left_out = [c for c in plan.columns if isinstance(c, OtherColumn) and (c.disguise is not None or c.aggregated)]
    warnings = tuple(f"{plan.key}.columns.{c.name}: is not used by the model: {c.shown}" for c in left_out)
    plan = replace(plan, columns=tuple(c for c in plan.columns if c not in left_out))
    source = keep(plan, engine)
    count_persons(plan, engine, source)
    train: exp.Expr
    test: exp.Expr
    if held_out is None:
        train, test = _split(asked, plan, source, engine)
    else:
        other, other_label = _with_label(asked, _settled(held_out), engine)
        other = replace(other, columns=tuple(c for c in other.columns if c.name in {d.name for d in plan.columns}))
        refuse_unlike(plan, other, label, other_label)
        refuse_source(plan, other, engine)
        train, test = source, keep(other, engine)
    settled = [replace(plan, source=part, joined=False, stacked=None) for part in (train, test)]
    if held_out is not None:
        told = replace(settled[1], source_label=held_out.source_label)
        warnings += refuse_seen(settled[0], told, label, engine)
    return Prepared(settled[0], settled[1], label, warnings)


def _settled(plan: TablePlan) -> TablePlan:
    """The plan of a plain table: no view, no promise about the source's future; mixed levels are text throughout."""
    as_text = plan.as_text or plan.search.method == "local"
    return replace(plan, computed=False, frozen=False, as_text=as_text)


def _with_label(asked: UtilityQuestion, plan: TablePlan, engine: Engine) -> tuple[TablePlan, OtherColumn]:
    """The plan with the label among the columns that are kept as they stand, and the label."""
    wanted = asked.label.casefold()
    source, same = _label_source(asked, plan, engine)
    if source.name == plan.person:
        raise JobError.at("--label", f"{source.name} is the person key; it tells no classes apart")
    if source.kind == "other":
        raise JobError.at(
            "--label", f"values of type {source.shown_type} are no classes; cast {source.name} in a source query"
        )
    for c in same:
        if isinstance(c, QuasiIdentifier) or c.aggregated:
            raise JobError.at(
                "--label",
                f"{c.name} is quasi-identifying in {plan.key} and would be generalised; name a column that is "
                "not, or give it another role in a copy of the job",
            )
    kept = [c for c in same if isinstance(c, OtherColumn) and c.released and c.disguise is None]
    found = next((c for c in kept if c.name.casefold() == wanted), kept[0] if kept else None)
    if found is not None:
        return plan, found
    label = OtherColumn(same[0].name if same else source.name, source, "insensitive")
    others = tuple(c for c in plan.columns if c not in same)
    return replace(plan, columns=(*others, label)), label


def _label_source(
    asked: UtilityQuestion, plan: TablePlan, engine: Engine
) -> tuple[Column, list[QuasiIdentifier | OtherColumn]]:
    """The label's column in the source, and what the job says of it."""
    wanted = asked.label.casefold()
    named = next((c.source for c in plan.columns if c.name.casefold() == wanted), None)
    if named is None:
        there = engine.columns(plan.source, key="--label")
        named = next((c for c in there if c.name.casefold() == wanted), None)
        if named is None:
            raise no_column(there, plan.source_label, asked.label, "--label")
    return named, [c for c in plan.columns if c.source.name == named.name]


def _split(asked: UtilityQuestion, plan: TablePlan, source: exp.Expr, engine: Engine) -> tuple[exp.Table, exp.Table]:
    """Training and test part, by a hash of the person or of the row."""
    names = dict.fromkeys([*(c.source.name for c in plan.released), *([plan.person] if plan.person else [])])
    columns = [{"name": identifier(n)} for n in names]
    parts = engine.make(
        "insight/split_rows",
        f"{plan.name}_parts",
        source=source,
        columns=columns,
        first=identifier(next(iter(names))),
        part=identifier(_PART),
        person=plan.person_column,
        seed=literal(f"{asked.seed}:"),
        absent=literal("NULL"),
        cut=literal(f"{round(asked.test_share * 2**32):08x}"),
    )
    picked = []
    for number, name in enumerate(("train", "test")):
        table = engine.make(
            "insight/pick_part",
            f"{plan.name}_{name}",
            parts=parts,
            columns=columns,
            part=identifier(_PART),
            number=number,
        )
        picked.append(table)
    return picked[0], picked[1]


def _count_classes(ready: Prepared, engine: Engine) -> int:
    """Classes in the training part; refused before anything is searched if no model could tell them apart."""
    label, counted = ready.label, []
    for plan, part in ((ready.train, "training"), (ready.test, "test")):
        row = engine.row("insight/count_labels", source=plan.source, label=label.column)
        if not row["labelled"]:
            raise JobError.at(
                "--label",
                f"{label.name} has no value in the {part} part ({row['n']} rows); hold out another share, or "
                "name another column",
            )
        counted.append(int(row["classes"]))
    if counted[0] < 2:
        raise JobError.at("--label", f"{label.name} has one value in the training part; there is nothing to tell apart")
    if counted[0] > MOST_CLASSES:
        raise JobError.at(
            "--label",
            f"{label.name} has {counted[0]:,} values, more than {MOST_CLASSES} classes; group them in a source query",
        )
    return counted[0]
