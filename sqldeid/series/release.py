"""A release of series, made: staged and verified, not yet published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.job.series import STATISTICS
from sqldeid.ledger.core import Entered, Ledger
from sqldeid.making import Hearing, Making, Together
from sqldeid.numbering import Members, TableClasses
from sqldeid.publish import Note, Staging
from sqldeid.series import statements
from sqldeid.series.attack_sample import AttackSample
from sqldeid.series.blocks import Effect, new_numbers, release_blocks, rows_of, secret
from sqldeid.series.codebook import columns_of
from sqldeid.series.compare import compare
from sqldeid.series.ledger import admit, looking_up, noted, with_ledger
from sqldeid.series.link import Link, loss_warnings, members, raised, refuse_alone
from sqldeid.series.own_effect import OwnEffect, measure_own_effect
from sqldeid.series.perturb.draws import generator
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.prepare import Prepared
from sqldeid.series.republication import Looking
from sqldeid.series.result import SeriesRelease, SeriesVerified
from sqldeid.series.shape import Shaped, shape, shown_steps
from sqldeid.series.targets import LEAST_RECORDS
from sqldeid.series.transfer import gathering_engine, to_source
from sqldeid.series.utility import measure_utility
from sqldeid.series.verify import name_table, verify
from sqldeid.sql import identifier, render
from sqldeid.stages import Stage, walk


@dataclass(slots=True)
class Clock:
    """Seconds by step; tells the listener of each."""

    name: str
    listener: Hearing
    seconds: dict[str, float] = field(default_factory=dict)
    current: str = ""
    since: float = 0.0

    def step(self, current: str, text: str) -> None:
        """Begin a step; the one before ends."""
        self.end()
        self.current, self.since = current, monotonic()
        self.listener.step(self.name, text)

    def end(self) -> None:
        """End the step."""
        if self.current:
            self.seconds[self.current] = round(monotonic() - self.since, 3)
        self.current = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """A release of series that is decided, but not written: who is in it, with which numbers.

    `moved` is what had come out of the engine before, `members` are those of a linked table.
    """

    planned: SeriesPlan
    shaped: Shaped
    seed: int | bytes
    numbers: NDArray[np.int64]
    clock: Clock
    moved: tuple[int, int]
    members: Members | None = None
    entered: Entered | None = None


def run(planned: SeriesPlan, making: Making) -> SeriesRelease:
    """Produce one release up to, not including, its publication.

    Raises
    ------
    JobError
        If the data break a rule of the job.
    VerificationError
        If what was written fails its re-check.
    """
    refuse_alone(planned)
    draft = SeriesDraft(planned, making.engine, making.staging, making.listener)
    walk(way_of(planned, making.ledger, making.together, making.job_sha256), draft, draft.hear)
    return draft.result


@dataclass(slots=True, repr=False)
class SeriesDraft:
    """A release on its way; its clock tells the listener of its steps.

    Parameters
    ----------
    beside
        What the written linked table says of each number: number, class.
    """

    planned: SeriesPlan
    engine: Engine
    staging: Staging
    listener: Hearing
    beside: exp.Table | None = None
    begun: Begun = field(init=False)
    effect: Effect = field(default_factory=Effect)
    sample: AttackSample = field(init=False)
    released: exp.Table = field(init=False)
    written: exp.Expr = field(init=False)
    verified: SeriesVerified = field(init=False)
    attacks: dict[str, object] = field(default_factory=dict)
    own: OwnEffect | None = None
    differing: dict[str, object] = field(default_factory=dict)
    utility: dict[str, object] = field(default_factory=dict)
    result: SeriesRelease = field(init=False)

    def hear(self, text: str) -> None:
        """Begin the step that a stage announces."""
        self.begun.clock.step(_STEPS[text], text)

    def drawn(self, name: str) -> np.random.Generator:
        """What draws for one purpose."""
        return generator(self.begun.seed, name)


_STEPS = {
    "holding the release to earlier ones": "ledger",
    "perturbing series": "perturb",
    "writing the release": "write",
    "verifying what was written": "verify",
    "attacking what was written": "attack",
    "measuring disagreement before and after": "disagreement",
    "measuring what the release is good for": "utility",
}
"""The name under which the seconds of a stage are told."""


def way_of(
    planned: SeriesPlan, ledger: Ledger | None = None, together: Together | None = None, job_sha256: str = ""
) -> tuple[Stage[SeriesDraft], ...]:
    """The stages of a release of series, in order; it is held to earlier ones, or to the run's others, where asked."""

    def decide(draft: SeriesDraft) -> None:
        known = None if ledger is None else looking_up(ledger.book, planned)
        named = together is not None
        draft.begun = begin(planned, draft.engine, draft.listener, looking=known, named=named)

    def hold(draft: SeriesDraft) -> None:
        if ledger is not None:
            draft.begun = _admitted(draft.begun, ledger, draft.engine, job_sha256)

    def compare_run(draft: SeriesDraft) -> None:
        if together is not None:
            together.add(planned, draft.begun.shaped, draft.engine)

    held: tuple[Stage[SeriesDraft], ...] = ()
    if ledger is not None:
        held = (Stage("holding the release to earlier ones", hold, lambda _: statements.comparing()),)
    elif together is not None:
        held = (Stage("", compare_run, lambda _: statements.comparing()),)
    return (Stage("", decide, lambda _: statements.deciding(planned)), *held, *_finishing(planned))


def _finishing(planned: SeriesPlan) -> tuple[Stage[SeriesDraft], ...]:
    """The stages once it is decided who is released: perturbed, written, verified, attacked and told."""
    differing: tuple[Stage[SeriesDraft], ...] = ()
    if planned.part.disagreement is not None:
        differing = (Stage("measuring disagreement before and after", _disagree),)
    return (
        Stage("perturbing series", _perturb, lambda _: statements.perturbing()),
        Stage("writing the release", _write, lambda target: statements.writing(planned, target)),
        Stage("verifying what was written", _verify, lambda _: statements.verifying(planned)),
        Stage("attacking what was written", _attack, lambda _: statements.attacking(planned)),
        *differing,
        Stage("measuring what the release is good for", _measure),
        Stage("", _tell),
    )


def _admitted(begun: Begun, ledger: Ledger, engine: Engine, job_sha256: str) -> Begun:
    """Without whom the ledger holds back; the others are numbered anew."""
    let_out = admit(ledger, begun.planned, begun.shaped, engine, job_sha256)
    begun.clock.end()
    numbers = new_numbers(begun.shaped.measured, let_out.shaped.classes, begun.seed)
    return replace(begun, shaped=let_out.shaped, numbers=numbers, entered=let_out.entered)


def begin(
    planned: SeriesPlan,
    engine: Engine,
    listener: Hearing,
    table: TableClasses | None = None,
    *,
    looking: Looking | None = None,
    named: bool = False,
) -> Begun:
    """Decide who is released, and draw their numbers.

    Parameters
    ----------
    table
        Of the table release that the job links: its classes are what lengths and features are formed within, and its k
        holds for them, too.
    looking
        Tells in which group each person was released before, and is released again.
    named
        Whether persons' keys are wanted, to compare releases by.

    Raises
    ------
    JobError
        If the data break a rule of the job.
    """
    clock, moved = Clock(planned.name, listener), engine.moved
    planned = planned if table is None else raised(planned, table.k)
    shaped = shape(planned, engine, clock.step, table, looking=looking, named=named)
    seed = secret(planned.part.perturb)
    numbers = new_numbers(shaped.measured, shaped.classes, seed)
    link, found = shaped.link, None
    if link is not None:
        found = members(planned, link, shaped.measured, shaped.classes, numbers, engine)
    clock.end()
    return Begun(planned, shaped, seed, numbers, clock, moved, found)


def finish(begun: Begun, engine: Engine, staging: Staging, beside: exp.Table | None = None) -> SeriesRelease:
    """Perturb, write and verify what was decided.

    Parameters
    ----------
    beside
        What the written linked table says of each number: number, class.

    Raises
    ------
    VerificationError
        If what was written fails its re-check, alone or with the linked table.
    """
    draft = SeriesDraft(begun.planned, engine, staging, begun.clock.listener, beside)
    draft.begun = begun
    walk(_finishing(begun.planned), draft, draft.hear)
    return draft.result


def _perturb(draft: SeriesDraft) -> None:
    """All released series in a temporary table of the `gathering_engine`."""
    begun, shaped, planned = draft.begun, draft.begun.shaped, draft.begun.planned
    there, draft.sample = gathering_engine(draft.engine), AttackSample(len(shaped.prepared.variables.names))
    released = there.make("series/create_released", f"{planned.name}_released")
    parts = (shaped.prepared.variables, shaped.carried, shaped.measured, shaped.classes)
    for block in release_blocks(planned, *parts, begun.seed, draft.engine.bench):
        draft.effect.add(block, shaped.classes, shaped.measured.features.variable_number)
        draft.sample.add(block, *parts[2:], None if shaped.link is None else shaped.link.table_class)
        rows = there.put(f"{planned.name}_block", rows_of(block, begun.numbers, shaped.measured, shaped.classes))
        there.run("series/add_released", released=released, rows=rows)
        there.drop(rows)
    draft.released = released


def _write(draft: SeriesDraft) -> None:
    note = noted(note_of(draft.begun.planned, draft.begun.shaped, draft.effect), draft.begun.entered)
    draft.written = _stage(draft.begun, draft.released, draft.staging, note, draft.engine)


def _verify(draft: SeriesDraft) -> None:
    begun, greatest = draft.begun, draft.effect.greatest
    draft.verified = verify(
        begun.planned, begun.shaped, draft.written, begun.numbers, greatest, draft.engine, draft.beside
    )


def _attack(draft: SeriesDraft) -> None:
    begun = draft.begun
    draft.attacks = draft.sample.attack(draft.drawn("attacks"))
    own = measure_own_effect(
        begun.planned, begun.shaped, begun.numbers, draft.written, draft.drawn("own"), draft.engine
    )
    if own is not None:
        draft.own, draft.attacks["own_features"] = own, own.attack


def _disagree(draft: SeriesDraft) -> None:
    asked = draft.planned.part.disagreement
    if asked is not None:
        draft.differing = compare(asked, draft.sample, draft.drawn("disagreement"))


def _measure(draft: SeriesDraft) -> None:
    outcomes = draft.begun.shaped.outcomes
    if outcomes is not None:
        draft.utility = measure_utility(draft.sample.outcomes(outcomes))
    draft.begun.clock.end()


def _tell(draft: SeriesDraft) -> None:
    begun = draft.begun
    planned, shaped = begun.planned, begun.shaped
    result = _result(planned, shaped, draft.verified, draft.effect, draft.attacks, begun.clock.seconds)
    rows, size = (after - before for after, before in zip(draft.engine.moved, begun.moved, strict=True))
    result = replace(
        result,
        disagreement=draft.differing,
        utility=draft.utility,
        own_features={} if draft.own is None else draft.own.features,
        moved={"rows": rows, "bytes": size},
    )
    result = with_ledger(result, begun.entered)
    if begun.members is not None:
        result = with_link(result, planned, shaped.link, begun.members.account)
    draft.result = result


def with_link(
    result: SeriesRelease, planned: SeriesPlan, link: Link | None, account: Mapping[str, int]
) -> SeriesRelease:
    """The result with what the link with a table kept and cost."""
    warnings = (*result.warnings, *loss_warnings(planned, link, account))
    return replace(result, link={"table": str(planned.part.link), **account}, warnings=warnings)


def _stage(begun: Begun, released: exp.Table, staging: Staging, note: Note, engine: Engine) -> exp.Expr:
    """Write the release."""
    planned, measured, names = begun.planned, begun.shaped.measured, begun.shaped.named
    if planned.part.shape == "wide":
        variables = [{"number": i, "name": identifier(name)} for i, name in names.items()]
        statement = partial(render, "series/stage_wide", variables=variables)
    else:
        statement = partial(render, "series/stage_long", names=engine.put(f"{planned.name}_names", name_table(names)))
    kept = measured.person_at[~begun.shaped.classes.dropped]
    rows = np.bincount(begun.numbers[kept], weights=measured.lengths[kept]).astype(np.int64)[1:]
    sent = to_source(released, "number", np.arange(1, len(rows) + 1), rows, engine)
    written = staging.write(lambda target: statement(target=target, released=sent), note)
    if sent is not released:
        engine.drop(sent)
    gathering_engine(engine).drop(released)
    return written


def note_of(planned: SeriesPlan, shaped: Shaped, effect: Effect) -> Note:
    """What is kept on the release: what was asked, the greatest distance from targets; no count."""
    part = planned.part
    content: dict[str, object] = {
        "kind": "series",
        "durations": part.durations.model_dump(),
        "privacy": part.privacy.model_dump(),
        "method": part.perturb.method,
        "shape": part.shape,
        **({} if part.link is None else {"link": part.link}),
        "round": shown_steps(planned, shaped),
        "tau": dict(effect.greatest),
    }
    units = shaped.prepared.variables.units
    described = {"person_number": "numbered anew, in random order", "step": f"{float(part.step_hours):g} h each"}
    if part.shape == "long":
        columns = {**described, "variable": "what was measured", "value": "perturbed"}
    else:
        columns = {**described, **{n: f"perturbed, {units.get(n, 'unit of the source')}" for n in _names(shaped)}}
    return Note(planned.name, content, columns)


def _names(shaped: Shaped) -> tuple[str, ...]:
    """Variables that may be named."""
    return tuple(shaped.named.values())


def _result(
    planned: SeriesPlan,
    shaped: Shaped,
    verified: SeriesVerified,
    effect: Effect,
    attacks: Mapping[str, object],
    seconds: Mapping[str, float],
) -> SeriesRelease:
    part, measured, classes = planned.part, shaped.measured, shaped.classes
    n, dropped, link = measured.features.n, classes.dropped, shaped.link
    persons = len(shaped.prepared.person_number) if link is None else link.in_series
    return SeriesRelease(
        name=planned.name,
        unit=part.person,
        persons=persons + shaped.prepared.too_short,
        released=verified.released,
        records=effect.records,
        variables=_names(shaped),
        columns=columns_of(planned, shaped),
        durations=shaped.durations.released_with(verified.lengths),
        classes=verified.classes,
        k=verified.smallest_class,
        nulls=part.privacy.nulls,
        heuristic=part.privacy.heuristic,
        targets=part.privacy.targets,
        method=part.perturb.method,
        withheld={"series": int(dropped.sum()), "records_share": float(n[dropped].sum() / max(int(n.sum()), 1))},
        tau=verified.tau,
        unfeasibility={
            "used": effect.used / max(effect.series, 1),
            "class_mean": effect.class_mean / max(effect.series, 1),
        },
        distortion=effect.change / max(effect.records, 1),
        distortion_by=_by_variable(shaped, effect),
        attacks=attacks,
        too_short=shaped.prepared.too_short,
        features=_features(planned, shaped),
        asked={"durations": part.durations.k, "k": part.privacy.k},
        warnings=tuple(_warnings(planned, shaped, verified, attacks)),
        as_they_are=_as_they_are(planned, shaped),
        round=shown_steps(planned, shaped),
        seconds=dict(seconds),
    )


def _by_variable(shaped: Shaped, effect: Effect) -> dict[str, dict[str, float | str]]:
    """Mean |x̃ − x| of each variable that may be named, with its unit."""
    units = shaped.prepared.variables.units
    return {
        name: {"mean": total / n, "unit": units.get(name, "")}
        for number, name in shaped.named.items()
        if (found := effect.changed.get(number)) is not None
        for total, n in [found]
        if n
    }


def _features(planned: SeriesPlan, shaped: Shaped) -> tuple[str, ...]:
    """Built-in features that every series shares which is changed at all; the job's own only form the classes."""
    kept = {planned.kept(name) for name in _names(shaped)} - {"none"}
    return () if not kept else ("mean",) if "mean" in kept else STATISTICS


def _as_they_are(planned: SeriesPlan, shaped: Shaped) -> tuple[str, ...]:
    return tuple(name for name in _names(shaped) if planned.kept(name) == "none")


def _found_by_points(attacks: Mapping[str, object]) -> str:
    """What the attacker with five raw points achieved, in words; nothing where nobody was attacked."""
    points = attacks.get("raw_points")
    if not isinstance(points, Mapping) or not points["5"]["affine"]["persons"]:
        return "whoever knows a few values finds it"
    return f"whoever knows five values singled out {points['5']['affine']['sole']:.0%} of the persons"


def _left_out(planned: SeriesPlan, prepared: Prepared) -> Iterator[str]:
    """Rows of the source that are in nobody's series."""
    if rows := prepared.unowned:
        has = "row has" if rows == 1 else "rows have"
        yield f"{planned.key}.person: {rows:,} {has} no {planned.person.name}: they are nobody's, and not released"
    if rows := prepared.untimed:
        have = "1 row has" if rows == 1 else f"{rows:,} rows have"
        yield f"{planned.key}.time: {have} no {planned.part.time}, or an infinite one: left out"


def _warnings(
    planned: SeriesPlan, shaped: Shaped, verified: SeriesVerified, attacks: Mapping[str, object]
) -> list[str]:
    key, part, found = planned.key, planned.part, []
    open_ = _as_they_are(planned, shaped)
    if open_:
        found.append(f"{key}.features: released as they are, shortened only: {', '.join(open_)}")
    if part.perturb.method != "shared":
        found.append(
            f"{key}.perturb.method: with {part.perturb.method} a series keeps its shape: {_found_by_points(attacks)}; "
            'method = "shared", the default, protects against that'
        )
    if part.perturb.method == "shared" and part.privacy.nulls != "null-pattern":
        found.append(
            f"{key}.privacy.nulls: who lacks some variables may be alone with that in a class; with "
            'perturb.method = "shared" take "null-pattern", the default'
        )
    if part.privacy.nulls == "source":
        found.append(f"{key}.privacy.nulls: with source a lone value in a class keeps its own features")
    if planned.own:
        found.append(
            f"{key}.features: features of your own form the classes; series are not changed to "
            "share them: own_features of the result tells how far released ones are from their class's means"
        )
    if part.perturb.seed is not None:
        found.append(f"{key}.perturb.seed: who knows it can undo numbering and noise; leave it out of real releases")
    found += _left_out(planned, shaped.prepared)
    lost = [name for i, name in enumerate(shaped.prepared.variables.names) if i not in shaped.there]
    if lost and not shaped.from_data:
        found.append(f"{key}.variables: nobody is released with {', '.join(lost)}")
    elif lost:  # their names are values of the data, and no message holds one
        every, of = len(shaped.prepared.variables.names), part.variable
        found.append(
            f"{key}.variables: {len(lost)} of {every} values of {of} are left out, for fewer than k persons could "
            "be released with them; name the variables wanted"
        )
    if not verified.released:
        short = int(shaped.prepared.length.max()) < LEAST_RECORDS
        why = f": all series have fewer than {LEAST_RECORDS} steps; take a smaller step_hours" if short else ""
        found.append(f"{key}: the release is empty{why}")
    return found
