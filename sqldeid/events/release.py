"""One planned release of event sequences, made, staged and verified; not yet published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import UnknownKindError
from sqldeid.events import statements
from sqldeid.events.attacks import attack
from sqldeid.events.codebook import describe
from sqldeid.events.evaluate import OBJECTS_MOST, Source, evaluate
from sqldeid.events.fit import Ensemble, Fitted, Step, fit_ensemble, fit_laplace
from sqldeid.events.generate import Made
from sqldeid.events.plan import EventsPlan, timestamp
from sqldeid.events.result import EventsRelease, Guarantee
from sqldeid.events.sequences import (
    LEAST_HOURS,
    MUCH_TOGETHER,
    Gaps,
    Sequences,
    count_source,
    needed,
    order_events,
    place_events,
    read_placed,
    sequence,
)
from sqldeid.events.stage import note_of, put_batches, stage
from sqldeid.events.synthesize import Private
from sqldeid.events.verify import verify
from sqldeid.ledger.book import Subject
from sqldeid.ledger.budget import Spent, spend
from sqldeid.ledger.core import Ledger
from sqldeid.ledger.hashing import spelling
from sqldeid.making import Making
from sqldeid.publish import Note, Staging
from sqldeid.sql import column, literal
from sqldeid.stages import Stage, walk


def _silent(text: str) -> None:
    """Nobody hears of the steps of an attack."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The source as the methods read it: placed events, what states stand for, whole sequences to compare with."""

    placed: exp.Table
    listed: exp.Table
    compared: exp.Table
    counts: Mapping[str, int]
    gaps: Gaps
    sequences: Sequences | None


def run(plan: EventsPlan, making: Making) -> EventsRelease:
    """Produce one release up to, not including, its publication.

    Raises
    ------
    JobError
        If there is nothing to release, or an extra is not installed.
    VerificationError
        If what was written fails its re-check.
    """
    engine = making.engine
    draft = EventsDraft(plan, engine, making.staging, partial(making.listener.step, plan.name), engine.moved)
    walk(way_of(plan, making.ledger, making.job_sha256), draft, draft.say)
    return draft.result


@dataclass(slots=True, repr=False)
class EventsDraft:
    """A release on its way: `moved` is what had come out of the engine before, `rng` draws what is made."""

    plan: EventsPlan
    engine: Engine
    staging: Staging
    say: Step
    moved: tuple[int, int]
    rng: np.random.Generator = field(init=False)
    source: _Source = field(init=False)
    fitted: Fitted = field(init=False)
    made: Made = field(default_factory=Made)
    objects: int = 0
    table: exp.Table = field(init=False)
    note: Note = field(init=False)
    written: exp.Expr = field(init=False)
    result: EventsRelease = field(init=False)
    verified: dict[str, object] = field(default_factory=dict)
    described: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def way_of(plan: EventsPlan, ledger: Ledger | None = None, job_sha256: str = "") -> tuple[Stage[EventsDraft], ...]:
    """The stages of a release of events, in order; the last adds up what was spent, where a ledger does."""

    def spend_budget(draft: EventsDraft) -> None:
        if ledger is not None:
            draft.result = _spent(draft.result, plan, draft.engine, ledger, job_sha256)

    return (
        Stage("ordering events", _order, lambda _: statements.ordering(plan)),
        Stage("", _fit_models, lambda _: statements.fitting(plan)),
        Stage("making objects", _make),
        Stage("writing the release", _write, lambda target: statements.writing(plan, target)),
        Stage("verifying what was written", _verify, lambda _: statements.verifying()),
        Stage("comparing with the source", _compare, lambda _: statements.comparing()),
        *([Stage("", _attack_all, lambda _: statements.attacking(plan))] if plan.part.attacks else []),
        *([Stage("", spend_budget, lambda _: statements.spending())] if ledger is not None else []),
        Stage("", _count_moved),
    )


def _order(draft: EventsDraft) -> None:
    plan, engine = draft.plan, draft.engine
    draft.rng = np.random.default_rng(plan.part.generate.seed)
    draft.source = read_private(plan, engine) if plan.domain is not None else _read(plan, engine)


def _fit_models(draft: EventsDraft) -> None:
    draft.fitted = _fit(draft, draft.source.placed, draft.say)


def _make(draft: EventsDraft) -> None:
    asked = draft.plan.part.generate.objects
    draft.objects = asked if asked is not None else draft.fitted.objects
    batches = draft.fitted.generate(draft.objects, draft.rng, draft.made)
    draft.table = put_batches(draft.plan.name, batches, draft.engine, grouped=bool(draft.plan.group))


def _write(draft: EventsDraft) -> None:
    draft.note = note_of(draft.plan, asdict(guarantee_of(draft.plan)), _ledger(draft.fitted))
    draft.written = stage(draft.plan, draft.table, draft.source.listed, draft.staging, draft.note)


def _verify(draft: EventsDraft) -> None:
    draft.verified = asdict(verify(draft.plan, draft.note.content, draft.written, draft.engine))
    draft.described = describe(draft.plan, draft.written, draft.engine)


def _compare(draft: EventsDraft) -> None:
    figures = _evaluate(draft)
    result = _result(draft.plan, draft.source, draft.fitted, draft.made, draft.objects)
    draft.result = replace(result, evaluation=figures, verified=draft.verified, columns=draft.described)


def _attack_all(draft: EventsDraft) -> None:
    draft.result = replace(draft.result, attacks=_attack(draft))


def _count_moved(draft: EventsDraft) -> None:
    (rows, size), (rows_before, size_before) = draft.engine.moved, draft.moved
    draft.result = replace(draft.result, moved={"rows": rows - rows_before, "bytes": size - size_before})


def _spent(release: EventsRelease, plan: EventsPlan, engine: Engine, ledger: Ledger, job_sha256: str) -> EventsRelease:
    """The release with what its objects have spent by now, where a ledger adds up; they are the persons there.

    An object spends whether or not any of its events could be used.
    """
    if release.guarantee.epsilon is None or not release.guarantee.differentially_private:
        return release
    subject = Subject(plan.name, plan.key, plan.owner.name, spelling(plan.owner), {}, {}, person_key="object")
    ledger.book.refuse_person(subject)
    listed = engine.ask("events/list_objects", source=plan.source, owner=column(plan.owner.name, "s"))
    proven = plan.part.generate.seed is None
    cost = Spent(float(release.guarantee.epsilon), 0.0, proven)
    account = spend(ledger, subject, listed.column("person"), cost, job_sha256)
    return replace(release, account=account.content, warnings=(*release.warnings, *account.warnings))


def _ledger(fitted: Fitted) -> list[dict[str, object]]:
    """What was spent of the budget; nothing where there is none."""
    return [spend.to_dict() for spend in fitted.ledger.spends] if isinstance(fitted, Private) else []


def _result(plan: EventsPlan, source: _Source, fitted: Fitted, made: Made, objects: int) -> EventsRelease:
    """What was made of what, before it is verified, compared and attacked."""
    ensemble = fitted if isinstance(fitted, Ensemble) else None
    return EventsRelease(
        name=plan.name,
        objects=made.objects,
        events=made.events,
        parts=made.parts,
        clusters=ensemble.clusters if ensemble else 0,
        guarantee=guarantee_of(plan),
        ledger=tuple(_ledger(fitted)),
        source=dict(source.counts) | ({"parts": ensemble.parts} if ensemble else {}),
        gaps=asdict(source.gaps),
        cluster_sizes=ensemble.sizes if ensemble else {},
        evaluation={},
        attacks={},
        verified={},
        moved={},
        warnings=tuple(_warnings(plan, source, fitted, made, objects)),
    )


def _read(plan: EventsPlan, engine: Engine) -> _Source:
    """For `ratio` and `none`: states as they are, sequences split."""
    placed, listed, counts = read_placed(plan, engine)
    sequences = sequence(plan, placed, counts, engine)
    rows = engine.row("engine/count_rows", table=plan.source)["rows"]
    counts = counts | {"left_out": rows - counts["events"]}
    return _Source(placed, listed, sequences.split, counts, sequences.gaps, sequences)


def read_private(plan: EventsPlan, engine: Engine) -> _Source:
    """For `laplace`: public states and times alone, sequences whole."""
    domain = plan.domain
    assert domain is not None  # noqa: S101 - narrowed by the caller
    words = list(zip(*domain.states, strict=True))
    names = [n.name for n in plan.state_names]
    columns = {n.name: pa.array(w, pa.string()) for n, w in zip(names, words, strict=True)}
    listed = engine.put(
        f"{plan.name}_listed", pa.table({"state": pa.array(range(len(domain.states)), pa.int64()), **columns})
    )
    mapped = engine.make(
        "events/map_states",
        f"{plan.name}_mapped",
        events=order_events(plan, engine),
        listed=listed,
        states=names,
        orders=[o.name for o in (*plan.orders, *plan.group)],
        empty=literal(""),
        other=domain.other,
        first_time=timestamp(domain.first.isoformat()) if domain.first else None,
        last_time=timestamp(domain.last.isoformat()) if domain.last else None,
    )
    placed = place_events(plan, mapped, engine)
    counts = count_source(plan, placed, engine)
    sequences = sequence(plan, placed, counts, engine, split=False)
    return _Source(placed, listed, sequences.split, counts, sequences.gaps, None)


def _fit(draft: EventsDraft, placed: exp.Table, step: Step) -> Fitted:
    """What the release is made from, or would be from other events that were placed."""
    plan, source, rng, engine = draft.plan, draft.source, draft.rng, draft.engine
    if plan.domain is not None:
        return fit_laplace(plan, placed, engine, step)
    sequences = source.sequences
    if sequences is None or placed is not source.placed:
        sequences = sequence(plan, placed, source.counts, engine)
    return fit_ensemble(plan, sequences, rng, engine, step)


def guarantee_of(plan: EventsPlan) -> Guarantee:
    """The promise in words."""
    epsilon = float(plan.part.privacy.epsilon) if plan.part.privacy.epsilon is not None else None
    if plan.method == "laplace":
        return Guarantee(
            "laplace",
            epsilon,
            plan.unit,
            True,
            f"{epsilon:g}-differential privacy per {plan.unit}, with all its events, under adding or removing one",
        )
    if plan.method == "ratio":
        return Guarantee(
            "ratio",
            epsilon,
            "event",
            False,
            "not differential privacy: an entry of the models is used where one record less would change its frequency "
            f"by a factor of at most e^{epsilon:g}, but whether it is used can hang on one record, and one object has "
            "many; an ending can rest on one record; daily starts, durations and generic times are used as they are",
        )
    if plan.method == "none":
        return Guarantee("none", None, "nobody", False, "none: nothing is protected; for comparison only")
    raise UnknownKindError(plan.method, "privacy method of events")


def _evaluate(draft: EventsDraft) -> dict[str, float]:
    plan, source, table, made, fitted = draft.plan, draft.source, draft.table, draft.made, draft.fitted
    engine = draft.engine
    support = {}
    if isinstance(fitted, Ensemble):
        found = fitted.support
        support = {
            "mean_support": found.mean,
            "suppressed_entries": found.suppressed_share,
            "suppressed_records": found.suppressed_records_share,
        }
    if not made.events or not source.counts["events"]:
        return support
    split = engine.make(
        "events/split_made", f"{plan.name}_compared", made=table, objects=OBJECTS_MOST, timed=plan.timed, whole=False
    )
    shingle = 1 if plan.domain is not None else plan.part.clusters.shingle
    compared = Source(plan.name, source.compared, engine)
    return asdict(evaluate(plan.name, compared, split, engine, shingle)) | support


def _attack(draft: EventsDraft) -> dict[str, object]:
    draft.say("attacking")
    source = draft.source
    found = attack(
        draft.plan,
        source.placed,
        source.counts["objects"],
        lambda placed: _fit(draft, placed, _silent),
        draft.rng,
        draft.engine,
    )
    return found.to_dict()


def _warnings(plan: EventsPlan, source: _Source, fitted: Fitted, made: Made, objects: int) -> Iterator[str]:
    key = plan.key
    if plan.method == "none":
        yield f"{key}.privacy: none protects nobody; the models repeat what the source holds"
    if plan.method == "ratio":
        yield (
            f"{key}.privacy: ratio is the source's method and not differential privacy: one object can decide whether "
            'a pattern is released; for a promise use method = "laplace"'
        )
    gaps = source.gaps
    if gaps.floored or gaps.together > MUCH_TOGETHER:
        found = "none" if gaps.threshold_hours is None else f"{gaps.threshold_hours:.3g} h"
        least = f", the least it takes, for its rule gave less than {LEAST_HOURS:g} h" if gaps.floored else ""
        yield (
            f"{key}.gap_hours: auto found {found}{least}; {gaps.together:.0%} of the gaps are of less than a minute, "
            "as where much is charted at once, and are not counted for it; give the hours that divide stays or visits"
        )
    if isinstance(fitted, Private):
        yield from _private_warnings(plan, fitted)
    if unowned := source.counts["unowned"]:
        has = "row has" if unowned == 1 else "rows have"
        yield f"{key}.object: {unowned:,} {has} no {plan.owner.name}: they are nobody's, and not used"
    left_out = source.counts.get("left_out", 0) - unowned  # laplace counts none
    if left_out > 0:
        are, they = ("row is", "it has") if left_out == 1 else ("rows are", "they have")
        yield f"{key}.source: {left_out:,} {are} left out: {they} not {needed(plan)}"
    if made.objects < objects:
        yield f"{key}: {objects - made.objects} of {objects} objects have no event: no first state may be used"
    if plan.part.generate.seed is not None:
        yield f"{key}.generate.seed: whoever knows it can repeat the drawing; leave it out but for tests"


def _private_warnings(plan: EventsPlan, fitted: Private) -> Iterator[str]:
    key = plan.key
    if plan.outward:
        yield (
            f"{key}.source: looks across rows ({', '.join(plan.outward)}); the promise holds only if each object's "
            "rows depend on that object alone, which is the custodian's assertion"
        )
    if fitted.noise_ratio > 1:
        yield (
            f"{key}.privacy: most of the table of transitions is noise (cells x scale / transitions is "
            f"{fitted.noise_ratio:.3g}); list fewer states, or spend a larger epsilon"
        )
    if fitted.group_noise_ratio > 1:
        yield (
            f"{key}.privacy.groups: most of the tables by group is noise (cells x scale / transitions is "
            f"{fitted.group_noise_ratio:.3g}), so that groups hardly differ in what is made; list fewer groups or "
            "states, or spend a larger epsilon"
        )
    yield (
        f"{key}: counts of the source, evaluation and attacks are not noised: publish none of them. Each release that "
        "is drawn spends epsilon, also one that is thrown away"
    )
