"""A release of series, made: staged and verified, not yet published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.job.series import STATISTICS
from sqldeid.ledger.core import Entered, Ledger
from sqldeid.making import Hearing, Making
from sqldeid.numbering import Members, TableClasses
from sqldeid.publish import Note, Staging
from sqldeid.series.blocks import Effect, new_numbers, release_blocks, rows_of, secret
from sqldeid.series.carry import gathers, send
from sqldeid.series.codebook import columns_of
from sqldeid.series.compare import compare
from sqldeid.series.ledger import admit, looking_up, noted, with_ledger
from sqldeid.series.link import Link, loss_warnings, members, raised, refuse_alone
from sqldeid.series.own_effect import measure_own_effect
from sqldeid.series.perturb.draws import generator
from sqldeid.series.plan import SeriesPlan
from sqldeid.series.result import SeriesRelease
from sqldeid.series.shape import Shaped, shape, shown_steps
from sqldeid.series.standing import Looking
from sqldeid.series.utility import measure_utility
from sqldeid.series.verify import Verified, name_table, verify
from sqldeid.series.witness import Witness
from sqldeid.sql import identifier, render


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
    engine, ledger, together = making.engine, making.ledger, making.together
    known = None if ledger is None else looking_up(ledger.book, planned)
    begun = begin(planned, engine, making.listener, looking=known, named=together is not None)
    if ledger is not None:
        begun = _admitted(begun, ledger, engine, making.job_sha256)
    elif together is not None:
        together.add(planned, begun.shaped, engine)
    return finish(begun, engine, making.staging)


def _admitted(begun: Begun, ledger: Ledger, engine: Engine, job_sha256: str) -> Begun:
    """Without whom the ledger holds back; the others are numbered anew."""
    begun.clock.step("ledger", "holding the release to earlier ones")
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
    planned, shaped, seed, numbers, clock = begun.planned, begun.shaped, begun.seed, begun.numbers, begun.clock
    clock.step("perturb", "perturbing series")
    effect, witness = Effect(), Witness(len(shaped.prepared.variables.names))
    released = _perturbed(planned, shaped, numbers, seed, effect, witness, engine)
    clock.step("write", "writing the release")
    note = noted(note_of(planned, shaped, effect), begun.entered)
    written = _stage(begun, released, staging, note, engine)
    clock.step("verify", "verifying what was written")
    verified = verify(planned, shaped, written, numbers, effect.greatest, engine, beside)
    clock.step("attack", "attacking what was written")
    attacks = witness.attack(generator(seed, "attacks"))
    own = measure_own_effect(planned, shaped, numbers, written, generator(seed, "own"), engine)
    if own is not None:
        attacks["own_features"] = own.attack
    differing = _differing(planned, witness, seed, clock)
    clock.step("utility", "measuring what the release is good for")
    utility = measure_utility(witness.outcomes(shaped.outcomes)) if shaped.outcomes is not None else {}
    clock.end()
    result = replace(_result(planned, shaped, verified, effect, attacks, clock.seconds), disagreement=differing)
    rows, size = (after - before for after, before in zip(engine.moved, begun.moved, strict=True))
    result = replace(result, utility=utility, own_features={} if own is None else own.features)
    result = with_ledger(replace(result, moved={"rows": rows, "bytes": size}), begun.entered)
    return result if begun.members is None else with_link(result, planned, shaped.link, begun.members.account)


def with_link(
    result: SeriesRelease, planned: SeriesPlan, link: Link | None, account: Mapping[str, int]
) -> SeriesRelease:
    """The result with what the link with a table kept and cost."""
    warnings = (*result.warnings, *loss_warnings(planned, link, account))
    return replace(result, link={"table": str(planned.part.link), **account}, warnings=warnings)


def _differing(planned: SeriesPlan, witness: Witness, seed: int | bytes, clock: Clock) -> dict[str, object]:
    """Disagreement before and after, where the job asks for it."""
    asked = planned.part.disagreement
    if asked is None:
        return {}
    clock.step("disagreement", "measuring disagreement before and after")
    return compare(asked, witness, generator(seed, "disagreement"))


def _perturbed(
    planned: SeriesPlan,
    shaped: Shaped,
    numbers: NDArray[np.int64],
    seed: int | bytes,
    effect: Effect,
    witness: Witness,
    engine: Engine,
) -> exp.Table:
    """All released series in a temporary table of the engine that `gathers`."""
    there = gathers(engine)
    released = there.workbench(f"{planned.name}_released")
    there.execute(render("series/create_released", released=released))
    parts = (shaped.prepared.variables, shaped.carried, shaped.measured, shaped.classes)
    for block in release_blocks(planned, *parts, seed, engine.bench):
        effect.add(block, shaped.classes, shaped.measured.features.variable_number)
        witness.see(block, *parts[2:], None if shaped.link is None else shaped.link.table_class)
        rows = there.put(f"{planned.name}_block", rows_of(block, numbers, shaped.measured, shaped.classes))
        there.execute(render("series/add_released", released=released, rows=rows))
        there.drop(rows)
    return released


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
    sent = send(released, "number", np.arange(1, len(rows) + 1), rows, engine)
    written = staging.write(lambda target: statement(target=target, released=sent), note)
    if sent is not released:
        engine.drop(sent)
    gathers(engine).drop(released)
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
    verified: Verified,
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
        durations=replace(shaped.durations, classes=verified.lengths),  # those that are in the release
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


def _warnings(planned: SeriesPlan, shaped: Shaped, verified: Verified, attacks: Mapping[str, object]) -> list[str]:
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
        found.append(f"{key}: the release is empty")
    return found
