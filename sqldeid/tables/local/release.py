"""`search.method = "local"`: classes that each have levels of their own, written, verified and bounded from below.

The folded combinations come as arrays (`combinations`), are put into layers (`sqldeid.tables.peel`), and go back as one
table of combinations with their layer, from which the source's engine writes labels.

*Guarantee*: as of k-anonymity and the job's other criteria, on classes of equal labels. Which class a row is in depends
on quasi-identifying values alone where k is all that is asked for. *Does not protect* against who knows that levels are
as low as neighbours allow (`sqldeid.tables.local.result`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from sqldeid import attacked
from sqldeid.attacked import ATTACKS, Attacks, none_made
from sqldeid.engine.base import Engine
from sqldeid.errors import AttackFailedError
from sqldeid.hierarchy import named_level
from sqldeid.keys import Key
from sqldeid.ledger.core import Entered, Ledger
from sqldeid.making import Cohorts, Hearing, Making
from sqldeid.publish import LEDGER_MARK, LEDGER_NOTE, Note, Staging
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Stage, Step, walk
from sqldeid.tables.certificate.local_bound import certify_bound, no_bound
from sqldeid.tables.disguise.disguise import (
    RUN_NOTE,
    Secrets,
    days_noted,
    disguise,
    fresh_secrets,
    pseudonyms,
    refuse_fine_dates,
)
from sqldeid.tables.disguise.statements import disguising
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.local.combinations import Combinations, problem_of, read_combinations, refuse_too_many
from sqldeid.tables.local.forming import asked_of, formed
from sqldeid.tables.local.layers import Layered, Layers
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.result import LocalRelease, LocalVerified
from sqldeid.tables.local.rollup import RollUp
from sqldeid.tables.local.statements import holding_back, reading, rolling_up, telling, verifying, writing
from sqldeid.tables.local.summary import Found, summarised
from sqldeid.tables.local.told import Told
from sqldeid.tables.local.verify import Reading, Whole, verify_layers
from sqldeid.tables.local.write import PLACING, place_layers, stage_layers
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.peel import partition
from sqldeid.tables.peel.problem import LocalProblem, Partition
from sqldeid.tables.plan.choosing import choosing
from sqldeid.tables.plan.plan import QuasiIdentifier
from sqldeid.tables.verify.verify import noted_criteria
from sqldeid.tables.write.unchanged_source import source_unchanged

if TYPE_CHECKING:
    from sqldeid.tables.local.remade import Remade


@dataclass(slots=True, repr=False)
class LocalDraft:
    """A release on its way: what each stage has found, for those after it.

    Parameters
    ----------
    moved
        Rows and bytes that had come out of the engine before.
    folded, out, shaped
        The source as it was folded, without the rows that the ledger holds back, and as it leaves: disguised, where
        the job asks for that.
    suppressed
        Rows that criteria suppress.
    beyond
        Rows of classes of k and more that fail another criterion, where levels are chosen by k alone; else None.
    entered
        What the ledger wrote down; None where there is none.
    whole
        Whether all that levels were chosen for goes out, and nobody's are an earlier release's.
    attacks
        What attackers achieve; None where the job asks for none.
    remade
        The release of some of the persons, for these attacks, on its way; None where there are none, or a ledger.
    spared
        The attacks that are left out, each with the reason: they failed before.
    """

    planned: LocalPlan
    engine: Engine
    staging: Staging
    listener: Hearing
    key: Key | None
    moved: tuple[int, int] = (0, 0)
    folded: Folded = field(init=False)
    out: Folded = field(init=False)
    shaped: Folded = field(init=False)
    found: Combinations = field(init=False)
    problem: LocalProblem = field(init=False)
    parts: Partition = field(init=False)
    layers: Layers = field(init=False)
    written: exp.Expr = field(init=False)
    verified: LocalVerified = field(init=False)
    secrets: Secrets | None = None
    cohorts: Cohorts | None = None
    seconds: float = 0.0
    suppressed: int = 0
    beyond: int | None = None
    entered: Entered | None = None
    whole: bool = True
    attacks: Attacks | None = None
    remade: Remade | None = None
    spared: Mapping[str, str] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """Tell the listener which stage begins."""
        self.listener.step(self.planned.name, text)

    def layered(self, folded: Folded) -> Layered:
        """A source of the release in the layers that were found so far."""
        return Layered(self.planned, folded, self.found, self.layers, self.engine)


LocalStage = Stage[LocalDraft]


def run(planned: LocalPlan, making: Making) -> LocalRelease:
    """Produce one release up to, not including, its publication.

    Raises
    ------
    JobError, HierarchyError
        If the data breaks a rule of the job, or its combinations do not fit into memory.
    NoSolutionError
        If more rows than allowed can be in no class that meets the criteria.
    VerificationError
        If what was written fails its re-check.
    """
    if making.ledger is not None:
        from sqldeid.tables.ledger.rules import refuse_unkept

        refuse_unkept(planned.table)  # before classes are formed for nothing
    spared = making.spared.get(planned.name, {})
    none = none_made("", spared) if spared.keys() >= {*ATTACKS} else None
    if none is not None:
        planned = replace(planned, table=replace(planned.table, attacks=False))
    key = making.key() if pseudonyms(planned.table) else None
    draft = LocalDraft(planned, making.engine, making.staging, making.listener, key, making.engine.moved)
    draft.cohorts, draft.attacks, draft.spared = making.cohorts, none, spared
    ledger, job = making.ledger, making.job_sha256
    try:
        walk(way_of(planned, compared=making.cohorts is not None, ledger=ledger, job_sha256=job), draft, draft.say)
    finally:
        if draft.remade is not None:
            draft.remade.stop()
    rows, size = (after - old for after, old in zip(draft.engine.moved, draft.moved, strict=True))
    found = Found(
        draft.folded,
        draft.problem,
        draft.parts,
        draft.layers,
        draft.verified,
        draft.seconds,
        (rows, size),
        draft.found.leaves,
        draft.beyond,
    )
    result = replace(summarised(planned, found, draft.written, draft.engine), attacks=draft.attacks)
    if draft.entered is not None:
        warnings = (*result.warnings, *draft.entered.warnings)
        result = replace(result, ledger=draft.entered.account, warnings=warnings)
    return _certified(planned, draft, result) if making.certificate else result


def _certified(planned: LocalPlan, draft: LocalDraft, result: LocalRelease) -> LocalRelease:
    """The result with the proof of its bound, or with a warning where there is none."""
    plan, parts = choosing(planned.table), draft.parts
    if reason := no_bound(plan, parts.parts):
        told = f"{planned.key}: there is no certificate: {reason}"
        return replace(result, warnings=(*result.warnings, told))
    rows = int(draft.problem.rows.sum())
    proof = certify_bound(plan, rows, parts.parts, parts.share, parts.unit, parts.bound)
    return replace(result, certificate=proof)


def way_of(
    planned: LocalPlan, *, compared: bool = False, ledger: Ledger | None = None, job_sha256: str = ""
) -> tuple[LocalStage, ...]:
    """The stages of a release, in order."""
    plan, apart = planned.table, planned.table.attacks and ledger is None
    held = () if ledger is None else (_held_to(planned, ledger, job_sha256),)
    rolled = (Stage("rolling up to common levels", _roll_up, lambda target: rolling_up(planned, target)),)
    told = (Stage("telling what labels say", _tell, lambda target: telling(planned, target)),)
    return (
        Stage("", lambda draft: _draw(draft, repeated=ledger is not None)),
        Stage("folding the source", _fold, lambda target: reading(plan, target)),
        *([_holding_out()] if apart else []),
        Stage("forming classes", _form),
        *held,
        Stage("writing the release", _disguise, lambda _: disguising(plan)),
        Stage("", _write, lambda target: writing(planned, target)),
        *([Stage("", _place, lambda _: as_needed(*PLACING))] if compared else []),
        Stage("verifying what was written", _verify, lambda target: verifying(planned, target)),
        *(rolled if planned.roll_up else ()),
        *(told if planned.hierarchies else ()),
        *(_attacking(planned, apart=apart) if plan.attacks else ()),
    )


def _holding_out() -> LocalStage:
    """The stage that draws who is held out of the release that is attacked, and sets out to make it."""

    def draw(draft: LocalDraft) -> None:
        from sqldeid.tables.local.remade import Remade

        if "singling_out" in draft.spared:
            return
        try:
            draft.remade = Remade(draft.planned, draft.folded, draft.engine)
        except attacked.TOLERATED as error:
            raise AttackFailedError(draft.planned.name, "singling_out", attacked.why_failed(error)) from None

    def steps() -> Iterator[Step]:
        from sqldeid.tables.attacks.held_out import drawing_steps
        from sqldeid.tables.local.remade import REMADE

        yield from drawing_steps()
        yield from as_needed(*REMADE)

    return Stage("", draw, lambda _: steps())


def _attacking(planned: LocalPlan, *, apart: bool) -> Iterator[LocalStage]:
    """The stage that attacks what was verified.

    Parameters
    ----------
    apart
        Whether persons were drawn before. Beside a ledger nobody is held out.
    """
    from sqldeid.tables.attacks.run import SAID, attacking_steps

    yield Stage(SAID, _attack, lambda _: attacking_steps(planned.table, iter(()), None if apart else iter(())))


def _attack(draft: LocalDraft) -> None:
    from sqldeid.tables.attacks.run import attack
    from sqldeid.tables.local.attacked import attacked_of

    verified, whole = draft.verified, draft.whole
    found = attacked_of(draft.layered(draft.folded), draft.written, draft.remade)
    proven = not draft.parts.stopped
    found = replace(found, rows=verified.rows, released=verified.released, whole=whole, proven=proven)
    draft.attacks = attack(replace(found, spared=draft.spared))


def _held_to(planned: LocalPlan, ledger: Ledger, job_sha256: str) -> LocalStage:
    """The stage that holds a release to earlier ones."""

    def hold(draft: LocalDraft) -> None:
        from sqldeid.tables.local.held import let_out

        made = let_out(draft.layered(draft.folded), ledger, job_sha256)
        draft.out = replace(draft.folded, source=made.source)
        draft.found, draft.layers, draft.suppressed = made.found, made.layers, made.suppressed
        draft.entered, draft.whole = made.entered, made.whole

    return Stage("", hold, lambda _: holding_back())


def _draw(draft: LocalDraft, *, repeated: bool) -> None:
    """Draw the secrets of the release."""
    draft.secrets = fresh_secrets(draft.planned.table, draft.key, repeated=repeated)


def _fold(draft: LocalDraft) -> None:
    """Fold the source, and read its combinations."""
    planned, engine = draft.planned, draft.engine
    draft.folded = draft.out = fold(planned.table, engine)
    refuse_too_many(planned, draft.folded, engine.bench)
    draft.found = read_combinations(draft.folded, engine.bench)
    draft.problem = problem_of(planned, draft.folded, draft.found, engine.bench)


def _form(draft: LocalDraft) -> None:
    """Form classes; refuse to go on where more rows than allowed are in none."""
    problem = draft.problem
    began = monotonic()
    draft.parts = partition(asked_of(draft.planned, problem))
    draft.seconds = monotonic() - began
    found = formed(draft.planned, problem, draft.parts)
    draft.layers, draft.beyond = found.layers, found.beyond
    draft.suppressed = int(problem.rows[~draft.layers.released].sum())


def _disguise(draft: LocalDraft) -> None:
    draft.shaped = draft.out
    refuse_fine_dates(draft.planned.table, draft.layers.nodes)
    if draft.secrets is not None:
        source = disguise(draft.planned.table, draft.engine, draft.out.source, draft.secrets)
        draft.shaped = replace(draft.out, source=source)


def _write(draft: LocalDraft) -> None:
    note = note_of(draft.planned, draft.layers.nodes, draft.secrets)
    if draft.entered is not None:  # who checks the release again must ask the ledger who is in it
        note = note.also({LEDGER_NOTE: draft.entered.account["release"], LEDGER_MARK: draft.entered.mark})
    draft.written = stage_layers(draft.layered(draft.shaped), draft.staging, note)


def _place(draft: LocalDraft) -> None:
    place_layers(draft.layered(draft.shaped), draft.cohorts)


def _verify(draft: LocalDraft) -> None:
    """Compare the release with the source; where there is no snapshot, that with the source as it was folded."""
    layers, here = draft.layers, draft.layers.released
    leaves = {f"q{i}": leaf[here] for i, leaf in enumerate(draft.found.leaves)}
    witness = pa.table({**leaves, "layer": layers.layer[here] + 1})
    hierarchies = [c.hierarchy for c in draft.folded.columns]
    compared = Reading.of(draft.planned, layers.nodes, hierarchies, draft.engine)
    lost = None if draft.entered is not None else draft.suppressed
    whole = None if draft.entered is None else Whole(draft.folded.source, draft.folded.rows)
    with source_unchanged(draft.planned.table, draft.folded, lost, draft.engine) as check:
        source = draft.shaped.source
        draft.verified = check(verify_layers(compared, source, draft.written, witness, draft.secrets, whole))


def _roll_up(draft: LocalDraft) -> None:
    """Write the rows that were verified at common levels beside them, and compare."""
    hierarchies = [c.hierarchy for c in draft.folded.columns]
    way = RollUp(draft.planned, draft.layers.nodes, hierarchies, draft.engine)
    way.check(draft.written, way.stage(draft.written, draft.staging))


def _tell(draft: LocalDraft) -> None:
    """Write what the labels of the rows that were verified say, and compare."""
    hierarchies = [c.hierarchy for c in draft.folded.columns]
    way = Told(draft.planned, draft.layers.nodes, hierarchies, draft.engine)
    way.check(draft.written, way.stage(draft.written, draft.staging))


def note_of(planned: LocalPlan, nodes: tuple[Node, ...], secrets: Secrets | None = None) -> Note:
    """What is kept on the release: its layers, hierarchies' names, criteria; never a count of the source."""
    plan = planned.table
    content: dict[str, object] = {
        "kind": "table",
        "method": "local",
        "layers": [list(node) for node in nodes],
        "hierarchies": {q.name: q.hierarchy_name for q in plan.qis},
        "criteria": noted_criteria(plan, plan.demands.k),
        "recoding": planned.recoding,
        **days_noted(plan, nodes),
    }
    if secrets is not None and pseudonyms(plan):
        content[RUN_NOTE] = secrets.run
    used = {q.name: sorted({node[i] for node in nodes}) for i, q in enumerate(plan.qis)}
    comments = {c.name: _comment(c, used.get(c.name, ())) for c in plan.released}
    if planned.recoding:
        comments["recoding"] = "number of the layer, which tells the level of each quasi-identifying column"
    return Note(plan.name, content, comments)


def _comment(column: object, used: Sequence[int]) -> str:
    """What a reader is told of a column who has the release alone: its levels, and that labels overlap."""
    if isinstance(column, QuasiIdentifier):
        levels = ", ".join(f"{x}{named_level(column.hierarchy, x)}" for x in used)
        mixed = "; rows with a finer label are not all of their kind: do not count by equal labels" * (len(used) > 1)
        return f"quasi-identifying, hierarchy {column.hierarchy_name}, by row at level {levels}{mixed}"
    return f"{getattr(column, 'role', '')}, {getattr(column, 'shown', None) or 'as in the source'}"
